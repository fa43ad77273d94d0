"""What an error advises can be done by the kind of writer that sees it."""

from __future__ import annotations

import re

import pytest
from tests.ledgers import ledger_of

from sparkonce import options
from sparkonce.errors import SparkonceError, StoreRefused
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.driver import Driver, Policy
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.options import COMMON
from sparkonce.protocol import Follows
from sparkonce.spark.writer import OF_STREAMS

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
