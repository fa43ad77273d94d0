"""Who writes: identity comes before any comparison of epochs, and one query at a time owns a sink.

Each test runs twice where it can: with a sink named by `sinkId`, and with the default sink id,
where only the path of the checkpoint tells that a new query replaces an old one.
"""

from __future__ import annotations

import pytest
from tests.worlds import MemoryWorld

from sparkonce.errors import CheckpointReplaced, QueryRetired, SinkBehindCheckpoint
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash, Fault

SINK_IDS = pytest.mark.parametrize("sink_id", [None, "orders"], ids=["default", "sinkId"])


def old_and_new(
    world: MemoryWorld, sink_id: str | None, *, repeatable: bool = False
) -> tuple[Query, Query]:
    """A query that has written two epochs, and one with a new checkpoint at the same path."""
    old = Query(world, id="old", sink_id=sink_id, repeatable=repeatable)
    run = old.start()
    run.write(0, ["a"])
    run.write(1, ["b"])
    return old, Query(world, id="new", sink_id=sink_id, repeatable=repeatable)


# -- what can't be repeated is refused


@SINK_IDS
def test_a_new_checkpoint_is_refused_and_the_override_named(
    world: MemoryWorld, sink_id: str | None
) -> None:
    _, new = old_and_new(world, sink_id)
    with pytest.raises(CheckpointReplaced, match="onNewCheckpoint=continue:old"):
        new.start().write(0, ["a"])
    assert world.rows == ["a", "b"]


@SINK_IDS
@pytest.mark.parametrize("epoch", [0, 1, 2, 7])
def test_identity_comes_before_epochs(world: MemoryWorld, sink_id: str | None, epoch: int) -> None:
    _, new = old_and_new(world, sink_id)
    new.on_lost_commit = f"continue@{epoch}"
    with pytest.raises(CheckpointReplaced):
        new.start().write(epoch, ["x"], offsets="others")
    assert world.rows == ["a", "b"]


@SINK_IDS
def test_a_refused_query_leaves_the_old_one_alone(world: MemoryWorld, sink_id: str | None) -> None:
    old, new = old_and_new(world, sink_id)
    run = new.start()
    receipts = run.stage(0, ["x"])
    with pytest.raises(CheckpointReplaced):
        run.commit(0, receipts)
    run.abort(0, receipts)
    old.start().write(2, ["c"])
    assert world.rows == ["a", "b", "c"]
    assert world.staged() == 0


@SINK_IDS
def test_the_override_lets_the_new_query_start_anew(
    world: MemoryWorld, sink_id: str | None
) -> None:
    _, new = old_and_new(world, sink_id)
    new.on_new_checkpoint = "continue:old"
    run = new.start()
    ledger = run.write(0, ["c"])
    run.write(1, ["d"])
    assert world.rows == ["a", "b", "c", "d"]
    assert (ledger.owner.generation, ledger.owner.retired, ledger.owner.query_id) == (
        2,
        ("old",),
        "new",
    )


@SINK_IDS
@pytest.mark.parametrize("override", ["continue:other", "continue:new", "continue:", "fail"])
def test_the_override_is_good_for_the_query_it_names(
    world: MemoryWorld, sink_id: str | None, override: str
) -> None:
    _, new = old_and_new(world, sink_id)
    new.on_new_checkpoint = override
    with pytest.raises(CheckpointReplaced):
        new.start().write(0, ["x"])


@SINK_IDS
def test_the_override_left_in_does_not_let_the_next_query_pass(
    world: MemoryWorld, sink_id: str | None
) -> None:
    _, new = old_and_new(world, sink_id)
    new.on_new_checkpoint = "continue:old"
    new.start().write(0, ["c"])
    third = Query(world, id="third", sink_id=sink_id, on_new_checkpoint="continue:old")
    with pytest.raises(CheckpointReplaced, match="continue:new"):
        third.start().write(0, ["x"])
    new.start().write(1, ["d"])
    assert world.rows == ["a", "b", "c", "d"]


@SINK_IDS
def test_an_override_for_nobody_is_harmless(world: MemoryWorld, sink_id: str | None) -> None:
    query = Query(world, sink_id=sink_id, on_new_checkpoint="continue:nobody")
    query.start().write(0, ["a"])
    query.start().write(1, ["b"])
    assert world.rows == ["a", "b"]


@SINK_IDS
def test_a_new_query_that_does_not_start_at_epoch_0_is_refused(
    world: MemoryWorld, sink_id: str | None
) -> None:
    _, new = old_and_new(world, sink_id)
    new.on_new_checkpoint = "continue:old"
    with pytest.raises(SinkBehindCheckpoint):
        new.start().write(2, ["x"])


@SINK_IDS
def test_a_new_query_is_refused_though_the_one_before_never_got_to_commit(
    world: MemoryWorld, sink_id: str | None
) -> None:
    """The second was allowed to go on after the first, say with later offsets; nobody allowed
    the third, which reads from the beginning.
    """
    _, new = old_and_new(world, sink_id)
    new.on_new_checkpoint = "continue:old"
    new.faulty().fail_next("prepare", DIES_BEFORE)
    with pytest.raises(Crash):
        new.start().write(0, ["c"])
    with pytest.raises(CheckpointReplaced):
        Query(world, id="third", sink_id=sink_id).start().write(0, ["a"])
    assert world.rows == ["a", "b"]


@SINK_IDS
def test_a_query_that_never_committed_is_replaced_without_a_word(
    world: MemoryWorld, sink_id: str | None
) -> None:
    run = Query(world, id="old", sink_id=sink_id).start()
    run.abort(0, run.stage(0, ["x"]))
    Query(world, id="new", sink_id=sink_id).start().write(0, ["a"])
    assert world.rows == ["a"]


