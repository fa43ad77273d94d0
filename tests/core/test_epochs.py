"""Epochs: each comes after the one before, and a replay is the very epoch that was decided."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace

import pytest
from tests.ledgers import with_fields

from sparkonce.errors import (
    CheckpointBehindSink,
    CheckpointDiverged,
    DecisionLost,
    SinkBehindCheckpoint,
    StaleSkip,
)
from sparkonce.exactly_once.driver import LONGEST, Offsets
from sparkonce.operate.admin import Admin
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
    has = "ends at epoch 1" if known else "holds no epoch"
    told = f"{has}.*onLostCommit=continue@{known}-{epoch - 1}\\b"
    with pytest.raises(SinkBehindCheckpoint, match=told):
        query.start().write(epoch, ["x"])
    assert query.world.rows == before


@pytest.mark.parametrize("known", [0, 2], ids=["no ledger", "two epochs"])
def test_the_override_lets_the_named_epoch_pass_and_no_other(query: Query, known: int) -> None:
    written(query, known)
    query.on_lost_commit = f"continue@{known}-{known + 2}"
    for wrong in (known + 1, known + 2, known + 4):
        with pytest.raises(SinkBehindCheckpoint):
            query.start().write(wrong, ["x"])
    query.start().write(known + 3, ["y"])
    assert query.world.rows == [*(f"row {epoch}" for epoch in range(known)), "y"]


def test_the_override_left_in_is_harmless(query: Query) -> None:
    written(query, 1)
    query.on_lost_commit = "continue@1-3"
    query.start().write(4, ["a"])
    query.start().write(4, ["replayed"])
    query.start().write(5, ["b"])
    with pytest.raises(CheckpointBehindSink):
        query.start().write(4, ["again"])
    with pytest.raises(SinkBehindCheckpoint):
        query.start().write(7, ["lost"])
    assert query.world.rows == ["row 0", "a", "b"]


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
    query.on_lost_commit = "continue@2-4"
    run = query.start()
    run.commit(5, run.stage(5, ["c"]), "offsets 5", offsets_before="offsets 4")
    assert query.world.rows == ["row 0", "row 1", "c"]


def test_the_next_epoch_may_have_any_offsets(query: Query) -> None:
    written(query, 2)
    query.start().write(2, ["c"], offsets="offsets 0")
    assert len(query.world.rows) == 3


# -- skipped rows


def test_a_skip_is_never_good_for_a_first_epoch(query: Query) -> None:
    run = query.start()
    receipt = replace(run.stage(0, [])[0], skipped="")
    with pytest.raises(StaleSkip, match="Partition 0 of epoch 0"):
        run.commit(0, [receipt])


# -- how the offsets of decided epochs are kept in the store, beside the ledger


KAFKA = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":17}}')


def test_offsets_come_back_as_they_were() -> None:
    assert KAFKA.packed is not None
    assert Offsets.unpacked(KAFKA.packed) == KAFKA


def test_offsets_that_are_very_long_are_not_kept() -> None:
    many = {str(number): 10**12 + number * 7919 for number in range(20_000)}
    assert Offsets(json.dumps({"topic": many}).encode()).packed is not None
    noise = os.urandom(LONGEST).hex()
    assert Offsets(noise.encode()).packed is None
    assert re.fullmatch("[0-9a-f]{64}", Offsets(noise.encode()).digest)


def offsets_of(epoch: int, partitions: int = 10_000) -> str:
    """Those of a topic of Kafka, with so many partitions."""
    topic = {str(number): 10**12 + epoch * 7919 + number * 104_729 for number in range(partitions)}
    return f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps({"topic": topic})}'


def test_those_of_the_last_two_epochs_are_kept_and_the_ledger_carries_none(
    query: Query, admin: Admin
) -> None:
    for epoch in range(3):
        query.start().commit(epoch, [], offsets_of(epoch))
    kept = admin.offsets(query.ledger)
    assert {epoch: one.text.decode() for epoch, one in kept.items()} == {
        epoch: offsets_of(epoch) for epoch in (1, 2)
    }
    assert len(query.ledger.to_record().body) < 2000


def test_those_of_another_query_or_decision_are_not_taken_for_them(
    query: Query, admin: Admin
) -> None:
    for epoch in range(2):
        query.start().commit(epoch, [], offsets_of(epoch, 1))
    ledger = query.ledger
    assert set(admin.offsets(ledger)) == {0, 1}
    assert set(admin.offsets(with_fields(ledger, offsets="another"))) == {0}
    assert set(admin.offsets(with_fields(ledger, former_offsets="another"))) == {1}
    assert set(admin.offsets(with_fields(ledger, former_offsets=None))) == {1}
    assert admin.offsets(ledger.succeeded_by("another")) == {}
    assert admin.offsets(None) == {}


def test_a_sink_that_is_forgotten_keeps_none(query: Query, admin: Admin) -> None:
    query.start().commit(0, [], offsets_of(0))
    assert [sink.name for sink in admin.sinks()] == [query.name]
    admin.forget(query.name)
    assert query.world.memory.names() == [query.name]
