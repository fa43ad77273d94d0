"""Mutants of the kit that the explorer is tried with: what only schedules show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.mutants.mutant import CHUNKS, ROWS, WHOLE

from sparkonce.tck.simulation.memory import MemoryStore


class LooksThenDrops(MemoryStore):
    """In two steps, as stores without transactions do: only the doom guards what is between."""

    def discard(self, sink: str, attempts: Sequence[str], over: Any = None, *_: object) -> None:
        if over in (None, self.read(sink).stamp):
            super().discard(sink, attempts)


@dataclass(frozen=True)
class Search:
    """Where the explorer finds a mutant.

    Attributes:
        profile: the store in memory that it is planted in.
        rules: the failure names one of these.
        losses: how often the store loses its last writes.
        start: the first schedule. It only saves time: rare ones take a thousand from 0.
        store: a class to put before the store's own, if not the mutant's.
    """

    profile: str
    rules: set[str]
    losses: float = 0.0
    start: int = 0
    store: type | None = None


BUGS: Mapping[str, Search] = {
    "chunk applied twice on roll-forward": Search(CHUNKS, {"O2", "C06"}),
    "late duplicate after a match, by revision": Search(CHUNKS, {"O1", "C14"}, losses=1.0),
    "no fence": Search(ROWS, {"O2"}),
    "late decision undoes newer ones": Search(CHUNKS, {"C22"}),
    "outcome resolved by reading only": Search(WHOLE, {"C02"}, start=5100),
    "doom ignored": Search(CHUNKS, {"S10"}, start=40, store=LooksThenDrops),
    "skipped receipt committed": Search(CHUNKS, {"O1"}, losses=1.0, start=3700),
    "dropped over any record": Search(CHUNKS, {"S10"}, losses=1.0, start=2100),
}
"""By their names in the kit; the first two are found soon."""