# -- what can be repeated goes on


@SINK_IDS
def test_upsert_goes_on_under_a_new_generation_and_says_so(
    world: MemoryWorld, sink_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    _, new = old_and_new(world, sink_id, repeatable=True)
    ledger = new.start().write(0, ["a again"])
    assert world.rows == ["a", "b", "a again"]
    assert (ledger.owner.generation, ledger.owner.retired, ledger.decision.epoch) == (
        2,
        ("old",),
        0,
    )
    assert "new replaces query old" in caplog.text.replace("Query ", "")


@SINK_IDS
def test_upsert_refuses_too_where_it_is_told_to(world: MemoryWorld, sink_id: str | None) -> None:
    _, new = old_and_new(world, sink_id, repeatable=True)
    new.on_new_checkpoint = "fail"
    with pytest.raises(CheckpointReplaced):
        new.start().write(0, ["x"])


@SINK_IDS
def test_generations_count_on(world: MemoryWorld, sink_id: str | None) -> None:
    for number in range(4):
        query = Query(world, id=f"query {number}", sink_id=sink_id, repeatable=True)
        ledger = query.start().write(0, [f"row {number}"])
        assert ledger.owner.generation == number + 1
        assert ledger.owner.retired == tuple(f"query {n}" for n in range(number))


# -- a retired query


@SINK_IDS
@pytest.mark.parametrize("repeatable", [True, False], ids=["upsert", "increment"])
@pytest.mark.parametrize("override", [None, "continue:new", "continue:old"])
def test_a_retired_query_can_never_commit_again(
    world: MemoryWorld, sink_id: str | None, repeatable: bool, override: str | None
) -> None:
    old, new = old_and_new(world, sink_id, repeatable=repeatable)
    new.on_new_checkpoint = "continue:old"
    new.start().write(0, ["c"])
    old.on_new_checkpoint, old.on_lost_commit = override, "continue@2"
    for epoch in (0, 1, 2):
        run = old.start()
        receipts = run.stage(epoch, ["x"])
        with pytest.raises(QueryRetired):
            run.commit(epoch, receipts)
        run.abort(epoch, receipts)
    new.start().write(1, ["d"])
    assert world.rows == ["a", "b", "c", "d"]
    assert world.staged() == 0


@SINK_IDS
def test_a_driver_retired_in_the_middle_of_its_commit_is_refused(
    world: MemoryWorld, sink_id: str | None
) -> None:
    old, new = old_and_new(world, sink_id, repeatable=True)
    run = old.start()
    receipts = run.stage(2, ["late"])
    new_run = new.start()
    old.faulty().before("publish", lambda: new_run.write(0, ["c"]))
    with pytest.raises(QueryRetired):
        run.commit(2, receipts)
    assert world.rows == ["a", "b", "c"]


def test_what_a_retired_query_staged_is_dropped(world: MemoryWorld) -> None:
    old, new = old_and_new(world, "orders", repeatable=True)
    old.start().stage(2, ["of the old query"])
    new.start().write(0, ["c"])
    assert world.staged() == 0


def test_what_a_retired_query_staged_is_dropped_under_the_default_sink_id(
    world: MemoryWorld,
) -> None:
    old, new = old_and_new(world, None, repeatable=True)
    old.start().stage(2, ["of the old query"])
    run = new.start()
    run.write(0, ["c"])
    run.write(1, ["d"])
    assert world.staged() == 0


@SINK_IDS
def test_a_decide_of_the_old_query_that_arrives_late_is_void(
    world: MemoryWorld, sink_id: str | None
) -> None:
    old, new = old_and_new(world, sink_id, repeatable=True)
    store = old.faulty()
    step = "publish" if world.memory.whole_epochs else "decide"
    store.fail_next(step, Fault("dies, arrives late", late=99, crash=True))
    with pytest.raises(Crash):
        old.start().write(2, ["late"])
    new.start().write(0, ["c"])
    store.deliver_all()
    new.start().write(1, ["d"])
    assert world.rows == ["a", "b", "c", "d"]


# -- two queries that both run


def test_the_error_of_two_queries_with_one_sink_id_names_it(world: MemoryWorld) -> None:
    owner = Query(world, "owner", "orders", "/checkpoints/a", repeatable=True)
    owner.start().write(0, ["a"])
    other = Query(world, "other", "orders", "/checkpoints/b", repeatable=True)
    with pytest.raises(
        CheckpointReplaced, match="this one a sinkId and a checkpoint path of its own"
    ):
        other.start().write(0, ["x"])
    other.on_new_checkpoint = "continue:owner"
    other.start().write(0, ["b"])
    with pytest.raises(QueryRetired, match="a sinkId \\(not 'orders'\\) of its own"):
        owner.start().write(1, ["x"])
    assert world.rows == ["a", "b"]


@pytest.mark.parametrize("sink_id", [None, "orders"])
@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("neighbour", [True, False])
def test_rows_that_may_be_added_again_are_told_of_where_nothing_else_would(
    world: MemoryWorld,
    caplog: pytest.LogCaptureFixture,
    sink_id: str | None,
    repeatable: bool,
    neighbour: bool,
) -> None:
    """An increment by default begins anew at another path."""
    if neighbour:
        Query(world, "old", checkpoint="/checkpoints/a").start().write(0, ["a"])
    new = Query(world, "new", sink_id, "/checkpoints/b", repeatable=repeatable)
    for epoch in range(2):
        new.start().write(epoch, ["b"])
    Query(world, "aborted", checkpoint="/checkpoints/c").start().stage(0, ["x"])
    told = neighbour and not repeatable and sink_id is None
    assert caplog.text.count(f"Sink {new.name!r} begins at epoch 0") == int(told)
    assert caplog.text.count("What to do: ") == int(told)
