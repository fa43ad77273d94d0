"""An operator forgets a sink: a tombstone stays in place of its ledger, and goes at last."""

from __future__ import annotations

import json
import time
from functools import partial

import pytest
from tests.ledgers import by_part
from tests.worlds import MemoryWorld, decide_and_die, die_before

from sparkonce.errors import QueryRetired, SinkBehindCheckpoint, SparkonceError
from sparkonce.operate.admin import Admin
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import FaultyStore

HOUR = 3600.0


def test_forget_leaves_a_tombstone_and_no_claim(world: MemoryWorld, admin: Admin) -> None:
    query, other = Query(world, id="a"), Query(world, id="b", checkpoint="/other")
    for each in (query, other):
        each.start().write(0, ["x"])
    before = set(world.memory.names())
    admin.forget(query.name)
    [claim] = before - set(world.memory.names())
    assert claim.startswith("checkpoint/")
    assert query.ledger.owner.forgotten


def test_forget_survives_a_claim_that_is_gone(
    query: Query, world: MemoryWorld, admin: Admin
) -> None:
    """The store lost it between the listing and the reading."""
    query.start().write(0, ["a"])
    names = world.memory.names()
    [claim] = [name for name in names if name != query.name]
    world.memory.records.pop(claim)
    world.memory.names = lambda: names
    admin.forget(query.name)
    assert query.ledger.owner.forgotten


@pytest.mark.parametrize("sink_id", [None, "orders"], ids=["default", "sinkId"])
def test_a_sink_that_is_forgotten_may_be_written_by_a_new_query(
    world: MemoryWorld, admin: Admin, sink_id: str | None
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
    world: MemoryWorld, admin: Admin, sink_id: str | None
) -> None:
    query = Query(world, sink_id=sink_id, repeatable=True, on_lost_commit="continue@1")
    run = query.start()
    run.write(0, ["a"])
    admin.forget(query.name)
    for epoch in (0, 1):
        with pytest.raises(QueryRetired):
            run.write(epoch, ["x"])
    assert world.rows == ["a"]


def test_a_sink_with_an_unfinished_epoch_is_not_forgotten() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b"])
    with pytest.raises(SparkonceError, match="recover first"):
        Admin(query.world.memory).forget(query.name)
    query.start().write(0)
    assert query.world.rows == ["a", "b"]


def test_forgetting_one_sink_leaves_the_others(world: MemoryWorld, admin: Admin) -> None:
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
    world = MemoryWorld(whole_epochs=False)
    Query(world, id="old", sink_id="orders").start().write(0, ["a"])
    new = Query(world, id="new", sink_id="orders")

    begin = partial(decide_and_die, new, 0, ["b", "c", "d"])
    store = FaultyStore(world.memory)
    store.before("doom", lambda: store.before("staged", begin))
    Admin(store).forget(new.name)
    new.start().write(0)
    assert world.rows == ["a", "b", "c", "d"]


def test_offsets_of_a_query_that_begins_behind_the_tombstone_stay(world: MemoryWorld) -> None:
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
    world: MemoryWorld, admin: Admin
) -> None:
    old = Query(world, id="old", sink_id="orders")
    ledger = old.start().write(0, ["a"])
    world.memory.swap(
        old.name, ledger.moved(**by_part(ledger, unstored=7)).to_record(), ledger.stamp
    )
    admin.forget(old.name)
    assert Query(world, id="new", sink_id="orders").start().write(0).totals.unstored == 0


def test_a_query_that_was_forgotten_undecided_stays_so_while_the_next_decides_nothing(
    world: MemoryWorld, admin: Admin
) -> None:
    old, new = (Query(world, id=name, sink_id="orders") for name in ("old", "new"))
    die_before(old, "publish", 0, ["a"])
    admin.forget(old.name)
    receipts = die_before(new, "publish", 0, ["a"])
    new.start().abort(0, receipts)
    with pytest.raises(QueryRetired):
        old.start().write(0, ["x"])


# -- tombstones


def test_a_tombstone_goes_at_last_and_takes_late_claims_along(
    world: MemoryWorld, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, other = Query(world, id="a"), Query(world, id="b", checkpoint="/other")
    for each in (query, other):
        each.start().write(0, ["x"])
    [claim] = [name for name in world.memory.names() if _holder(world, name) == query.name]
    held = world.memory.read(claim)
    admin.forget(query.name)
    world.memory.swap(claim, held, "")  # it arrives late
    assert admin.sweep(HOUR) == 0
    assert query.ledger.owner.forgotten
    now = time.time()
    monkeypatch.setattr("sparkonce.operate.admin.time.time", lambda: now + 31 * 24 * HOUR)
    left = set(world.memory.names()) - {query.name, claim}
    assert admin.sweep(HOUR) == 1
    assert set(world.memory.names()) == left
    assert other.start().write(1, ["y"]).decision.epoch == 1


def _holder(world: MemoryWorld, name: str) -> str | None:
    body = world.memory.read(name).body
    return json.loads(body).get("sink") if name.startswith("checkpoint/") else None


def test_a_tombstone_stays_while_its_query_still_stages(query: Query, admin: Admin) -> None:
    query.start().write(0, ["x"])
    admin.forget(query.name)
    query.start().stage_late(1, ["zombie"])
    assert admin.sweep(HOUR, age=0.0) == 0
    assert query.ledger.owner.forgotten


def test_a_query_that_comes_back_after_its_tombstone_is_refused_for_what_is_missing(
    query: Query, admin: Admin
) -> None:
    query.start().write(0, ["x"])
    admin.forget(query.name)
    assert admin.sweep(HOUR, age=0.0) == 1
    with pytest.raises(SinkBehindCheckpoint):
        query.start().write(1, ["y"])


def test_a_tombstone_that_moves_while_it_is_swept_stays(world: MemoryWorld, admin: Admin) -> None:
    query = Query(world)
    query.start().write(0, ["x"])
    admin.forget(query.name)
    new = Query(world, id="new", sink_id=query.name.partition("@")[0])
    store = FaultyStore(world.memory)
    store.before("swap", lambda: new.start().write(0, ["new"]))
    Admin(store).sweep(HOUR, age=0.0)
    assert query.ledger.owner.query_id == "new"
