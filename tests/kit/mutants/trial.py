"""Runs the checks of `StoreContract` against a mutant, without pytest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from unittest import SkipTest

from tests.kit.mutants.mutant import Mutant

from sparkonce.tck.rules.rule import RuleBroken
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.suite import rule_of


def checks(number: str | None = None) -> list[str]:
    """The names of the checks of a rule, or of all rules."""
    rules = {name: rule_of(name) for name in dir(StoreContract) if name.startswith("test_")}
    return [name for name, rule in rules.items() if rule and number in (None, rule.number)]


def run(check: str, new_subject: NewSubject) -> RuleBroken | None:
    """Run one check; what it found."""
    try:
        getattr(StoreContract(), check)(new_subject)
    except RuleBroken as broken:
        return broken
    except SkipTest:
        return None
    return None


def found(mutant: Mutant, profile: str, names: Sequence[str]) -> Iterator[tuple[str, RuleBroken]]:
    """The checks that find something of a mutant, and what."""
    for check in names:
        with mutant.at_work():
            broken = run(check, partial(mutant.new_subject, profile))
        if broken is not None:
            yield check, broken
