"""What is decided is finished: by whoever comes next, from the manifest alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.ledgers import by_part
from tests.worlds import PLAN, MemoryWorld, decide_and_die, move_ledger

from sparkonce.errors import CheckpointBehindSink, CheckpointReplaced, RowRefused, SparkonceError
from sparkonce.protocol import Applied, Manifest
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import Crash, FaultyStore


class Watched(FaultyStore):
    """Remembers the manifests that were applied."""

    def __init__(self, world: MemoryWorld) -> None:
        super().__init__(world.memory)
        self.applied: list[Manifest] = []

    def apply(self, manifest: Manifest, *rest: object) -> Applied:
        self.applied.append(manifest)
        return self._store.apply(manifest, *rest)  # type: ignore[arg-type]


def test_a_decided_epoch_is_finished_by_the_next_run() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b", "c"], ["d"])
    assert query.world.rows == []
    query.start().write(0, ["other"])
    assert query.world.rows == ["a", "b", "c", "d"]
    assert query.ledger.decision.manifest is None


def test_roll_forward_follows_the_manifest_and_not_the_options_of_today() -> None:
    world = MemoryWorld(whole_epochs=False)
    decide_and_die(Query(world, plan=replace(PLAN, stored={"mode": "increment"})), 0, ["a"])
    today = Query(world, plan=replace(PLAN, stored={"mode": "upsert"}), repeatable=True)
    store = Watched(world)
    today.through = store
    run = today.start()
    run.write(0, ["other"])
    run.write(1, ["b"])
    assert [dict(manifest.detail) for manifest in store.applied] == [
        {"mode": "increment"},
        {"mode": "upsert"},
    ]
    assert world.rows == ["a", "b"]


def test_an_epoch_is_finished_though_something_moves_the_ledger_meanwhile() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    query.faulty().before("apply", lambda: move_ledger(query))
    assert run.commit(0, receipts).decision.manifest is None
    assert query.ledger.decision.manifest is None
    assert query.world.rows == ["a", "b", "c"]


def test_roll_forward_goes_on_at_the_chunk_that_was_reached() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b", "c", "d", "e"])
    take = query.world.memory.take

    def take_until_death(row: str) -> None:
        if row == "c":
            raise Crash
        take(row)

    query.world.memory.take = take_until_death
    with pytest.raises(Crash):
        query.start().write(0)
    assert query.world.rows == ["a", "b"]
    query.world.memory.take = take
    query.start().write(0)
    assert query.world.rows == ["a", "b", "c", "d", "e"]


def refused(query: Query) -> Callable[[], None]:
    """A commit and its abort, of an epoch with a row that is refused until this is called."""
    accept = query.world.refuse("bad")
    run = query.start()
    receipts = run.stage(0, ["a", "b"], ["bad"], ["c"])
    with pytest.raises(RowRefused):
        run.commit(0, receipts)
    run.abort(0, receipts)
    return accept


def test_a_refused_row_leaves_the_epoch_decided_and_a_restart_goes_on() -> None:
    world = MemoryWorld(whole_epochs=False)
    query = Query(world)
    accept = refused(query)
    assert query.ledger.decision.epoch == 0
    with pytest.raises(RowRefused):
        query.start().write(0, ["other"])
    accept()
    query.start().write(0, ["other"])
    assert world.rows == ["a", "b", "bad", "c"]
    assert world.staged() == 0


def test_a_row_refused_in_a_transaction_leaves_nothing_of_its_epoch() -> None:
    world = MemoryWorld(whole_epochs=True)
    query = Query(world)
    accept = refused(query)
    assert (world.rows, world.memory.records) == ([], {})
    accept()
    query.start().write(0, ["other"])
    assert world.rows == ["other"]
    assert world.staged() == 0


def test_what_is_decided_is_finished_even_if_the_next_commit_is_refused() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    query.start().write(0, ["a"])
    decide_and_die(query, 1, ["b"])
    with pytest.raises(CheckpointBehindSink):
        query.start().write(0, ["other"])
    assert query.world.rows == ["a", "b"]
    assert query.ledger.decision.manifest is None


@pytest.mark.parametrize("sink_id", [None, "orders"], ids=["default sink id", "sinkId"])
def test_a_new_query_finishes_what_the_old_one_decided(sink_id: str | None) -> None:
    world = MemoryWorld(whole_epochs=False)
    old = Query(world, id="old", sink_id=sink_id)
    decide_and_die(old, 0, ["a", "b", "c"])
    Query(world, id="new", sink_id=sink_id, on_new_checkpoint="continue:old").start().write(
        0, ["d"]
    )
    assert world.rows == ["a", "b", "c", "d"]
    assert old.ledger.decision.manifest is None


def test_a_refused_query_finishes_nothing() -> None:
    world = MemoryWorld(whole_epochs=False)
    old = Query(world, id="old", sink_id="orders")
    decide_and_die(old, 0, ["a"])
    with pytest.raises(CheckpointReplaced):
        Query(world, id="new", sink_id="orders").start().write(0, ["b"])
    assert world.rows == []
    assert old.ledger.decision.manifest is not None


@pytest.mark.parametrize("step", ["apply", "swap"])
def test_a_decision_that_the_store_loses_before_it_is_finished_is_not_acknowledged(
    step: str,
) -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    run = query.start()
    run.write(0, ["a"])
    before = query.world.snapshot()
    receipts = run.stage(1, ["b"])
    trial = query.faulty()
    world = query.world

    def lose_then(call: object) -> object:
        def lost(*args: object) -> object:
            if query.ledger.decision.epoch == 1:
                world.restore(before)
            return call(*args)  # type: ignore[operator]

        return lost

    setattr(trial, step, lose_then(getattr(world.memory, step)))
    with pytest.raises(SparkonceError):
        run.commit(1, receipts)
    assert world.rows == ["a"]


def test_a_decision_that_gets_another_name_meanwhile_is_finished_before_its_commit_ends() -> None:
    """An operator sends the rest of it elsewhere while its driver still applies it."""
    query = Query(MemoryWorld(whole_epochs=False))
    memory = query.world.memory

    def rename() -> None:
        ledger = query.ledger
        assert ledger.decision.manifest is not None
        renamed = replace(ledger.decision.manifest, token="renamed")
        moved = ledger.moved(**by_part(ledger, manifest=renamed, token="renamed"))
        memory.swap(query.name, moved.to_record(), moved.replaces)

    query.faulty().before("apply", rename)
    ledger = query.start().write(0, ["a"])
    assert (ledger.decision.token, ledger.decision.manifest) == ("renamed", None)
    assert query.world.rows == ["a"]
