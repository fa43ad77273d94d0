"""The rules of the kit as data, the checks that carry their numbers, and what a failure says."""

from __future__ import annotations

import re
from collections import Counter
from unittest import SkipTest

import pytest

from sparkonce.errors import StoreLostData
from sparkonce.tck.memory_subject import MemorySubject
from sparkonce.tck.rules.rule import MAY, MUST, Rule, RuleBroken
from sparkonce.tck.rules.rulebook import BY_NUMBER, ORACLES, RULES
from sparkonce.tck.simulation.memory import MemoryStore
from sparkonce.tck.simulation.oracles import after, require
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.suite import Contract, rule_of


def numbers_of(suite: type) -> Counter[str]:
    """How many checks of a suite carry each number."""
    return Counter(
        found[1].upper() for name in dir(suite) if (found := re.match(r"test_([a-z]\d\d)_", name))
    )


def test_numbers_are_unique_and_well_formed() -> None:
    numbers = [rule.number for rule in RULES]
    assert len(set(numbers)) == len(numbers)
    assert all(re.fullmatch(r"[SCAIQBRF]\d\d", number) for number in numbers)
    for letter in "SCAIQBRF":
        own = [number for number in numbers if number[0] == letter]
        assert own == [f"{letter}{n:02}" for n in range(1, len(own) + 1)]


@pytest.mark.parametrize("rule", RULES, ids=[rule.number for rule in RULES])
def test_a_rule_says_what_holds_why_and_where_to_look(rule: Rule) -> None:
    assert rule.level in (MUST, MAY)
    assert rule.text.endswith(".")
    assert rule.intent.endswith(".")
    assert rule.look_at
    assert not rule.look_at.endswith(".")


def test_every_rule_of_a_store_has_a_check() -> None:
    wanted = {rule.number for rule in RULES if rule.number[0] in "SCAI"}
    assert wanted - set(numbers_of(StoreContract)) == set()


def test_every_check_has_a_rule_that_is_there() -> None:
    known = {rule.number for rule in RULES}
    checks = [name for name in dir(StoreContract) if name.startswith("test_")]
    assert all(rule_of(name) for name in checks)
    assert set(numbers_of(StoreContract)) <= known


def test_every_check_says_what_it_does() -> None:
    checks = [name for name in dir(StoreContract) if name.startswith("test_")]
    assert [name for name in checks if not getattr(StoreContract, name).__doc__] == []


def test_a_number_that_is_not_there_is_noticed_when_the_suite_is_loaded() -> None:
    with pytest.raises(KeyError, match="S99"):
        type("Typo", (Contract,), {"test_s99_of_nothing": lambda _: None})


def test_a_failure_names_the_rule_what_was_seen_and_where_to_look() -> None:
    rule = BY_NUMBER["C10"]
    broken = RuleBroken(rule, "epoch 3 took effect without its rows")
    assert str(broken).splitlines() == [
        f"rule C10 (MUST): {rule.text}",
        "  seen: epoch 3 took effect without its rows",
        f"  look at: {rule.look_at}",
    ]
    assert broken.rule is rule


class Broken(Contract):
    """Checks that fail in every way."""

    def test_s01_by_an_oracle(self) -> None:
        require(False, "read gave an old record")

    def test_s02_by_an_error(self) -> None:
        raise StoreLostData("Chunk 3 is gone")

    def test_s03_by_a_bug(self) -> None:
        raise ZeroDivisionError

    def test_s04_in_another_check(self) -> None:
        self.test_s01_by_an_oracle()

    def test_s05_by_a_limit(self) -> None:
        raise SkipTest("no listing: the store has none")

    def test_s06_after_something(self) -> None:
        with after("the driver died"):
            raise StoreLostData("Chunk 3 is gone")

    def test_without_a_number(self) -> None:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("name", "number", "seen"),
    [
        ("test_s01_by_an_oracle", "S01", "read gave an old record"),
        ("test_s02_by_an_error", "S02", "StoreLostData: Chunk 3 is gone."),
        ("test_s03_by_a_bug", "S03", "ZeroDivisionError: ZeroDivisionError"),
        ("test_s04_in_another_check", "S01", "read gave an old record"),
        (
            "test_s06_after_something",
            "S06",
            "StoreLostData: Chunk 3 is gone.\n  after: the driver died",
        ),
    ],
)
def test_whatever_a_check_raises_breaks_its_rule(name: str, number: str, seen: str) -> None:
    with pytest.raises(RuleBroken) as caught:
        getattr(Broken(), name)()
    assert (caught.value.rule.number, caught.value.seen) == (number, seen)
    assert caught.value.__cause__ is not None or number == "S01"


def test_a_limit_is_no_failure() -> None:
    with pytest.raises(SkipTest, match="the store has none"):
        Broken().test_s05_by_a_limit()


def test_a_test_without_a_number_is_left_alone() -> None:
    assert rule_of("test_without_a_number") is None
    with pytest.raises(ZeroDivisionError):
        Broken().test_without_a_number()


def limited(ability: str) -> NewSubject:
    """A store that says it can't do something."""

    def new_subject() -> MemorySubject:
        subject = MemorySubject(MemoryStore(whole_epochs=False))
        subject.limits = {**subject.limits, ability: "there is no server that could"}
        return subject

    return new_subject


@pytest.mark.parametrize(
    ("ability", "check"),
    [
        ("whole epochs", "test_c13_readers_see_whole_epochs"),
        ("snapshot", "test_c14_a_store_that_lost_commits_is_detected"),
        ("unreachable", "test_s13_no_reply_is_unreachable"),
        ("apply", "test_s08_apply_takes_effect_once"),
        ("apply", "test_s08_apply_resumes_where_it_was_interrupted"),
        ("apply", "test_s09_a_superseded_apply_does_nothing"),
        ("apply", "test_s10_a_missing_decided_chunk_is_an_error"),
    ],
)
def test_a_declared_limit_is_skipped_with_its_reason(ability: str, check: str) -> None:
    with pytest.raises(SkipTest, match=f"{ability}: there is no server that could"):
        getattr(StoreContract(), check)(limited(ability))


def test_what_may_be_left_out() -> None:
    """Of a store whole epochs alone; of a source what its users see."""
    may = [rule.number for rule in RULES if rule.level == MAY]
    assert may == ["C13", "B08", "B09", "F12"]


def test_oracles_are_numbered() -> None:
    assert [*ORACLES] == [f"O{n}" for n in range(1, len(ORACLES) + 1)]
