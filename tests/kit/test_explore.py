"""The explorer finds nothing in the core, covers what it should, and finds planted bugs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.kit.explorer_bugs import BUGS

from sparkonce.tck.explore import Report, explore, history
from sparkonce.tck.simulation.memory import MemoryStore

pytestmark = pytest.mark.xdist_group("explore")  # its report serves several tests

SCHEDULES = range(5000, 7000)
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
