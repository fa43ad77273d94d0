"""The explorer finds nothing in the core, covers what it should, and finds planted bugs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from integration.support.marks import slow_cases
from tests.kit.explorer_bugs import BUGS
from tests.kit.mutants import MUTANTS

from sparkonce.tck.explore import Report, explore, history
from sparkonce.tck.memory_subject import PROFILES

pytestmark = pytest.mark.xdist_group("explore")  # its report serves several tests

SCHEDULES = range(5000, 7000)
PLANTED = 3000


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


# -- mutants of the kit

SOON = 2


@pytest.mark.parametrize("name", [*list(BUGS)[:SOON], *slow_cases(*list(BUGS)[SOON:])])
def test_a_mutant_that_only_schedules_show_is_found(name: str) -> None:
    search = BUGS[name]
    (planted,) = (one for one in MUTANTS if one.name == name)
    planted = replace(planted, store=search.store or planted.store)
    schedules = range(search.start, search.start + PLANTED)
    with planted.at_work():
        found = explore(
            schedules,
            search.profile,
            make=lambda: planted.new_subject(search.profile).memory,
            losses=search.losses,
        )
    assert found.failures, f"not found in {PLANTED} schedules"
    [failure] = found.failures
    assert failure.rule in search.rules
    assert len(failure.history) < 200
    assert failure.command in str(failure)
    assert failure.seed == schedules[found.schedules.total() - 1]
