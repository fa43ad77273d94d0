"""Commit, step by step: an epoch takes effect once, and only as the one that was decided."""

from __future__ import annotations

import pytest
from tests.worlds import MemoryWorld, move_ledger

from sparkonce.errors import ConcurrentDriver, StagedDataMissing, StoreUnreachable
from sparkonce.exactly_once.commit import LOST_RACES
from sparkonce.tck.simulation.actors import QUICK, Query
from sparkonce.tck.simulation.faults import REPLY_LOST, REQUEST_LOST, SENT_TWICE, Fault, FaultyStore

LATE = Fault("arrives late", late=99)


def test_every_row_takes_effect_once_in_the_order_of_partition_and_row(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c", "d"], ["e"], ["f", "g", "h"])
    run.commit(0, receipts[::-1])
    assert query.world.rows == list("abcdefgh")
    assert query.world.staged() == 0


def test_a_row_that_occurs_twice_takes_effect_twice(query: Query) -> None:
    query.start().write(0, ["a", "a"], ["a"])
    assert query.world.rows == ["a", "a", "a"]


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


@pytest.mark.parametrize("partitions", [[], [[]], [[], []]], ids=["no task", "one", "two"])
def test_an_epoch_without_rows_counts_as_an_epoch(
    query: Query, partitions: list[list[str]]
) -> None:
    run = query.start()
    run.write(0, *partitions)
    run.write(1, ["a"])
    run.write(2, *partitions)
    assert query.ledger.decision.epoch == 2
    assert query.world.rows == ["a"]


def test_nothing_takes_effect_before_the_commit(query: Query) -> None:
    query.start().stage(0, ["a", "b", "c"])
    assert query.world.rows == []
    assert query.world.staged() == 2


def test_every_write_of_the_ledger_moves_its_revision_and_its_stamp(query: Query) -> None:
    run, seen = query.start(), set()
    for epoch in range(3):
        ledger = run.write(epoch, ["a"])
        seen.add((ledger.revision, ledger.stamp))
    again = query.start().write(2, ["b"])
    seen.add((again.revision, again.stamp))
    assert len({revision for revision, _ in seen}) == len({stamp for _, stamp in seen}) == 4


def test_two_sinks_of_one_store_do_not_see_each_other(world: MemoryWorld) -> None:
    first = Query(world, id="a", sink_id="first", checkpoint="/one")
    second = Query(world, id="b", sink_id="second", checkpoint="/two")
    receipts = second.start().stage(0, ["later"])
    first.start().write(0, ["a"])
    second.start().commit(0, receipts)
    assert world.rows == ["a", "later"]


# -- a replay


def test_a_replay_drops_what_was_staged_for_it(query: Query) -> None:
    before = query.start()
    before.write(0, ["a", "b"])
    receipts = before.stage(1, ["c"])
    again = query.start().stage(1, ["other", "rows", "now"])
    before.commit(1, receipts)
    ledger = query.start().commit(1, again)
    assert query.world.rows == ["a", "b", "c"]
    assert query.world.staged() == 0
    assert (ledger.totals.epochs, ledger.totals.rows) == (2, 3)


def test_after_a_replay_the_next_epoch_is_taken(query: Query) -> None:
    query.start().write(0, ["a"])
    run = query.start()
    run.write(0, ["again"])
    run.write(1, ["b"])
    assert query.world.rows == ["a", "b"]


def test_a_replay_may_be_replayed(query: Query) -> None:
    for _ in range(3):
        query.start().write(0, ["a"])
    assert query.world.rows == ["a"]


# -- chunks must be there


def test_a_missing_chunk_fails_the_batch_and_nothing_takes_effect(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["b", "c", "d"], ["e"])
    query.world.memory.log[query.name, receipts[0].task.attempt].pop(1)
    with pytest.raises(StagedDataMissing):
        run.commit(1, receipts)
    assert query.world.rows == ["a"]
    assert query.ledger.decision.epoch == 0
    run.abort(1, receipts)
    query.start().write(1, ["b", "c", "d"], ["e"])
    assert query.world.rows == list("abcde")


def test_a_chunk_with_another_row_count_fails_the_batch(query: Query) -> None:
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    run.stage_task(receipts[0].task, ["x"])
    with pytest.raises(StagedDataMissing):
        run.commit(0, receipts)
    assert query.world.rows == []


# -- deciding


@pytest.mark.parametrize("fault", [SENT_TWICE, REPLY_LOST, REQUEST_LOST], ids=str)
@pytest.mark.parametrize("step", ["publish", "decide", "swap", "apply", "prepare", "read", "stage"])
def test_a_commit_gets_over_one_lost_or_repeated_message(
    query: Query, step: str, fault: Fault
) -> None:
    store = query.faulty()
    run = query.start()
    run.write(0, ["a"])
    store.fail_next(step, fault)
    run.write(1, ["b", "c", "d"])
    run.write(2, ["e"])
    assert query.world.rows == list("abcde")
    assert query.world.staged() == 0


def test_a_decide_that_arrives_after_the_ledger_was_moved_is_void(query: Query) -> None:
    store = query.faulty()
    run = query.start()
    run.write(0, ["a"])
    store.fail_next("publish" if query.world.memory.whole_epochs else "decide", LATE)
    run.write(1, ["b"])
    store.deliver_all()
    run.write(2, ["c"])
    assert query.world.rows == ["a", "b", "c"]
    assert query.ledger.totals.rows == 3


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
    store, tries = query.faulty(), []

    def never_answers(*_: object) -> None:
        tries.append(1)
        raise StoreUnreachable("no answer")

    store.publish = never_answers  # type: ignore[attr-defined]
    with pytest.raises(StoreUnreachable, match="no answer"):
        run.commit(0, receipts)
    assert 2 <= len(tries) <= QUICK.max_retries + 1
    assert query.world.rows == []
