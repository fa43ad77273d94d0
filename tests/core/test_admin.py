"""What an operator sees of the sinks of a store, finishes for their queries, and drops."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from tests.ledgers import by_part
from tests.scenarios import MemoryWorld, decide_and_die, die_before, move_ledger

from sparkonce.errors import OptionError, StoreLostData
from sparkonce.operate.admin import Admin, SinkStatus, ago
from sparkonce.operate.arguments import known, listed
from sparkonce.protocol import Staged, attempt_of
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash, FaultyStore


@pytest.fixture
def decided() -> Query:
    """Its last epoch is decided and not applied."""
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b", "c", "d", "e"])
    return query


@pytest.fixture
def lacking(decided: Query) -> Query:
    """The store has lost the last of three chunks that are decided."""
    [attempt] = decided.world.memory.log.values()
    attempt.pop(2)
    return decided


def recover(query: Query, **how: bool) -> None:
    admin = Admin(query.world.memory)
    [sink] = admin.sinks()
    admin.recover(sink, **how)


# -- status


def test_a_store_that_nobody_has_written_to_has_no_sinks(admin: Admin) -> None:
    assert admin.sinks() == []


def test_status_tells_of_every_sink_and_of_no_claim(world: MemoryWorld, admin: Admin) -> None:
    Query(world, id="a", checkpoint="/a").start().write(0, ["x", "y", "z"])
    Query(world, id="b", sink_id="orders", checkpoint="/b").start().stage(0, ["x"])
    found = {sink.name: sink for sink in admin.sinks()}
    assert set(found) == {Query(world, id="a").name, Query(world, sink_id="orders").name}
    first, second = (found[name].to_json() for name in sorted(found))
    assert (first["epoch"], first["rows"], first["state"]) == (0, 3, "nothing waits")
    assert (second["epoch"], second["staged_chunks"]) == (None, 1)
    json.dumps([first, second])


def test_status_says_how_old_staged_rows_are_and_which_gc_drops() -> None:
    new = Staged("a", "q", 1, chunks=2, age=40.0)
    old = Staged("b", "p", 1, chunks=1, age=7200.0)
    assert "staged       2 chunks of 1 attempt, the last 40 s ago\n" in listed(
        [SinkStatus("s", None, (new,))]
    )
    assert "3 chunks of 2 attempts, the last 40 s ago; sparkonce gc drops 1 attempt" in listed(
        [SinkStatus("s", None, (new, old))]
    )


def test_status_tells_what_waits_to_be_applied(decided: Query) -> None:
    [sink] = Admin(decided.world.memory).sinks()
    assert "3 chunks to apply" in sink.state


def test_a_sink_is_found_by_its_id_alone_unless_two_targets_have_it(
    world: MemoryWorld, admin: Admin
) -> None:
    one = Query(world, id="b", sink_id="orders", checkpoint="/b")
    one.start().write(0, ["x"])
    assert known(admin, "orders").name == known(admin, one.name).name == one.name
    elsewhere = replace(world.plan, target="elsewhere")
    other = Query(world, id="c", sink_id="orders", checkpoint="/c", plan=elsewhere)
    other.start().write(0, ["y"])
    with pytest.raises(OptionError, match="No sink is named 'orders'"):
        known(admin, "orders")
    assert known(admin, other.name).name == other.name


def test_sinks_are_chosen_by_age_target_and_whether_they_decided(
    world: MemoryWorld, admin: Admin
) -> None:
    new = Query(world, id="new", checkpoint="/c/new")
    die_before(new, "publish", 0, ["a"])
    Query(world, id="decided", checkpoint="/c/decided").start().write(0, ["b"])
    found = {sink.name: sink for sink in admin.sinks()}
    chosen = [name for name, one in found.items() if one.matches(None, 0.0, undecided=True)]
    assert chosen == [new.name]
    assert all(one.matches(new.target, 0.0, undecided=False) for one in found.values())
    assert not any(one.matches("other", 0.0, undecided=False) for one in found.values())
    assert not any(one.matches(None, 60.0, undecided=False) for one in found.values())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5 s ago"), (180, "3 min ago"), (7300, "2 h ago"), (180000, "2 d ago")],
)
def test_a_moment_is_told_in_words(
    seconds: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkonce.operate.admin.time.time", lambda: 1_000_000.0)
    assert ago(1_000_000.0 - seconds) == text


# -- recover


def test_recover_finishes_what_is_decided_and_tells_how_far_it_is(decided: Query) -> None:
    admin, told = Admin(decided.world.memory), list[int]()
    [sink] = admin.sinks()
    admin.recover(sink, told.append)
    assert decided.world.rows == ["a", "b", "c", "d", "e"]
    assert told == [2, 2, 1]
    decided.start().write(0, ["other"])
    assert decided.world.rows == ["a", "b", "c", "d", "e"]


def test_recover_of_a_finished_sink_does_nothing(query: Query) -> None:
    query.start().write(0, ["a"])
    before = query.ledger
    recover(query)
    assert query.ledger == before


def test_recover_without_the_chunks_fails_and_leaves_the_epoch_decided(lacking: Query) -> None:
    with pytest.raises(StoreLostData):
        recover(lacking)
    assert lacking.ledger.decision.manifest is not None


def test_a_loss_that_is_accepted_ends_the_epoch_and_the_query_goes_on(lacking: Query) -> None:
    recover(lacking, accept_loss=True)
    assert lacking.ledger.decision.manifest is None
    run = lacking.start()
    run.write(0, ["replayed"])
    run.write(1, ["f"])
    assert lacking.world.rows == ["a", "b", "c", "d", "f"]
    assert lacking.world.staged() == 0


def test_a_loss_is_accepted_though_a_query_that_restarts_moves_the_ledger(lacking: Query) -> None:
    store = FaultyStore(lacking.world.memory)
    store.before("swap", lambda: move_ledger(lacking))
    admin = Admin(store)
    [sink] = admin.sinks()
    admin.recover(sink, accept_loss=True)
    assert lacking.ledger.decision.manifest is None


def test_a_loss_that_is_accepted_stores_no_row_and_bad_ones_count_on(lacking: Query) -> None:
    ledger = lacking.ledger
    bad = ledger.moved(**by_part(ledger, unstored=7))
    lacking.world.memory.swap(lacking.name, bad.to_record(), ledger.stamp)
    recover(lacking, accept_loss=True)
    assert lacking.ledger.totals.unstored == 7


# -- an operator drops what nobody needs any more, beside queries that still stage


HOUR = 3600.0


def test_gc_drops_what_is_older_than_its_grace(query: Query, admin: Admin) -> None:
    query.start().stage(0, ["a", "b", "c"], ["d"])
    [sink] = admin.sinks()
    assert admin.gc(sink, HOUR) == 0
    assert query.world.staged() == 3
    assert admin.gc(sink, 0.0) == 2
    assert query.world.staged() == 0


def test_gc_drops_what_is_over_whatever_its_age(query: Query, admin: Admin) -> None:
    run = query.start()
    run.write(0, ["a"])
    run.stage_late(0, ["zombie"])
    run.stage(1, ["next"])
    [sink] = admin.sinks()
    assert admin.gc(sink, HOUR) == 1
    [left] = query.world.memory.staged(query.name)
    assert left.epoch == 1


def test_what_is_decided_is_no_leftover() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b", "c"])
    [sink] = Admin(query.world.memory).sinks()
    assert sink.leftovers(0.0) == []


def test_gc_never_drops_what_was_decided_since_it_looked() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    admin, run = Admin(query.world.memory), query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    [sink] = admin.sinks()
    query.faulty().fail_next("apply", DIES_BEFORE)
    with pytest.raises(Crash):
        run.commit(0, receipts)
    assert admin.gc(sink, 0.0) == 0
    Query(query.world).start().write(0)
    assert query.world.rows == ["a", "b", "c"]


def test_gc_spares_an_epoch_whose_tasks_still_stage(
    query: Query, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of when it is asked to drop. A task that is done for hours counts once the last one is."""
    run = query.start()
    receipts = run.stage(0, ["early"])
    now = time.monotonic()
    monkeypatch.setattr("sparkonce.tck.simulation.memory.time.monotonic", lambda: now + 2 * HOUR)
    [sink] = admin.sinks()
    assert len(sink.leftovers(HOUR)) == 1
    receipts += [run.stage_task(run.task(0, 1), ["late"])]
    assert admin.gc(sink, HOUR) == 0
    run.commit(0, receipts)
    assert query.world.rows == ["early", "late"]


