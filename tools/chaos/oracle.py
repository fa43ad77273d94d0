"""Judges a run: a recount of Kafka's log, and a reader that polls the target all the time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tools.chaos.target import BOTH, SIDES, Counts, Witness
from tools.chaos.topic import Event


@dataclass(frozen=True)
class Verdict:
    """The result of the comparison.

    Attributes:
        rows: events in Kafka.
        lost: events without an effect, or with wrong values; in rows or counters.
        duplicated: effects of events beyond the first; in rows or counters.
        excused: events without an effect whose loss the query named.
    """

    rows: int
    lost: int
    duplicated: int
    excused: int = 0


@dataclass(frozen=True)
class Named:
    """The events of epochs that the store lost, and whose loss each query named.

    Attributes:
        rows: the places of events in Kafka.
        counters: the number of events of each bucket.
    """

    rows: frozenset[tuple[int, int]] = frozenset()
    counters: Mapping[int, int] = field(default_factory=dict)


NOTHING = Named()


def compare(
    events: Iterable[Event], rows: Iterable[Witness], counters: Counts, named: Named = NOTHING
) -> Verdict:
    """Count every event in both targets; one that a query named as lost may be absent."""
    expected, sums, numbers = _recount(events)
    surplus: Counter[tuple[int, int]] = Counter()
    wrong = 0
    for row in rows:
        at = row.partition, row.offset
        surplus[at] += row.times
        wrong += row.amount != expected.get(at, -1) * row.times
    surplus.subtract(expected.keys())
    gaps = {at: counters.get(at, (0, 0))[0] - numbers[at] for at in {*BOTH, *counters}}
    wrong += sum(counters.get(at, (0, 0))[1] != sums[at] for at, gap in gaps.items() if not gap)
    absent = [at for at, few in surplus.items() if few < 0 and at in named.rows]
    for at in absent:
        surplus[at] = 0
    for (side, bucket), gap in gaps.items():
        if gap < 0:
            gaps[side, bucket] = min(0, gap + named.counters.get(bucket, 0))
    off = [*surplus.values(), *gaps.values()]
    return Verdict(
        rows=len(expected),
        lost=wrong - sum(few for few in off if few < 0),
        duplicated=sum(many for many in off if many > 0),
        excused=len(absent),
    )


def _recount(
    events: Iterable[Event],
) -> tuple[dict[tuple[int, int], int], Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """The amount of each event; for each side and bucket, the sum of amounts, and the count."""
    amounts: dict[tuple[int, int], int] = {}
    sums: Counter[tuple[str, int]] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    for event in events:
        amounts[event.partition, event.offset] = event.amount
        for side in SIDES:
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
