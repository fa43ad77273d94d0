"""Judges a run: a recount of Kafka's log, and a reader that polls the target all the time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from tools.chaos.target import BOTH, SIDES, Counts, Witness
from tools.chaos.topic import Event

Place = tuple[int, int]
"""The partition and the offset of an event in Kafka."""


@dataclass(frozen=True)
class Verdict:
    """The result of the comparison.

    Attributes:
        rows: events in Kafka.
        lost: events without an effect, or with wrong values; in rows or counters.
        duplicated: effects of events beyond the first, or of named ones; in rows or counters.
        excused: events whose loss the query of the rows named.
    """

    rows: int
    lost: int
    duplicated: int
    excused: int = 0


@dataclass(frozen=True)
class Named:
    """The places in Kafka of events whose epochs each query named as lost by the store."""

    rows: frozenset[Place] = frozenset()
    counters: frozenset[Place] = frozenset()


NOTHING = Named()


def compare(
    events: Iterable[Event], rows: Iterable[Witness], counters: Counts, named: Named = NOTHING
) -> Verdict:
    """Count every event in both targets; one that a query named as lost must be absent."""
    expected, sums, numbers = _recount(events, named.counters)
    surplus: Counter[Place] = Counter()
    wrong = 0
    for row in rows:
        at = row.partition, row.offset
        surplus[at] += row.times
        wrong += row.amount != expected.get(at, -1) * row.times
    surplus.subtract(expected.keys() - named.rows)
    gaps = {at: counters.get(at, (0, 0))[0] - numbers[at] for at in {*BOTH, *counters}}
    wrong += sum(counters.get(at, (0, 0))[1] != sums[at] for at, gap in gaps.items() if not gap)
    off = [*surplus.values(), *gaps.values()]
    return Verdict(
        rows=len(expected),
        lost=wrong - sum(few for few in off if few < 0),
        duplicated=sum(many for many in off if many > 0),
        excused=len(named.rows),
    )


def _recount(
    events: Iterable[Event], without: Set[Place]
) -> tuple[dict[Place, int], Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """The amount of each event; for each side and bucket, the sum of amounts, and the count."""
    amounts: dict[Place, int] = {}
    sums: Counter[tuple[str, int]] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    for event in events:
        at = event.partition, event.offset
        amounts[at] = event.amount
        for side in SIDES if at not in without else ():
            sums[side, event.bucket] += event.amount
            numbers[side, event.bucket] += 1
    return amounts, sums, numbers


PAUSE = 0.02
SAMPLE = 1.0


class Reader:
    """A thread that reads until it is closed; it reconnects if the server is down.

    Args:
        watch: see `Target.watch`.
        began: the start of the run, by `time.monotonic()`.

    Attributes:
        reads: the number of reads.
        changes: the number of reads that saw a new state.
        torn: the number of reads that saw a part of an epoch.
        last: the two sums of the last read.
        samples: seconds since `began`, each with the number of visible rows.
    """

    def __init__(self, watch: Callable[[], Callable[[], tuple[int, int]]], began: float) -> None:
        self._watch = watch
        self.reads = self.torn = self.changes = 0
        self.samples: list[tuple[float, int]] = []
        self.last = (-1, -1)
        self._began = began
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._read(self._watch())
            except Exception:  # clients raise various errors if the server is killed
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
