"""How many rows of an epoch may go into dead letters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.ledgers import ledger_of
from tests.worlds import MemoryWorld

from sparkonce.errors import BadRow
from sparkonce.exactly_once.bad_rows import (
    NONE,
    BadRowCounter,
    Count,
    MaxBadRows,
    TooManyBadRows,
    max_bad_rows,
)
from sparkonce.exactly_once.driver import Policy
from sparkonce.protocol import Applied, Manifest, Part, Receipt
from sparkonce.tck.simulation.actors import Query, Run

TENTH = max_bad_rows("10%")


def manifest(rows: int, unstored: int = 0) -> Manifest:
    parts = (Part(0, "attempt", (rows,), (8,)),)
    return Manifest("sink", 1, "query", 7, "token", "target", {}, parts, unstored=unstored)


@pytest.mark.parametrize(
    ("text", "rows", "most"),
    [
        ("10%", 2000, 200),
        ("10%", 2009, 200),
        ("10%", 20, 10),
        ("0%", 5000, 10),
        ("0.5%", 10_000, 50),
        ("100%", 3, 10),
        ("100 %", 3000, 3000),
        ("250", 10, 250),
        ("0", 5000, 0),
    ],
)
def test_a_number_or_a_share_may_go_aside_and_of_a_share_always_ten(
    text: str, rows: int, most: int
) -> None:
    assert max_bad_rows(text).of(rows) == most
    assert str(max_bad_rows(text)) == text


@pytest.mark.parametrize("text", ["", "-1", "0.1", "101%", "10 rows", "%", "1e3", "ten"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 100, or a share .* such as 10%"):
        max_bad_rows(text)


def test_one_more_than_may_stops_and_the_reasons_are_told_with_their_counts() -> None:
    tally = BadRowCounter(TENTH, manifest(200))
    for n in range(15):
        tally.add("no partition", f"1526 no partition for {n}")
    for _ in range(5):
        tally.add("too long", "1406 Data too long")
    with pytest.raises(TooManyBadRows, match="21 rows of 200 of epoch 7 can't be stored") as said:
        tally.add("too long", "1406 Data too long")
    assert "lets 20 go into dead letters" in said.value.what
    assert "15 x no partition, such as: 1526 no partition for 0; 6 x too long" in said.value.what
    assert "maxBadRows" in said.value.todo


def test_reasons_that_never_end_are_told_together() -> None:
    count = Count()
    for n in range(1000):
        count.add(f"kind {n}", "x" * 10_000)
    assert count.rows == 1000
    assert count.kinds["other reasons"] == (992, "")
    assert len(str(count)) < 4000


def test_rows_that_were_refused_before_a_restart_count() -> None:
    tally = BadRowCounter(TENTH, manifest(200))
    tally.resume(rows=50, aside=20)
    with pytest.raises(TooManyBadRows, match="20 x refused before a restart"):
        tally.add("too long", "1406")


@pytest.mark.parametrize(
    ("stored", "unstored", "bad", "stops"),
    [
        (False, 0, 10, False),
        (False, 1, 10, True),
        (False, 10, 1, True),
        (True, 500, 10, False),
        (False, 500, 0, False),
    ],
)
def test_epochs_of_which_no_row_is_stored_count_together(
    stored: bool, unstored: int, bad: int, stops: bool
) -> None:
    tally = BadRowCounter(TENTH, manifest(10, unstored))
    tally.add("closed", "1644 closed", bad) if bad else None
    tally.stored = stored
    if not stops:
        tally.end()
        assert tally.applied == Applied(bad, stored or not bad)
        return
    with pytest.raises(TooManyBadRows, match="none was stored"):
        tally.end()


@pytest.mark.parametrize(
    ("applied", "rows", "unstored"),
    [
        (Applied(3, stored=False), 3, 8),
        (Applied(3, stored=True), 9, 0),
        (Applied(), 9, 0),
        (Applied(), 0, 5),
    ],
)
def test_the_ledger_counts_on_while_no_row_is_stored(
    applied: Applied, rows: int, unstored: int
) -> None:
    ledger = ledger_of("sink", "query", "target", aside=6, unstored=5)
    done = ledger.decided(manifest(rows), "run").finished(applied)
    assert (done.totals.aside, done.totals.unstored) == (6 + applied.aside, unstored)


def refused_by_tasks(run: Run, epoch: int, rows: int, bad: int) -> list[Receipt]:
    """Two partitions, with these bad rows in the second one alone."""
    half = [f"a/{epoch}#{n}" for n in range(rows)]
    first, second = run.stage(epoch, half[bad:], half[:bad])
    return [first, replace(second, bad={"a key is null": (bad, "id=null")})]


@pytest.mark.parametrize("whole", [True, False])
def test_too_many_that_tasks_refuse_stop_an_epoch_before_it_is_decided(whole: bool) -> None:
    world = MemoryWorld(whole_epochs=whole)
    query = Query(world)
    run = query.start()
    committer = run.committer()
    committer.policy = Policy(repeatable=False, max_bad_rows=TENTH)
    committer.commit(run.driver(0), refused_by_tasks(run, 0, rows=1000, bad=10))
    receipts = refused_by_tasks(run, 1, rows=100, bad=11)
    with pytest.raises(BadRow, match=r"11 x a key is null, such as: id=null\. Nothing of"):
        committer.commit(run.driver(1), receipts)
    assert query.ledger.decision.epoch == 0
    committer.policy = Policy(repeatable=False, max_bad_rows=MaxBadRows("11", 11))
    assert committer.commit(run.driver(1), receipts).decision.epoch == 1


def test_a_replay_counts_nothing_again() -> None:
    world = MemoryWorld()
    run = Query(world).start()
    receipts = refused_by_tasks(run, 0, rows=10, bad=10)
    committer = run.committer()
    committer.policy = Policy(repeatable=False, max_bad_rows=TENTH)
    committer.commit(run.driver(0), receipts)
    committer.policy = Policy(repeatable=False, max_bad_rows=NONE)
    assert committer.commit(run.driver(0), receipts).decision.epoch == 0
