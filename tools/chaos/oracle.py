"""Compares what the target holds with a recount of Kafka's own log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tools.chaos.target import BOTH, SIDES, Counts, Witness
from tools.chaos.topic import Event


@dataclass(frozen=True)
class Verdict:
    """What the comparison found.

    Attributes:
        rows: events in Kafka.
        lost: events that took no effect, or not with their own values; in rows or counters.
        duplicated: how often events took effect beyond the first time; in rows or counters.
    """

    rows: int
    lost: int
    duplicated: int


def compare(events: Iterable[Event], rows: Iterable[Witness], counters: Counts) -> Verdict:
    """Count every event in both targets."""
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
    off = [*surplus.values(), *gaps.values()]
    return Verdict(
        rows=len(expected),
        lost=wrong - sum(few for few in off if few < 0),
        duplicated=sum(many for many in off if many > 0),
    )


def _recount(
    events: Iterable[Event],
) -> tuple[dict[tuple[int, int], int], Counter[tuple[str, int]], Counter[tuple[str, int]]]:
    """The amount of each event; for each side and bucket the sum of amounts, and the number."""
    amounts: dict[tuple[int, int], int] = {}
    sums: Counter[tuple[str, int]] = Counter()
    numbers: Counter[tuple[str, int]] = Counter()
    for event in events:
        amounts[event.partition, event.offset] = event.amount
        for side in SIDES:
            sums[side, event.bucket] += event.amount
            numbers[side, event.bucket] += 1
    return amounts, sums, numbers
