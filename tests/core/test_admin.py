"""What an operator sees of the sinks of a store, and finishes in place of their queries."""

from __future__ import annotations

import json

import pytest
from tests.ledgers import by_part
from tests.worlds import MemoryWorld, decide_and_die, die_before, move_ledger

from sparkonce.errors import StoreLostData
from sparkonce.operate.admin import Admin, ago
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import FaultyStore


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
    assert (first["epoch"], first["rows"], first["state"]) == (0, 3, "finished")
    assert (second["epoch"], second["staged_chunks"]) == (None, 1)
    json.dumps([first, second])


def test_status_tells_what_waits_to_be_applied(decided: Query) -> None:
    [sink] = Admin(decided.world.memory).sinks()
    assert "3 chunks to apply" in sink.state


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
