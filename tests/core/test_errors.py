"""Each error says what, why and what to do."""

from __future__ import annotations

import copy
import inspect
import pickle
import re

import pytest
from tests.ledgers import ledger_of

from sparkonce import errors, options
from sparkonce.errors import (
    CommitRefused,
    SparkonceError,
    StoreError,
    StoreRefused,
    StoreUnreachable,
)
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.options import COMMON
from sparkonce.protocol import Follows
from sparkonce.spark.writer import OF_STREAMS

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
}


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
def test_every_error_has_a_meaning_and_the_text_of_its_kind(cls: type[SparkonceError]) -> None:
    assert cls.__doc__
    error = cls("The store is gone", why="rows wait", todo="start it")
    assert str(error) == "The store is gone. Why: rows wait. What to do: start it."
    assert (error.what, error.why, error.todo) == ("The store is gone", "rows wait", "start it")


def test_why_and_todo_may_be_left_out() -> None:
    assert str(StoreError("Gone")) == "Gone."
    assert str(StoreError("Gone", todo="wait")) == "Gone. What to do: wait."
    assert str(StoreError("Gone", why="so")) == "Gone. Why: so."


def test_a_refusal_of_a_commit_is_no_error_of_the_store() -> None:
    assert not issubclass(CommitRefused, StoreError)
    assert not issubclass(StoreError, CommitRefused)


@pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, lambda error: pickle.loads(pickle.dumps(error))],
    ids=["copied", "pickled"],
)
def test_an_error_can_be_copied_and_pickled(cls: type[SparkonceError], copied: object) -> None:
    error = cls("Gone", why="so", todo="wait")
    again = copied(error)  # type: ignore[operator]
    assert type(again) is cls
    assert str(again) == str(error)


def test_every_error_is_raised_somewhere() -> None:
    """Or is a kind of others: a class that nobody raises is one that nobody maintains."""
    from pathlib import Path

    root = Path(errors.__file__).parents[1]
    sources = "".join(path.read_text() for path in root.rglob("*.py") if path.name != "errors.py")
    kinds = {base.__name__ for cls in CLASSES.values() for base in cls.__bases__}
    unused = [name for name in CLASSES if name not in kinds and f"{name}(" not in sources]
    assert unused == []


def test_an_unreachable_store_is_worth_another_try_and_others_are_not() -> None:
    retried = [name for name, cls in CLASSES.items() if issubclass(cls, StoreUnreachable)]
    assert retried == ["StoreUnreachable"]


def test_a_message_is_one_line_whatever_it_tells() -> None:
    error = SparkonceError("key a\nFAKE\x1b[31m", "\u202edlof", "mend \u2028 'naïve \U0001f600'")
    assert str(error) == (
        r"key a\nFAKE\x1b[31m. Why: \u202edlof. What to do: mend \u2028 'naïve \U0001f600'."
    ).replace(r"\U0001f600", "\U0001f600")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error.__class__(error.what)) == r"key a\nFAKE\x1b[31m."


@pytest.mark.parametrize("end", ["", ".", "..", ". "])
def test_a_part_that_ends_in_a_full_stop_gets_no_second_one(end: str) -> None:
    error = SparkonceError(f"Connection refused{end}", f"It is down{end}", f"start it{end}")
    assert str(error) == "Connection refused. Why: It is down. What to do: start it."
    assert str(SparkonceError("What?", "", "this?")) == "What? What to do: this?"


# -- what an error advises can be done by the kind of writer that sees it


NAME = sink_name("my.sink_1", "t")
LEDGER = ledger_of(NAME, "my_app.1", "t", epoch=5)
ID = "0b1f2a3c-0000-4000-8000-000000000000"


def driver(query: str, follows: Follows, *, named: bool = False) -> Driver:
    return Driver(query, "run", 3, NAME, "t", follows=follows, named=named)


STREAM = driver(ID, Follows.NEXT)
FOREACH = driver(ID, Follows.GROWS)
NAMED = driver("other_app.2", Follows.GROWS, named=True)
ONCE = driver("token", Follows.ONCE)
POLICY = Policy(repeatable=False)
MISTAKE = StoreRefused("no", "why", "mend it")

SEEN: list[tuple[Driver, SparkonceError]] = [
    *((who, conflicts.replaced(LEDGER, who, "continue:my_app.1")) for who in (STREAM, NAMED)),
    *((who, conflicts.retired(LEDGER, who)) for who in (STREAM, FOREACH, NAMED)),
    *((who, conflicts.concurrent_driver(LEDGER, who)) for who in (STREAM, FOREACH)),
    *((who, conflicts.checkpoint_behind(LEDGER, who)) for who in (STREAM, FOREACH)),
    *((who, conflicts.in_the_way(MISTAKE, LEDGER.name, LEDGER.target)) for who in (NAMED, ONCE)),
    *((who, conflicts.overtaken(LEDGER, [LEDGER])) for who in (NAMED, ONCE)),
    *((who, conflicts.lost_decision(LEDGER, who)) for who in (STREAM, FOREACH, NAMED, ONCE)),
    (STREAM, conflicts.renamed(LEDGER, STREAM)),
    (STREAM, conflicts.diverged(LEDGER, STREAM)),
    (STREAM, conflicts.sink_behind(LEDGER, STREAM, POLICY)),
    (NAMED, conflicts.version_behind(LEDGER, NAMED)),
    (FOREACH, conflicts.written_twice(LEDGER, FOREACH)),
]


@pytest.mark.parametrize(("who", "error"), SEEN)
def test_an_option_that_is_advised_is_taken(who: Driver, error: SparkonceError) -> None:
    for name, value in re.findall(r"option (\w+)=([^\s;,)]+)", error.todo):
        options.parse(COMMON, {name: value})
        assert who.follows is Follows.NEXT or name not in OF_STREAMS


@pytest.mark.parametrize(("who", "error"), SEEN)
def test_nobody_is_told_of_what_he_has_not(who: Driver, error: SparkonceError) -> None:
    if who.follows is not Follows.NEXT:
        assert "sparkonce offsets" not in error.todo
    if isinstance(error, type(conflicts.retired(LEDGER, who))):
        assert ("txnAppId" in error.todo) is who.named
