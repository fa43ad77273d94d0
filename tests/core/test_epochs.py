"""Epochs: each comes after the one before, and a replay is the very epoch that was decided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.worlds import move_ledger

from sparkonce.errors import (
    CheckpointBehindSink,
    CheckpointDiverged,
    ConcurrentDriver,
    DecisionLost,
    SinkBehindCheckpoint,
    StaleSkip,
)
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import REQUEST_LOST


def written(query: Query, epochs: int) -> Query:
    """The query, after so many epochs of one row each."""
    run = query.start()
    for epoch in range(epochs):
        run.write(epoch, [f"row {epoch}"], offsets=f"offsets {epoch}")
    return query


# -- the sink lacks epochs


@pytest.mark.parametrize("known", [0, 2], ids=["no ledger", "two epochs"])
@pytest.mark.parametrize("gap", [1, 5])
def test_an_epoch_that_is_not_the_next_is_refused(query: Query, known: int, gap: int) -> None:
    written(query, known)
    before = list(query.world.rows)
    epoch = known + gap
    with pytest.raises(SinkBehindCheckpoint, match=f"onLostCommit=continue@{epoch}\\b"):
        query.start().write(epoch, ["x"])
    assert query.world.rows == before


@pytest.mark.parametrize("known", [0, 2], ids=["no ledger", "two epochs"])
def test_the_override_lets_the_named_epoch_pass_and_no_other(query: Query, known: int) -> None:
    written(query, known)
    query.on_lost_commit = f"continue@{known + 3}"
    for wrong in (known + 1, known + 2, known + 4):
        with pytest.raises(SinkBehindCheckpoint):
            query.start().write(wrong, ["x"])
    query.start().write(known + 3, ["y"])
    assert query.world.rows == [*(f"row {epoch}" for epoch in range(known)), "y"]


def test_the_override_left_in_is_harmless(query: Query) -> None:
    written(query, 1)
    query.on_lost_commit = "continue@4"
    query.start().write(4, ["a"])
    query.start().write(4, ["replayed"])
    query.start().write(5, ["b"])
    with pytest.raises(CheckpointBehindSink):
        query.start().write(4, ["again"])
    with pytest.raises(SinkBehindCheckpoint):
        query.start().write(7, ["lost"])
    assert query.world.rows == ["row 0", "a", "b"]


def test_a_store_that_lost_its_last_commit_is_noticed_in_mid_run(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    before = query.world.snapshot()
    run.write(1, ["b"])
    query.world.restore(before)
    with pytest.raises(SinkBehindCheckpoint):
        run.write(2, ["c"])
    assert query.world.rows == ["a"]


def test_a_store_that_lost_everything_is_noticed(query: Query) -> None:
    empty = query.world.snapshot()
    run = query.start()
    run.write(0, ["a"])
    query.world.restore(empty)
    with pytest.raises(SinkBehindCheckpoint, match="holds no epoch"):
        run.write(1, ["b"])


@pytest.mark.parametrize("step", ["publish", "decide"])
def test_a_ledger_that_vanishes_in_the_middle_of_a_commit_is_an_error(
    query: Query, step: str
) -> None:
    run = query.start()
    run.write(0, ["a"])
    receipts = run.stage(1, ["b"])
    store = query.faulty()
    store.before("publish", query.world.memory.records.clear)
    store.fail_next(step, REQUEST_LOST)
    with pytest.raises(DecisionLost, match="vanished"):
        run.commit(1, receipts)
    assert query.world.rows == ["a"]


def test_a_store_and_a_checkpoint_restored_together_go_on(query: Query) -> None:
    written(query, 1)
    before = query.world.snapshot()
    query.start().write(1, ["lost with the store"])
    query.world.restore(before)
    query.start().write(1, ["again"])
    assert query.world.rows == ["row 0", "again"]


def test_a_revision_that_comes_back_after_a_loss_is_not_the_same_revision(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    before = query.world.snapshot()
    run.write(1, ["b"])
    receipts = run.stage(2, ["c"])

    def lose_the_last_epoch() -> None:
        old, log = query.ledger.revision, query.world.snapshot()["log"]
        query.world.restore({**before, "log": log})
        while query.ledger.revision < old:
            move_ledger(query, 1)

    query.faulty().before("prepare", lose_the_last_epoch)
    with pytest.raises((SinkBehindCheckpoint, ConcurrentDriver)):
        run.commit(2, receipts)
    assert query.world.rows == ["a"]


# -- the checkpoint lacks epochs


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_earlier_epoch_is_refused_and_both_causes_are_named(query: Query, epoch: int) -> None:
    written(query, 3)
    with pytest.raises(CheckpointBehindSink) as refused:
        query.start().write(epoch, ["x"])
    assert "restored" in str(refused.value)
    assert "second driver" in str(refused.value)
    assert query.world.rows == ["row 0", "row 1", "row 2"]


# -- the same number, another epoch


def test_a_replay_with_other_offsets_is_another_epoch(query: Query) -> None:
    written(query, 2)
    with pytest.raises(CheckpointDiverged, match="Epoch 1"):
        query.start().write(1, ["x"], offsets="others")
    assert query.world.rows == ["row 0", "row 1"]


@pytest.mark.parametrize(
    ("decided", "replayed"), [("o", "o"), (None, "o"), ("o", None), (None, None)]
)
def test_a_replay_with_the_same_or_unknown_offsets_is_the_same_epoch(
    query: Query, decided: str | None, replayed: str | None
) -> None:
    query.start().write(0, ["a"], offsets=decided)
    query.start().write(0, ["b"], offsets=replayed)
    assert query.world.rows == ["a"]


def test_a_replay_does_not_change_the_offsets_that_were_decided(query: Query) -> None:
    query.start().write(0, ["a"], offsets="o")
    query.start().write(0, ["b"])
    with pytest.raises(CheckpointDiverged):
        query.start().write(0, ["c"], offsets="others")


def test_the_next_epoch_must_follow_the_one_that_was_decided(query: Query) -> None:
    """A copy of the checkpoint has gone another way before."""
    written(query, 2)
    run = query.start()
    with pytest.raises(CheckpointDiverged, match="Epoch 1"):
        run.commit(2, run.stage(2, ["x"]), "offsets 2", offsets_before="others")
    run.commit(2, run.stage(2, ["c"]), "offsets 2", offsets_before="offsets 1")
    assert query.world.rows == ["row 0", "row 1", "c"]


def test_after_a_lost_commit_that_is_overridden_there_is_nothing_to_follow(query: Query) -> None:
    written(query, 2)
    query.on_lost_commit = "continue@5"
    run = query.start()
    run.commit(5, run.stage(5, ["c"]), "offsets 5", offsets_before="offsets 4")
    assert query.world.rows == ["row 0", "row 1", "c"]


def test_the_next_epoch_may_have_any_offsets(query: Query) -> None:
    written(query, 2)
    query.start().write(2, ["c"], offsets="offsets 0")
    assert len(query.world.rows) == 3


# -- skipped rows


def test_a_replay_for_which_all_tasks_skipped_is_done(query: Query) -> None:
    written(query, 1)
    receipts = query.start().stage(0, ["x"], ["y"])
    assert {receipt.skipped for receipt in receipts} == {query.ledger.decision.token}
    query.start().commit(0, receipts)
    assert query.world.rows == ["row 0"]


def test_a_replay_for_which_some_tasks_skipped_drops_the_others(query: Query) -> None:
    late = query.start()
    staged = late.stage_task(late.task(0, 0), ["x"])
    written(query, 1)
    skipped = late.stage_task(late.task(0, 1), ["y"])
    late.commit(0, [staged, skipped])
    assert query.world.rows == ["row 0"]
    assert query.world.staged() == 0


def test_a_skip_for_a_decision_that_the_store_lost_is_refused(query: Query) -> None:
    written(query, 1)
    before = query.world.snapshot()
    written_then = query.start()
    written_then.write(1, ["lost"])
    skipped = query.start().stage(1, ["x"])
    query.world.restore(before)
    run = query.start()
    mixed = [*skipped, run.stage_task(run.task(1, 1), ["y"])]
    with pytest.raises(StaleSkip, match="Partition 0 of epoch 1"):
        run.commit(1, mixed)
    assert query.world.rows == ["row 0"]


def test_a_skip_for_another_decision_of_the_same_epoch_is_refused(query: Query) -> None:
    written(query, 1)
    before = query.world.snapshot()
    query.start().write(1, ["lost"])
    skipped = query.start().stage(1, ["x"])
    query.world.restore(before)
    query.start().write(1, ["decided instead"])
    with pytest.raises(StaleSkip):
        query.start().commit(1, skipped)
    assert query.world.rows == ["row 0", "decided instead"]


def test_a_skip_is_never_good_for_a_first_epoch(query: Query) -> None:
    run = query.start()
    receipt = replace(run.stage(0, [])[0], skipped="")
    with pytest.raises(StaleSkip):
        run.commit(0, [receipt])
