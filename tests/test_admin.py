"""What an operator does to the ledgers of a store, beside the queries that use them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial

import pytest
from tests.kit import World, move_ledger

from sparkonce.admin import Admin, SinkStatus, ago
from sparkonce.errors import QueryRetired, SinkBehindCheckpoint, SparkonceError, StoreLostData
from sparkonce.protocol import Receipt, Staged, attempt_of
from sparkonce.tck.actors import Query
from sparkonce.tck.faults import DIES_BEFORE, Crash, FaultyStore

HOUR = 3600.0


@pytest.fixture
def admin(world: World) -> Admin:
    return Admin(world.memory)


def decided_and_dead(query: Query, *rows: str) -> None:
    """Only a store that applies chunk by chunk leaves an epoch decided and not applied."""
    query.world.memory.whole_epochs = False
    query.faulty().fail_next("apply", DIES_BEFORE)
    with pytest.raises(Crash):
        query.start().write(0, rows)
    query.through = None


# -- status


def test_a_store_that_nobody_has_written_to_has_no_sinks(admin: Admin) -> None:
    assert admin.sinks() == []


def test_status_tells_of_every_sink_and_of_no_claim(world: World, admin: Admin) -> None:
    Query(world, id="a", checkpoint="/a").start().write(0, ["x", "y", "z"])
    Query(world, id="b", sink_id="orders", checkpoint="/b").start().stage(0, ["x"])
    found = {sink.name: sink for sink in admin.sinks()}
    assert set(found) == {Query(world, id="a").name, Query(world, sink_id="orders").name}
    first, second = (found[name].to_json() for name in sorted(found))
    assert (first["epoch"], first["rows"], first["state"]) == (0, 3, "finished")
    assert (second["epoch"], second["staged_chunks"]) == (None, 1)
    json.dumps([first, second])


def test_status_tells_what_waits_to_be_applied(query: Query, admin: Admin) -> None:
    decided_and_dead(query, "a", "b", "c")
    [sink] = admin.sinks()
    assert "2 chunks to apply" in sink.state


# -- recover


def test_recover_finishes_what_is_decided_and_tells_how_far_it_is(
    query: Query, admin: Admin
) -> None:
    decided_and_dead(query, "a", "b", "c")
    told: list[int] = []
    [sink] = admin.sinks()
    admin.recover(sink, told.append)
    assert query.world.rows == ["a", "b", "c"]
    assert told == [2, 1]
    query.start().write(0, ["other"])
    assert query.world.rows == ["a", "b", "c"]


def test_recover_of_a_finished_sink_does_nothing(query: Query, admin: Admin) -> None:
    query.start().write(0, ["a"])
    before = query.ledger
    [sink] = admin.sinks()
    admin.recover(sink)
    assert query.ledger == before


def lose_a_chunk(query: Query) -> None:
    """The store has lost the second of three chunks of a decided epoch."""
    decided_and_dead(query, "a", "b", "c", "d", "e")
    [attempt] = query.world.memory.log.values()
    attempt.pop(2)


def test_recover_without_the_chunks_fails_and_leaves_the_epoch_decided(
    query: Query, admin: Admin
) -> None:
    lose_a_chunk(query)
    [sink] = admin.sinks()
    with pytest.raises(StoreLostData):
        admin.recover(sink)
    assert query.ledger.manifest is not None


def test_a_loss_that_is_accepted_ends_the_epoch_and_the_query_goes_on(
    query: Query, admin: Admin
) -> None:
    lose_a_chunk(query)
    [sink] = admin.sinks()
    admin.recover(sink, accept_loss=True)
    assert query.ledger.manifest is None
    run = query.start()
    run.write(0, ["replayed"])
    run.write(1, ["f"])
    assert query.world.rows == ["a", "b", "c", "f"]
    assert query.world.staged() == 0


def test_a_loss_is_accepted_though_a_query_that_restarts_moves_the_ledger(query: Query) -> None:
    lose_a_chunk(query)
    store = FaultyStore(query.world.memory)
    store.before("swap", lambda: move_ledger(query))
    admin = Admin(store)
    [sink] = admin.sinks()
    admin.recover(sink, accept_loss=True)
    assert query.ledger.manifest is None


def test_a_loss_that_is_accepted_stores_no_row_and_bad_ones_count_on(
    query: Query, admin: Admin
) -> None:
    lose_a_chunk(query)
    ledger = query.ledger
    bad = ledger.moved(unstored=7)
    query.world.memory.swap(query.name, bad.to_record(), ledger.stamp)
    [sink] = admin.sinks()
    admin.recover(sink, accept_loss=True)
    assert query.ledger.unstored == 7


# -- gc


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


def test_gc_never_drops_what_is_decided(query: Query, admin: Admin) -> None:
    decided_and_dead(query, "a", "b", "c")
    [sink] = admin.sinks()
    assert sink.leftovers(0.0) == []
    assert admin.gc(sink, 0.0) == 0
    query.start().write(0)
    assert query.world.rows == ["a", "b", "c"]


def test_gc_never_drops_what_was_decided_since_it_looked(query: Query, admin: Admin) -> None:
    query.world.memory.whole_epochs = False
    run = query.start()
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
    """The first task is done for hours; its receipt counts once the last one is."""
    run = query.start()
    receipts = run.stage(0, ["early"])
    now = time.monotonic()
    monkeypatch.setattr("sparkonce.tck.memory.time.monotonic", lambda: now + 2 * HOUR)
    receipts += [run.stage_task(run.task(0, 1), ["late"])]
    [sink] = admin.sinks()
    assert admin.gc(sink, HOUR) == 0
    run.commit(0, receipts)
    assert query.world.rows == ["early", "late"]


def test_gc_goes_by_what_is_staged_when_it_is_asked_to_drop(
    query: Query, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by what was listed before the operator was asked."""
    run = query.start()
    receipts = run.stage(0, ["early"])
    now = time.monotonic()
    monkeypatch.setattr("sparkonce.tck.memory.time.monotonic", lambda: now + 2 * HOUR)
    [sink] = admin.sinks()
    assert len(sink.leftovers(HOUR)) == 1
    receipts += [run.stage_task(run.task(0, 1), ["late"])]
    assert admin.gc(sink, HOUR) == 0


