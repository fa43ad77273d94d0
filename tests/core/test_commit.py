"""Commit and abort, as far as no rule of the kit asks: errors, limits, and what meets in a race."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest
from tests.ledgers import by_part
from tests.scenarios import MemoryWorld, decide_and_die, move_ledger

from sparkonce.errors import (
    CheckpointBehindSink,
    CheckpointReplaced,
    ConcurrentDriver,
    SparkonceError,
    StoreUnreachable,
)
from sparkonce.exactly_once.commit import LOST_RACES
from sparkonce.exactly_once.ledger import PAST_DOOMED
from sparkonce.protocol import Record
from sparkonce.tck.simulation.actors import QUICK, Query
from sparkonce.tck.simulation.faults import REPLY_LOST, REQUEST_LOST, Fault, FaultyStore


def test_every_row_takes_effect_once_in_the_order_of_partition_and_row(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c", "d"], ["e"], ["f", "g", "h"])
    run.commit(0, receipts[::-1])
    assert query.world.rows == list("abcdefgh")
    assert query.world.staged() == 0


def test_epochs_follow_each_other_and_the_ledger_counts_them(query: Query) -> None:
    run = query.start()
    for epoch in range(4):
        ledger = run.write(epoch, [f"{epoch}a", f"{epoch}b"], [f"{epoch}c"])
    assert query.world.rows == [f"{epoch}{row}" for epoch in range(4) for row in "abc"]
    assert (
        ledger.decision.epoch,
        ledger.totals.epochs,
        ledger.totals.rows,
        ledger.decision.manifest,
    ) == (3, 4, 12, None)
    assert ledger == query.ledger


# -- deciding


def test_a_ledger_that_others_write_all_the_time_ends_in_an_error(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a"])
    query.through = FaultyStore(
        query.world.memory, hooks={at: lambda: move_ledger(query) for at in range(5000)}
    )
    with pytest.raises(ConcurrentDriver, match=f"{LOST_RACES} races"):
        run.commit(0, receipts)
    assert query.world.rows == []


def test_a_store_that_never_answers_a_decide_is_called_unreachable(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a"])
    store = query.faulty()
    store.publish = Mock(side_effect=StoreUnreachable("no answer"))  # type: ignore[attr-defined]
    with pytest.raises(StoreUnreachable, match="no answer"):
        run.commit(0, receipts)
    assert 2 <= store.publish.call_count <= QUICK.max_retries + 1
    assert query.world.rows == []


# -- runs


def test_a_replay_is_still_one_though_something_moves_the_ledger(query: Query) -> None:
    query.start().write(0, ["a"])
    new = Query(query.world).start()
    receipts = new.stage(0, ["replayed"])
    new.query.faulty().before("swap", lambda: move_ledger(query))
    new.commit(0, receipts)
    assert query.ledger.owner.replayed == {new.run_id: 0}


def test_a_commit_without_any_task_does_not_end_the_run(world: MemoryWorld) -> None:
    """Where a batch has no task there is no message, and so no run id."""
    query = Query(world)
    run = query.start()
    run.write(0, ["a"])
    nameless = replace(run.driver(1), run_id="")
    run.committer().commit(nameless, [])
    run.write(2, ["b"])
    assert world.rows == ["a", "b"]


# -- late cleaning


def test_cleaning_leaves_what_a_later_epoch_and_another_sink_have_staged(
    world: MemoryWorld,
) -> None:
    query = Query(world)
    other = Query(world, id="b", sink_id="other", checkpoint="/other")
    run = query.start()
    next_epoch = run.stage(1, ["b"])
    foreign = other.start().stage(0, ["x"])
    run.write(0, ["a"])
    run.commit(1, next_epoch)
    other.start().commit(0, foreign)
    assert world.rows == ["a", "b", "x"]


# -- what is decided is finished: by whoever comes next, from the manifest alone


def test_an_epoch_is_finished_though_something_moves_the_ledger_meanwhile() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    query.faulty().before("apply", lambda: move_ledger(query))
    assert run.commit(0, receipts).decision.manifest is None
    assert query.ledger.decision.manifest is None
    assert query.world.rows == ["a", "b", "c"]


def test_what_is_decided_is_finished_even_if_the_next_commit_is_refused() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    query.start().write(0, ["a"])
    decide_and_die(query, 1, ["b"])
    with pytest.raises(CheckpointBehindSink):
        query.start().write(0, ["other"])
    assert query.world.rows == ["a", "b"]
    assert query.ledger.decision.manifest is None


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


# -- abort drops what its own tasks staged, and undoes nothing that is decided


def test_abort_drops_what_its_tasks_staged_and_nothing_else(query: Query) -> None:
    run, other = query.start(), query.start()
    run.write(0, ["a"])
    kept = other.stage(1, ["kept"])
    run.abort(1, run.stage(1, ["b", "c", "d"], ["e"]))
    assert query.world.staged() == 1
    other.commit(1, kept)
    assert query.world.rows == ["a", "kept"]


@pytest.mark.parametrize("fault", [REQUEST_LOST, REPLY_LOST], ids=str)
def test_what_is_doomed_without_an_answer_is_dropped_all_the_same(
    query: Query, fault: Fault
) -> None:
    run = query.start()
    receipts = run.stage(0, ["a"])
    query.faulty().fail_next("doom", fault)
    run.abort(0, receipts)
    assert query.world.staged() == 0


def test_what_a_store_without_one_step_doomed_and_did_not_drop_is_dropped(
    world: MemoryWorld,
) -> None:
    """The answer to the record is lost: nobody knows whether the drop was reached."""
    query = Query(world)
    run = query.start()
    receipts = run.stage(0, ["a"])
    store = query.faulty()

    def doom(name: str, new: Record, over: str, _: object) -> Record:
        world.memory.swap(name, new, over)
        raise StoreUnreachable("no answer")

    store.doom = doom
    run.abort(0, receipts)
    assert world.staged() == 0


def test_a_ledger_that_can_never_be_written_is_an_error_and_no_endless_loop(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["b"])
    memory = query.world.memory
    memory._swap = lambda name, *_: memory._read(name)
    memory.whole_epochs = False
    for work in (lambda: run.abort(1, receipts), lambda: query.start().commit(1, receipts)):
        with pytest.raises(ConcurrentDriver, match="races"):
            work()
    assert query.world.rows == ["a"]


def test_a_query_that_is_aborted_all_the_time_does_not_let_its_ledger_grow(query: Query) -> None:
    """Spark restarts a query that fails at each start, for days."""
    query.start().write(0, ["a"])
    for _ in range(PAST_DOOMED):
        run = query.start()
        run.abort(1, run.stage(1, ["a"], ["b"], ["c"]))
    assert len(query.ledger.decision.doomed) <= PAST_DOOMED + 3
    query.start().write(1, ["a"])
    assert query.ledger.decision.doomed == {}
