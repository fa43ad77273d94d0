"""A reader that looks at the counters all the while, and counts the torn epochs that it sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import Event, Thread

from integration.support.alerts import watched
from integration.support.epochs import DirectQuery
from integration.support.servers.process import wait_until
from integration.support.servers.prometheus import program
from tools.chaos import plan
from tools.chaos.result import Struck
from tools.chaos.target import BAD, GOOD

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


SEEN = 3.0
"""Seconds after which an alert fires, at the latest, and a little more."""

SIGHT = 30.0


class Alerts:
    """A Prometheus that watches the store of a run."""

    def __init__(self, stack: ExitStack, url: str) -> None:
        self.why_not = "" if program() else "no prometheus on PATH"
        self._prometheus = None if self.why_not else stack.enter_context(watched(url))

    def fired(self, due: set[str]) -> dict[str, int]:
        """How many seconds each alert has fired; waits a while for those that are due."""
        prometheus = self._prometheus
        if prometheus is None:
            return {}
        wait_until(lambda: due <= set(prometheus.fired()), SIGHT, f"not all of {due} fired")
        return prometheus.fired()


def put_aside(query: DirectQuery) -> None:
    """Let a query make a dead letter, once it is known that it had made none."""
    query.sink.check()
    query.run(0, [{"id": 1, "n": GOOD}])
    time.sleep(SEEN)
    query.run(1, [{"id": 2, "n": BAD}])


def due(struck: Sequence[Struck], leftovers: bool, stepwise: bool) -> set[str]:
    """The alerts that these faults must set off, and the dead letter that comes after them."""
    alerts = {"EpochLate", "ApplySlow", "DeadLetters", "NothingStored"}
    faults = [one.fault for one in struck]
    if any(one.kind == plan.STORE and not 0 < one.outage < SEEN for one in faults):
        alerts.add("StoreUnreachable")
    killed = [one for one in faults if one.kind in (plan.DRIVER, plan.TREE)]
    if stepwise and any(one.point == "apply" and one.fate == plan.NEVER for one in killed):
        alerts.add("EpochUnfinished")
    return alerts | ({"Leftovers"} if leftovers else set())