def test_gc_reads_what_an_older_release_staged_as_of_one_run() -> None:
    """It named attempts by a token alone: they grow old together, and apart from those of today."""
    old = [Staged(token * 32, "q", 3, 1, age) for token, age in (("a", 10.0), ("b", 5000.0))]
    new = Staged(attempt_of("run", "c" * 32), "q", 3, 1, 1.0)
    assert SinkStatus("s", None, (*old, new)).leftovers(HOUR) == []
    aged = [replace(one, age=one.age + HOUR) for one in old]
    assert SinkStatus("s", None, (*aged, new)).leftovers(HOUR) == aged


def undecided(world: MemoryWorld, name: str, checkpoint: str) -> Query:
    query = Query(world, id=name, checkpoint=checkpoint)
    [receipt] = die_before(query, "publish", 0, ["a"])
    world.memory.discard(query.name, [receipt.task.attempt])
    return query


def test_gc_takes_ledgers_away_that_decided_nothing(world: MemoryWorld, admin: Admin) -> None:
    left, busy = undecided(world, "left", "/c/left"), undecided(world, "busy", "/c/busy")
    busy.start().stage(0, ["a"])
    decided = Query(world, id="decided", checkpoint="/c/decided")
    decided.start().write(0, ["b"])
    assert admin.sweep(HOUR) == 0
    assert admin.sweep(0.0) == 1
    assert {sink.name for sink in admin.sinks()} == {busy.name, decided.name}
    left.start().write(0, ["c"])
    assert world.rows == ["b", "c"]
