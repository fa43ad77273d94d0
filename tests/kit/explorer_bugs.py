"""Bugs that only schedules show: planted in the core or in a store, for the explorer to find."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sparkonce.exactly_once import commit, neighbours
from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.exactly_once.registers import Registers
from sparkonce.protocol import Manifest, Record
from sparkonce.tck.simulation.converging import ConvergingStore
from sparkonce.tck.simulation.memory import MemoryStore


class Unfenced(ConvergingStore):
    def _update(self, manifest: Manifest, ordinal: int, row: str, times: int) -> None:
        self.guards.pop((manifest.sink, row), None)
        super()._update(manifest, ordinal, row, times)


class ByRevision(MemoryStore):
    """After a loss revisions are counted up again, and a late swap meets its own number."""

    def __init__(self) -> None:
        super().__init__(whole_epochs=False)

    def _swap(self, name: str, new: Record, _over: str, _applied: int = 0) -> Record:
        if self._read(name).revision == new.revision - 1:
            self.records[name] = new
        return self._read(name)


class Unmarked(MemoryStore):
    """Applies a chunk again that was applied before."""

    def __init__(self) -> None:
        super().__init__(whole_epochs=False)

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if self._read(manifest.sink).token != manifest.token:
            return False
        chunk, _ = self.log[manifest.sink, attempt][seq]
        self._take(json.loads(chunk.payload))
        self.applied[manifest.token] = ordinal + 1
        return True


def read_only(self: Registers, new: Ledger) -> Ledger:
    return from_record(self.store.read(new.name), new.name) or new


def nothing(_: pytest.MonkeyPatch) -> None:
    """The core stays as it is; the store is broken."""


def resolved_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registers, "_fence", read_only)


def skips_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "require_skips_of", lambda *_: None)


class DropsWhateverIsThere(MemoryStore):
    """A failover may have brought back a decision that holds it, or taken a doom back."""

    def __init__(self) -> None:
        super().__init__(whole_epochs=False)

    def _discard(self, sink: str, attempts: Sequence[str], _over: str | None) -> None:
        super()._discard(sink, attempts, None)


class LooksThenDrops(MemoryStore):
    """In two steps, as stores without transactions do: only the doom guards what is between."""

    def __init__(self) -> None:
        super().__init__(whole_epochs=False)

    def discard(
        self, sink: str, attempts: Sequence[str], over: str | None = None, *_: object
    ) -> None:
        if over in (None, self.read(sink).stamp):
            super().discard(sink, attempts)


def dooms_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "require_not_doomed", lambda *_: None)


def undoes_what_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "overtakers", lambda *_: [])


BUGS: Mapping[str, tuple[Any, ...]] = {
    "no fence": ("row by row", Unfenced, nothing, {"O2"}, 0.0, 0),
    "chunk applied twice on roll-forward": ("atomic chunks", Unmarked, nothing, {"O2"}, 0.0, 0),
    "late decision undoes what came later": (
        "atomic chunks",
        None,
        undoes_what_came_later,
        {"C22"},
        0.0,
        0,
    ),
    "outcome resolved by reading only": (
        "whole epochs",
        None,
        resolved_by_reading,
        {"C02"},
        0.0,
        5100,
    ),
    "doom ignored": ("atomic chunks", LooksThenDrops, dooms_forgotten, {"S10"}, 0.0, 40),
    "late duplicate after a match, by revision": (
        "atomic chunks",
        ByRevision,
        nothing,
        {"O1", "C14"},
        1.0,
        840,
    ),
    "skipped receipt committed": ("atomic chunks", None, skips_committed, {"O1"}, 1.0, 3700),
    "dropped over any record": (
        "atomic chunks",
        DropsWhateverIsThere,
        nothing,
        {"S10"},
        1.0,
        2100,
    ),
}
"""By the names of the kit's mutants; the first is found soon."""
