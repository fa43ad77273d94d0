"""Abort drops what its own tasks staged, and undoes nothing that is decided."""

from __future__ import annotations

import contextlib

import pytest
from tests.worlds import MemoryWorld, move_ledger

from sparkonce.errors import (
    ConcurrentDriver,
    SparkonceError,
    StagedDataMissing,
    StoreLostData,
    StoreUnreachable,
)
from sparkonce.exactly_once.ledger import PAST_DOOMED
from sparkonce.protocol import Record
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import (
    DIES_AFTER,
    DIES_BEFORE,
    REPLY_LOST,
    REQUEST_LOST,
    Crash,
    Fault,
)


def test_abort_drops_what_its_tasks_staged_and_nothing_else(query: Query) -> None:
    run, other = query.start(), query.start()
    run.write(0, ["a"])
    kept = other.stage(1, ["kept"])
    run.abort(1, run.stage(1, ["b", "c", "d"], ["e"]))
    assert query.world.staged() == 1
    other.commit(1, kept)
    assert query.world.rows == ["a", "kept"]


def test_abort_moves_the_revision_and_drops_in_one_step(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    before = query.ledger
    receipts = run.stage(1, ["b"])
    for fault, left in ((DIES_BEFORE, 1), (DIES_AFTER, 0)):
        query.faulty().fail_next("doom", fault)
        with pytest.raises(Crash):
            run.abort(1, receipts)
        assert (query.ledger.revision > before.revision) == (left == 0)
        assert query.ledger.decision.epoch == before.decision.epoch
        assert query.world.staged() == left


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


def test_a_decide_that_arrives_after_the_abort_is_void(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["b"])
    store = query.faulty()
    step = "publish" if query.world.memory.whole_epochs else "decide"
    store.fail_next(step, Fault("dies, arrives late", late=99, crash=True))
    with pytest.raises(Crash):
        run.commit(1, receipts)
    run.abort(1, receipts)
    store.deliver_all()
    assert query.world.rows == ["a"]
    assert query.world.staged() == 0
    query.start().write(1, ["replayed"])
    assert query.world.rows == ["a", "replayed"]


def test_a_decide_that_arrives_before_the_abort_holds(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    store = query.faulty()
    store.fail_next("apply" if not query.world.memory.whole_epochs else "staged", DIES_BEFORE)
    with pytest.raises(Crash):
        run.commit(0, receipts)
    run.abort(0, receipts)
    query.start().write(0, ["other"])
    assert query.world.rows == ["a", "b", "c"]
    assert query.world.staged() == 0


def test_abort_of_a_committed_epoch_undoes_nothing(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a", "b"], ["c"])
    run.commit(0, receipts)
    run.abort(0, receipts)
    assert query.world.rows == ["a", "b", "c"]
    assert query.ledger.decision.epoch == 0


def test_abort_of_a_first_epoch_leaves_no_epoch_behind(query: Query) -> None:
    run = query.start()
    run.abort(0, run.stage(0, ["a"]))
    assert query.world.memory.names() == []
    query.start().write(0, ["b"])
    assert query.world.rows == ["b"]
    assert query.ledger.owner.generation == 1


def test_abort_with_skipped_receipts_drops_nothing(query: Query) -> None:
    query.start().write(0, ["a"])
    run = query.start()
    run.abort(0, run.stage(0, ["x"], ["y"]))
    query.start().write(1, ["b"])
    assert query.world.rows == ["a", "b"]


def test_the_abort_of_a_run_that_was_followed_does_not_harm_its_successor(query: Query) -> None:
    old, new = query.start(), query.start()
    old_receipts = old.stage(0, ["old"])
    new_receipts = new.stage(0, ["new"])
    store = query.faulty()
    store.before("publish", lambda: Run(Query(query.world), old.run_id).abort(0, old_receipts))
    new.commit(0, new_receipts)
    new.write(1, ["b"])
    assert query.world.rows == ["new", "b"]
    assert query.world.staged() == 0


@pytest.mark.parametrize("step", ["read", "doom"])
@pytest.mark.parametrize("fault", [REQUEST_LOST, REPLY_LOST], ids=str)
def test_what_an_abort_fails_to_drop_goes_with_the_next_commit(
    query: Query, step: str, fault: Fault
) -> None:
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["x"])
    query.faulty().fail_next(step, fault)
    with contextlib.suppress(StoreUnreachable):
        run.abort(1, receipts)
    query.start().write(1, ["b"])
    assert query.world.staged() == 0
    assert query.world.rows == ["a", "b"]


def test_a_zombie_task_that_stages_after_the_abort_is_cleaned_by_the_next_commit(
    query: Query,
) -> None:
    run = query.start()
    run.abort(0, run.stage(0, ["x"]))
    run.stage_late(0, ["zombie"])
    again = query.start()
    again.write(0, ["a"])
    assert query.world.rows == ["a"]
    assert query.world.staged() == 0


def test_a_commit_whose_chunks_an_abort_dropped_is_refused(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["x"])
    run.abort(0, receipts)
    with pytest.raises(StagedDataMissing):
        run.commit(0, receipts)
    assert query.world.rows == []


def test_an_abort_never_drops_what_a_commit_decides_meanwhile() -> None:
    """The abort has moved the revision; the commit that it should stop is still alive."""
    world = MemoryWorld(whole_epochs=False)
    query = Query(world)
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["b"])

    def decide_and_die() -> None:
        committing = Query(world)
        committing.faulty().fail_next("apply", DIES_BEFORE)
        with contextlib.suppress(Crash, SparkonceError):
            Run(committing, run.run_id).commit(1, receipts)

    query.faulty().before("doom", decide_and_die)
    run.abort(1, receipts)
    try:
        Query(world).start().write(1, ["replayed"])
    except StoreLostData as error:
        raise AssertionError("a decided epoch was dropped") from error
    assert world.rows in (["a", "b"], ["a", "replayed"])


def test_an_abort_that_loses_the_revision_moves_it_again() -> None:
    """Or a decide that was read after the other move would still land."""
    world = MemoryWorld(whole_epochs=False)
    query = Query(world)
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["b"])
    committing = Query(world)
    slow = committing.faulty()

    def another_abort_and_a_decide_on_its_way() -> None:
        move_ledger(query, 1)
        slow.fail_next("decide", Fault("dies, arrives late", late=99, crash=True))
        with pytest.raises(Crash):
            Run(committing, run.run_id).commit(1, receipts)

    query.faulty().before("doom", another_abort_and_a_decide_on_its_way)
    run.abort(1, receipts)
    slow.deliver_all()
    Query(world).start().write(1, ["replayed"])
    assert world.rows == ["a", "replayed"]


def test_a_query_that_is_aborted_all_the_time_does_not_let_its_ledger_grow(query: Query) -> None:
    """Spark restarts a query that fails at each start, for days."""
    query.start().write(0, ["a"])
    for _ in range(PAST_DOOMED):
        run = query.start()
        run.abort(1, run.stage(1, ["a"], ["b"], ["c"]))
    assert len(query.ledger.decision.doomed) <= PAST_DOOMED + 3
    query.start().write(1, ["a"])
    assert query.ledger.decision.doomed == {}
