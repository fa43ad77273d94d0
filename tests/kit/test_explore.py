"""The explorer finds nothing in the core, covers what it should, and finds planted bugs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from sparkonce.exactly_once import commit
from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.exactly_once.registers import Registers
from sparkonce.protocol import Manifest, Record
from sparkonce.tck.explore import Report, explore, history
from sparkonce.tck.simulation.converging import ConvergingStore
from sparkonce.tck.simulation.memory import MemoryStore

pytestmark = pytest.mark.xdist_group("explore")  # its report serves several tests

SCHEDULES = range(5000, 6000)
PLANTED = 3000
PROFILES = ["whole epochs", "atomic chunks", "row by row"]


@pytest.fixture(scope="module")
def report() -> Report:
    return explore(SCHEDULES)


def test_no_schedule_loses_or_doubles_a_row(report: Report) -> None:
    assert not report.failures, f"\n{report.failures[0]}"
    assert report.schedules.total() == len(SCHEDULES)


def test_the_schedules_are_rich(report: Report) -> None:
    assert not report.missing()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_seed_alone_brings_a_schedule_back(profile: str) -> None:
    for seed in range(7000, 7010):
        told = history(seed, profile)
        explore([1, 2], profile)
        assert told == history(seed, profile)
        assert len(told) > 10


def test_the_history_of_a_seed_is_that_of_its_losses() -> None:
    def lossy(seed: int, losses: float) -> bool:
        return any("loses" in line for line in history(seed, "atomic chunks", losses=losses))

    seeds = range(20)
    assert any(lossy(seed, 1.0) for seed in seeds)
    assert not any(lossy(seed, 0.0) for seed in seeds)


# -- planted bugs

rare = partial(pytest.param, marks=pytest.mark.slow)


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
    return from_record(self.store.read(new.name)) or new


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


BUGS: Mapping[str, tuple[Any, ...]] = {
    "no fence": ("row by row", Unfenced, nothing, {"O2"}, 0.0, 0),
    "chunk applied twice on roll-forward": ("atomic chunks", Unmarked, nothing, {"O2"}, 0.0, 0),
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

SOON = list(BUGS)[:1]
CASES = [pytest.param(*BUGS[name], id=name) for name in SOON]
CASES += [rare(*bug, id=name) for name, bug in BUGS.items() if name not in SOON]


@pytest.mark.parametrize(("profile", "make", "plant", "rules", "losses", "start"), CASES)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch,
    profile: str,
    make: Callable[[], MemoryStore] | None,
    plant: Callable[[pytest.MonkeyPatch], None],
    rules: set[str],
    losses: float,
    start: int,
) -> None:
    """`start` is only there to save time: rare ones take a thousand schedules from 0."""
    plant(monkeypatch)
    found = explore(range(start, start + PLANTED), profile, make=make, losses=losses)
    assert found.failures, f"not found in {PLANTED} schedules"
    [failure] = found.failures
    assert failure.rule in rules
    assert len(failure.history) < 150
    assert failure.command in str(failure)
    assert failure.seed == start + found.schedules.total() - 1
