"""A reader that looks at the counters all the while, and counts the torn epochs that it sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

PAUSE = 0.02
SAMPLE = 1.0


class Reader:
    """A thread that reads until it is closed; where the server is down it connects again.

    Args:
        watch: see `Target.watch`.
        began: when the run did, by `time.monotonic()`.

    Attributes:
        reads: how often it has read.
        changes: how often that was another state than the one before.
        torn: how often a part of an epoch was seen without the rest.
        last: what it saw last, two sums.
        samples: seconds since then, and how many rows were to be seen.
    """

    def __init__(self, watch: Callable[[], Callable[[], tuple[int, int]]], began: float) -> None:
        self._watch = watch
        self.reads = self.torn = self.changes = 0
        self.samples: list[tuple[float, int]] = []
        self.last = (-1, -1)
        self._began = began
        self._over = Event()
        self._thread = Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._read(self._watch())
            except Exception:  # whatever a client says of a server that is killed
                time.sleep(10 * PAUSE)

    def _read(self, sides: Callable[[], tuple[int, int]]) -> None:
        while not self._over.wait(PAUSE):
            seen = sides()
            self.reads += 1
            self.torn += seen[0] != seen[1]
            self.changes += seen != self.last
            self.last = seen
            self._sample(seen[0])

    def _sample(self, rows: int) -> None:
        now = time.monotonic() - self._began
        if not self.samples or now - self.samples[-1][0] >= SAMPLE:
            self.samples.append((round(now, 1), rows))
