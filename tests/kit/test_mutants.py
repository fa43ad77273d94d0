"""The kit finds broken sinks: each mutant fails, with the number of the rule that it breaks."""

from __future__ import annotations

import re
from functools import cache, partial

import pytest
from tests.kit.mutants import MUTANTS, Mutant
from tests.kit.mutants.mutant import ALL, checks, found, run
from tests.kit.mutants.of_effects import SOUND

from sparkonce.errors import SparkonceError
from sparkonce.tck.rules.rule import RuleBroken

pytestmark = pytest.mark.usefixtures("quiet", "pace_of_a_slow_store")

NO_FAULT = Mutant("none", "", "does what it should")
CASES = [
    pytest.param(
        mutant,
        profile,
        id=f"{mutant.name} [{profile}]",
        marks=[pytest.mark.slow] if profile != mutant.profiles[0] else [],
    )
    for mutant in MUTANTS
    for profile in mutant.profiles
]

ASKED = """
epochs compared before identity; skipped receipt committed; outcome resolved by reading only;
chunks deleted before finish; None message ignored; equal versions for chunks of one epoch;
no fence; check then act in two steps; marker outside the transaction;
abort that undoes a published epoch; partition as the staging key; leftovers never cleaned;
losers published with winners; silent skip after a replaced checkpoint;
unknown outcome taken as failure; unknown outcome taken as success;
late duplicate after a match, by revision; chunk applied twice on roll-forward;
manifest not checked; epochs out of order; messages with None mishandled in abort
"""
"""The mutants that the kit was asked to find."""


@pytest.fixture
def pace_of_a_slow_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found with every third crash point is found of a slow store, too."""
    monkeypatch.setenv("SPARKONCE_TCK_PACE", "3")


@cache
def found_without_a_fault(check: str, profile: str) -> RuleBroken | None:
    return run(check, partial(NO_FAULT.new_subject, profile))


@pytest.mark.parametrize(("mutant", "profile"), CASES)
def test_a_mutant_fails_with_its_rule(mutant: Mutant, profile: str) -> None:
    check, broken = next(found(mutant, profile, checks(mutant.breaks)), (None, None))
    assert check is not None, f"the kit does not see this: {mutant.does}"
    assert broken.rule.number == mutant.breaks
    require_helpful(broken)
    assert found_without_a_fault(check, profile) is None


def require_helpful(broken: RuleBroken) -> None:
    """It was the sink that failed, not the mutant's own code; and the message says at what."""
    assert isinstance(broken.__cause__, AssertionError | SparkonceError), repr(broken.__cause__)
    assert str(broken).startswith(f"rule {broken.rule.number} (")
    assert f"\n  seen: {broken.seen}\n  look at: {broken.rule.look_at}" in str(broken)
    bugs = "AttributeError|KeyError|IndexError|TypeError|NameError|RecursionError|Timeout"
    assert not re.search(bugs, broken.seen), broken.seen
    assert re.search(r"\d", broken.seen), f"no row, epoch, call or chunk in {broken.seen!r}"
    assert 30 < len(broken.seen) < 1500, broken.seen


def test_all_that_were_asked_for_are_there() -> None:
    names = [mutant.name for mutant in MUTANTS]
    asked = {name.strip() for name in ASKED.split(";")}
    assert len(asked) == 21
    assert asked <= {*names}
    assert len(names) == len(set(names))


def test_every_letter_of_the_rules_and_every_profile_has_mutants() -> None:
    assert {mutant.breaks[0] for mutant in MUTANTS} == set("SCAI")
    assert {profile for mutant in MUTANTS for profile in mutant.profiles} == set(ALL)


@pytest.mark.parametrize("sound", SOUND, ids=[one.name for one in SOUND])
def test_what_is_sound_is_not_found(sound: Mutant) -> None:
    """Some mutants are built on variants of a store that break nothing by themselves."""
    names = [check for check in checks() if re.match(r"test_(s\d\d|c0[136]|c1\d)_", check)]
    assert [*found(sound, sound.profiles[0], names)] == []


def test_a_mutant_leaves_nothing_behind() -> None:
    mutant = next(one for one in MUTANTS if one.name == "epochs out of order")
    [check] = checks(mutant.breaks)
    assert [*found(mutant, ALL[0], [check])]
    assert run(check, partial(NO_FAULT.new_subject, ALL[0])) is None