def test_gc_reads_what_an_older_release_staged_as_of_one_run() -> None:
    """It named attempts by a token alone: they grow old together, and apart from those of today."""
    old = [Staged(token * 32, "q", 3, 1, age) for token, age in (("a", 10.0), ("b", 5000.0))]
    new = Staged(attempt_of("run", "c" * 32), "q", 3, 1, 1.0)
    assert SinkStatus("s", None, (*old, new)).leftovers(HOUR) == []
    aged = [replace(one, age=one.age + HOUR) for one in old]
    assert SinkStatus("s", None, (*aged, new)).leftovers(HOUR) == aged


# -- forget


def test_forget_leaves_a_tombstone_and_no_claim(world: World, admin: Admin) -> None:
    query, other = Query(world, id="a"), Query(world, id="b", checkpoint="/other")
    for each in (query, other):
        each.start().write(0, ["x"])
    before = set(world.memory.names())
    admin.forget(query.name)
    [claim] = before - set(world.memory.names())
    assert claim.startswith("checkpoint/")
    assert query.ledger.forgotten


def test_a_tombstone_goes_at_last_and_takes_late_claims_along(
    world: World, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, other = Query(world, id="a"), Query(world, id="b", checkpoint="/other")
    for each in (query, other):
        each.start().write(0, ["x"])
    [claim] = [name for name in world.memory.names() if _holder(world, name) == query.name]
    held = world.memory.read(claim)
    admin.forget(query.name)
    world.memory.swap(claim, held, "")  # it arrives late
    assert admin.sweep(3600.0) == 0
    assert query.ledger.forgotten
    now = time.time()
    monkeypatch.setattr("sparkonce.admin.time.time", lambda: now + 31 * 24 * HOUR)
    left = set(world.memory.names()) - {query.name, claim}
    assert admin.sweep(3600.0) == 1
    assert set(world.memory.names()) == left
    assert other.start().write(1, ["y"]).epoch == 1


def test_a_tombstone_stays_while_its_query_still_stages(
    world: World, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(world)
    query.start().write(0, ["x"])
    admin.forget(query.name)
    query.start().stage_late(1, ["zombie"])
    now = time.time()
    monkeypatch.setattr("sparkonce.admin.time.time", lambda: now + 31 * 24 * HOUR)
    assert admin.sweep(3600.0) == 0
    assert query.ledger.forgotten


def test_a_query_that_comes_back_after_its_tombstone_is_refused_for_what_is_missing(
    world: World, admin: Admin
) -> None:
    query = Query(world)
    query.start().write(0, ["x"])
    admin.forget(query.name)
    assert admin.sweep(3600.0, age=0.0) == 1
    with pytest.raises(SinkBehindCheckpoint):
        query.start().write(1, ["y"])


def test_a_tombstone_that_moves_while_it_is_swept_stays(world: World, admin: Admin) -> None:
    query = Query(world)
    query.start().write(0, ["x"])
    admin.forget(query.name)
    new = Query(world, id="new", sink_id=query.name.partition("@")[0])
    store = FaultyStore(world.memory)
    store.before("swap", lambda: new.start().write(0, ["new"]))
    Admin(store).sweep(3600.0, age=0.0)
    assert query.ledger.query_id == "new"


def _holder(world: World, name: str) -> str | None:
    body = world.memory.read(name).body
    return json.loads(body).get("sink") if name.startswith("checkpoint/") else None


@pytest.mark.parametrize("sink_id", [None, "orders"], ids=["default", "sinkId"])
def test_a_sink_that_is_forgotten_may_be_written_by_a_new_query(
    world: World, admin: Admin, sink_id: str | None
) -> None:
    old = Query(world, id="old", sink_id=sink_id)
    old.start().write(0, ["a"])
    old.start().stage(1, ["b"])
    admin.forget(old.name)
    assert admin.sinks() == []
    assert world.staged() == 0
    new = Query(world, id="new", sink_id=sink_id)
    run = new.start()
    run.write(0, ["c"])
    run.write(1, ["d"])
    assert world.rows == ["a", "c", "d"]
    assert [sink.name for sink in admin.sinks()] == [new.name]


@pytest.mark.parametrize("sink_id", [None, "orders"], ids=["default", "sinkId"])
def test_a_query_that_still_runs_when_its_sink_is_forgotten_is_refused(
    world: World, admin: Admin, sink_id: str | None
) -> None:
    query = Query(world, sink_id=sink_id, repeatable=True, on_lost_commit="continue@1")
    run = query.start()
    run.write(0, ["a"])
    admin.forget(query.name)
    for epoch in (0, 1):
        with pytest.raises(QueryRetired):
            run.write(epoch, ["x"])
    assert world.rows == ["a"]


def test_a_sink_with_an_unfinished_epoch_is_not_forgotten(query: Query, admin: Admin) -> None:
    decided_and_dead(query, "a", "b")
    with pytest.raises(SparkonceError, match="recover first"):
        admin.forget(query.name)
    query.start().write(0)
    assert query.world.rows == ["a", "b"]


def test_forgetting_one_sink_leaves_the_others(world: World, admin: Admin) -> None:
    kept = Query(world, id="kept", checkpoint="/kept")
    kept.start().write(0, ["a"])
    receipts = kept.start().stage(1, ["b"])
    gone = Query(world, id="gone", checkpoint="/gone")
    gone.start().write(0, ["x"])
    admin.forget(gone.name)
    kept.start().commit(1, receipts)
    assert world.rows == ["a", "x", "b"]


def test_a_query_that_begins_while_its_predecessor_is_forgotten_loses_nothing() -> None:
    """Its epoch is decided after the tombstone was written, and before the log is swept."""
    world = World(whole_epochs=False)
    Query(world, id="old", sink_id="orders").start().write(0, ["a"])
    new = Query(world, id="new", sink_id="orders")

    def begin_and_die() -> None:
        new.faulty().fail_next("apply", DIES_BEFORE)
        with pytest.raises(Crash):
            new.start().write(0, ["b", "c", "d"])
        new.through = None

    store = FaultyStore(world.memory)
    store.before("doom", lambda: store.before("staged", begin_and_die))
    Admin(store).forget(new.name)
    new.start().write(0)
    assert world.rows == ["a", "b", "c", "d"]


def test_offsets_of_a_query_that_begins_behind_the_tombstone_stay(world: World) -> None:
    old = Query(world, id="old", sink_id="orders")
    old.start().commit(0, [], "offsets of the old query")
    new = Query(world, id="new", sink_id="orders")
    store = FaultyStore(world.memory)
    begin = partial(new.start().commit, 0, [], "offsets of the new query")
    store.before("doom", lambda: store.before("swap", begin))
    Admin(store).forget(old.name)
    [kept] = Admin(world.memory).offsets(new.ledger).values()
    assert kept.text == b"offsets of the new query"


def test_bad_rows_of_a_query_that_was_forgotten_do_not_count_for_the_next(
    world: World, admin: Admin
) -> None:
    old = Query(world, id="old", sink_id="orders")
    ledger = old.start().write(0, ["a"])
    world.memory.swap(old.name, ledger.moved(unstored=7).to_record(), ledger.stamp)
    admin.forget(old.name)
    assert Query(world, id="new", sink_id="orders").start().write(0).unstored == 0


def test_a_query_that_was_forgotten_undecided_stays_so_while_the_next_decides_nothing(
    world: World, admin: Admin
) -> None:
    old, new = (Query(world, id=name, sink_id="orders") for name in ("old", "new"))
    left_undecided(old)
    admin.forget(old.name)
    run = new.start()
    receipts = left_undecided(new)
    run.abort(0, receipts)
    with pytest.raises(QueryRetired):
        old.start().write(0, ["x"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5, "5 s ago"), (180, "3 min ago"), (7300, "2 h ago"), (180000, "2 d ago")],
)
def test_a_moment_is_told_in_words(
    seconds: float, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkonce.admin.time.time", lambda: 1_000_000.0)
    assert ago(1_000_000.0 - seconds) == text


def test_forget_survives_a_claim_that_is_gone(world: World) -> None:
    """The store lost it between the listing and the reading."""
    query = Query(world)
    query.start().write(0, ["a"])
    names = world.memory.names()
    [claim] = [name for name in names if name != query.name]
    world.memory.records.pop(claim)
    world.memory.names = lambda: names
    Admin(world.memory).forget(query.name)
    assert query.ledger.forgotten


def left_undecided(query: Query) -> list[Receipt]:
    """It dies right before its first decision."""
    run = query.start()
    receipts = run.stage(0, ["a"])
    query.faulty().fail_next("publish", DIES_BEFORE)
    with pytest.raises(Crash):
        run.commit(0, receipts)
    query.through = None
    return receipts


def undecided(world: World, name: str, checkpoint: str) -> Query:
    query = Query(world, id=name, checkpoint=checkpoint)
    [receipt] = left_undecided(query)
    world.memory.discard(query.name, [receipt.task.attempt])
    return query


def test_gc_takes_ledgers_away_that_decided_nothing(world: World, admin: Admin) -> None:
    left, busy = undecided(world, "left", "/c/left"), undecided(world, "busy", "/c/busy")
    busy.start().stage(0, ["a"])
    decided = Query(world, id="decided", checkpoint="/c/decided")
    decided.start().write(0, ["b"])
    assert admin.sweep(3600.0) == 0
    assert admin.sweep(0.0) == 1
    assert {sink.name for sink in admin.sinks()} == {busy.name, decided.name}
    left.start().write(0, ["c"])
    assert world.rows == ["b", "c"]


def test_sinks_are_chosen_by_age_target_and_whether_they_decided(
    world: World, admin: Admin
) -> None:
    new = undecided(world, "new", "/c/new")
    Query(world, id="decided", checkpoint="/c/decided").start().write(0, ["b"])
    found = {sink.name: sink for sink in admin.sinks()}
    chosen = [name for name, one in found.items() if one.is_one_of(None, 0.0, undecided=True)]
    assert chosen == [new.name]
    assert all(one.is_one_of(new.target, 0.0, undecided=False) for one in found.values())
    assert not any(one.is_one_of("other", 0.0, undecided=False) for one in found.values())
    assert not any(one.is_one_of(None, 60.0, undecided=False) for one in found.values())
