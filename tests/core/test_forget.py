"""An operator forgets a sink: a tombstone stays in place of its ledger, and goes at last."""

from __future__ import annotations

import json
import time
from functools import partial

import pytest
from tests.ledgers import by_part
from tests.scenarios import MemoryWorld, decide_and_die

from sparkonce.errors import SinkBehindCheckpoint, SparkonceError
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
