"""What a mutant is: the store in memory or the core with one fault in it; and its trial."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from unittest import SkipTest, mock

from sparkonce.tck.memory_subject import PROFILES, MemorySubject
from sparkonce.tck.rules.rule import RuleBroken
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.suite import rule_of

WHOLE, CHUNKS, ROWS = ALL = tuple(PROFILES)
"""The profiles: whole epochs in one step, atomic chunks, row by row."""

PAUSE = 0.005
"""Seconds between two requests that should be one: what a network takes."""

CORE = "sparkonce.exactly_once"
Fault = TypeVar("Fault")


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        name: what it is called.
        breaks: the number of the rule that it breaks; the kit must say so.
        does: what it does, and to whom.
        profiles: the stores in memory in which it is seen.
        store: a class to put before the store's own.
        patches: by dotted name, what takes its place in the core.
    """

    name: str
    breaks: str
    does: str
    profiles: tuple[str, ...] = ALL
    store: type | None = None
    patches: Mapping[str, Any] = field(default_factory=dict)

    def new_subject(self, profile: str) -> MemorySubject:
        """A store of this profile, with the fault in it."""
        memory = PROFILES[profile]()
        if self.store is not None:
            own = type(memory)
            memory.__class__ = type(self.store.__name__, (self.store, own), {})
        return MemorySubject(memory)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """The core, with the fault in it."""
        with contextlib.ExitStack() as stack:
            for place, new in self.patches.items():
                stack.enter_context(mock.patch(place, new))
            yield


MUTANTS: list[Mutant] = []


def plant(
    name: str, breaks: str, *profiles: str, at: str = "", also: Mapping[str, Any] | None = None
) -> Callable[[Fault], Fault]:
    """Make a mutant of what this decorates, whose docstring says what it does.

    It is a class to put before the store's own; or what takes the place `at` in the core.
    """

    def planted(fault: Fault) -> Fault:
        does, patches = inspect.getdoc(fault) or "", {**({at: fault} if at else {}), **(also or {})}
        store = fault if isinstance(fault, type) else None
        MUTANTS.append(Mutant(name, breaks, does, profiles or ALL, store, patches))
        return fault

    return planted


def leave_out(name: str, breaks: str, at: str, does: str, *profiles: str) -> None:
    """Make a mutant of a step or a guard that is left out."""
    MUTANTS.append(Mutant(name, breaks, does, profiles or ALL, patches={at: lambda *_: None}))


# -- its trial: the checks of `StoreContract`, without pytest


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
