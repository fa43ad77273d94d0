"""A claim says which sink a checkpoint path writes to: paths move, and are taken over."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import count

import pytest
from tests.worlds import PLAN, MemoryWorld

from sparkonce.errors import CheckpointReplaced, QueryRetired, SinkRenamed, SparkonceError
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import (
    DIES_AFTER,
    DIES_BEFORE,
    REPLY_LOST,
    REQUEST_LOST,
    Crash,
    Fault,
)

PATH, OTHER = "/checkpoints/orders", "/checkpoints/moved"


def test_two_queries_with_paths_of_their_own_share_a_target(world: MemoryWorld) -> None:
    one, two = Query(world, id="one", checkpoint=PATH), Query(world, id="two", checkpoint=OTHER)
    for epoch in range(2):
        one.start().write(epoch, [f"one {epoch}"])
        two.start().write(epoch, [f"two {epoch}"])
    assert world.rows == ["one 0", "two 0", "one 1", "two 1"]


def test_a_path_may_write_to_two_targets(world: MemoryWorld) -> None:
    """After a change of the target, with a new checkpoint at the old path."""
    one, two = (replace(PLAN, target=f"memory:{name}") for name in ("one", "two"))
    Query(world, id="one", plan=one).start().write(0, ["a"])
    Query(world, id="two", plan=two).start().write(0, ["b"])
    Query(world, id="one", plan=one).start().write(1, ["c"])
    assert world.rows == ["a", "b", "c"]


def test_a_moved_checkpoint_goes_on(world: MemoryWorld) -> None:
    Query(world, checkpoint=PATH).start().write(0, ["a"])
    moved = Query(world, checkpoint=OTHER)
    moved.start().write(0, ["replayed"])
    moved.start().write(1, ["b"])
    assert world.rows == ["a", "b"]
    assert moved.ledger.owner.checkpoint == OTHER
    assert moved.ledger.owner.generation == 1


def test_a_moved_checkpoint_holds_its_new_path(world: MemoryWorld) -> None:
    Query(world, checkpoint=PATH).start().write(0, ["a"])
    Query(world, checkpoint=OTHER).start().write(1, ["b"])
    with pytest.raises(CheckpointReplaced):
        Query(world, id="b", checkpoint=OTHER).start().write(0, ["x"])
    Query(world, checkpoint=PATH).start().write(2, ["c"])
    assert world.rows == ["a", "b", "c"]


def test_moving_into_the_path_of_another_query_replaces_that_query(world: MemoryWorld) -> None:
    mover, other = Query(world, id="mover", checkpoint=PATH), Query(world, id="o", checkpoint=OTHER)
    mover.start().write(0, ["a"])
    other.start().write(0, ["b"])
    mover.checkpoint = OTHER
    with pytest.raises(CheckpointReplaced):
        mover.start().write(1, ["x"])
    mover.on_new_checkpoint = "continue:o"
    mover.start().write(1, ["c"])
    with pytest.raises(QueryRetired):
        other.start().write(1, ["x"])
    assert world.rows == ["a", "b", "c"]


def test_a_path_taken_over_can_be_taken_over_again(world: MemoryWorld) -> None:
    for number in range(4):
        override = f"continue:query{number - 1}"
        query = Query(world, id=f"query{number}", on_new_checkpoint=override)
        query.start().write(0, [f"row {number}"])
    for number in range(3):
        with pytest.raises(QueryRetired):
            Query(world, id=f"query{number}").start().write(1, ["x"])
    query.start().write(1, ["last"])
    assert world.rows == ["row 0", "row 1", "row 2", "row 3", "last"]


def test_from_sink_id_to_default_and_back_the_path_is_the_same(world: MemoryWorld) -> None:
    Query(world, id="one", sink_id="orders").start().write(0, ["a"])
    with pytest.raises(CheckpointReplaced, match="continue:one"):
        Query(world, id="two").start().write(0, ["x"])
    Query(world, id="two", on_new_checkpoint="continue:one").start().write(0, ["b"])
    with pytest.raises(CheckpointReplaced, match="continue:two"):
        Query(world, id="three", sink_id="sales").start().write(0, ["x"])
    assert world.rows == ["a", "b"]


def test_where_the_path_is_not_known_the_sink_id_still_tells(world: MemoryWorld) -> None:
    Query(world, id="one", sink_id="orders", checkpoint=None).start().write(0, ["a"])
    with pytest.raises(CheckpointReplaced):
        Query(world, id="two", sink_id="orders", checkpoint=None).start().write(0, ["x"])
    assert world.rows == ["a"]


def test_a_path_that_becomes_known_is_claimed(world: MemoryWorld) -> None:
    Query(world, checkpoint=None).start().write(0, ["a"])
    Query(world, checkpoint=PATH).start().write(1, ["b"])
    with pytest.raises(CheckpointReplaced):
        Query(world, id="new", checkpoint=PATH).start().write(0, ["x"])


@pytest.mark.parametrize("whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"])
@pytest.mark.parametrize("sink_id", [None, "orders"], ids=["default", "sinkId"])
@pytest.mark.parametrize(
    "fault", [DIES_AFTER, REQUEST_LOST, REPLY_LOST, Fault("late", late=1)], ids=str
)
def test_a_take_over_interrupted_anywhere_is_taken_up_again(
    sink_id: str | None, fault: Fault, whole_epochs: bool
) -> None:
    for at in count():
        world = MemoryWorld(whole_epochs=whole_epochs)
        old = Query(world, id="old", sink_id=sink_id)
        old.start().write(0, ["a"])
        new = Query(world, id="new", sink_id=sink_id, on_new_checkpoint="continue:old")
        store = new.faulty()
        store.fail_at(at, fault)
        try:
            new.start().write(0, ["b"])
        except (Crash, SparkonceError):
            new.through = None
            new.start().write(0, ["b again"])
        store.deliver_all()
        new.through = None
        with pytest.raises(QueryRetired):
            old.start().write(1, ["x"])
        new.start().write(1, ["c"])
        assert world.rows in (["a", "b", "c"], ["a", "b again", "c"])
        assert new.ledger.owner.query_id == "new"
        if at >= len(store.calls):
            assert at > 8
            return


def test_a_take_over_after_a_refusal_is_the_same_as_without(world: MemoryWorld) -> None:
    Query(world, id="old").start().write(0, ["a"])
    new = Query(world, id="new")
    run = new.start()
    receipts = run.stage(0, ["x"])
    with pytest.raises(CheckpointReplaced):
        run.commit(0, receipts)
    run.abort(0, receipts)
    new.on_new_checkpoint = "continue:old"
    ledger = new.start().write(0, ["b"])
    assert (ledger.owner.generation, ledger.owner.retired) == (2, ("old",))


def replaced_twice_over(world: MemoryWorld, *, repeatable: bool) -> tuple[Query, Query, Query]:
    """Two queries, and one that takes the sinkId of the one and the path of the other."""
    by_id = Query(world, id="x", sink_id="orders", checkpoint=PATH, repeatable=repeatable)
    by_path = Query(world, id="y", checkpoint=OTHER, repeatable=repeatable)
    by_id.start().write(0, ["x 0"])
    by_path.start().write(0, ["y 0"])
    new = Query(world, id="new", sink_id="orders", checkpoint=OTHER, repeatable=repeatable)
    return by_id, by_path, new


def test_a_query_that_takes_over_a_sink_id_and_a_path_retires_both(world: MemoryWorld) -> None:
    by_id, by_path, new = replaced_twice_over(world, repeatable=True)
    new.on_new_checkpoint = "continue:x"
    ledger = new.start().write(0, ["new 0"])
    assert set(ledger.owner.retired) == {"x", "y"}
    for old in (by_id, by_path):
        for epoch in (0, 1):
            with pytest.raises(QueryRetired):
                old.start().write(epoch, ["x"])
    new.start().write(1, ["new 1"])
    assert world.rows == ["x 0", "y 0", "new 0", "new 1"]


@pytest.mark.parametrize("override", ["continue:x", "continue:y"])
def test_a_query_that_may_replace_only_one_of_two_retires_none(
    world: MemoryWorld, override: str
) -> None:
    by_id, by_path, new = replaced_twice_over(world, repeatable=False)
    new.on_new_checkpoint = override
    with pytest.raises(CheckpointReplaced):
        new.start().write(0, ["new"])
    by_id.start().write(1, ["x 1"])
    by_path.start().write(1, ["y 1"])
    assert world.rows == ["x 0", "y 0", "x 1", "y 1"]


def test_a_query_that_replaces_one_after_the_other_retires_both(world: MemoryWorld) -> None:
    """It died before its first epoch, and its checkpoint was moved to a path that was in use."""
    first = Query(world, id="x", sink_id="orders", checkpoint=PATH, repeatable=True)
    first.start().write(0, ["x 0"])
    new = Query(world, id="new", sink_id="orders", checkpoint=PATH, repeatable=True)
    new.faulty().fail_next("prepare", DIES_BEFORE)
    with pytest.raises(Crash):
        new.start().write(0, ["lost"])
    new.through = None
    second = Query(world, id="y", checkpoint=OTHER, repeatable=True)
    second.start().write(0, ["y 0"])
    new.checkpoint = OTHER
    ledger = new.start().write(0, ["new 0"])
    assert set(ledger.owner.retired) == {"x", "y"}
    assert ledger.owner.generation >= 2
    for old in (first, second):
        with pytest.raises(QueryRetired):
            old.start().write(0, ["x"])


# -- one checkpoint, another sinkId

RENAMES = pytest.mark.parametrize(
    ("before", "after"),
    [(None, "orders"), ("orders", None), ("orders", "sales")],
    ids=["given", "removed", "changed"],
)


@RENAMES
@pytest.mark.parametrize("override", [None, "continue@1"])
def test_another_sink_id_on_the_same_checkpoint_is_refused_until_it_is_set_back(
    world: MemoryWorld, before: str | None, after: str | None, override: str | None
) -> None:
    Query(world, sink_id=before).start().write(0, ["a"])
    renamed = Query(world, sink_id=after, on_lost_commit=override, repeatable=True).start()
    receipts = renamed.stage(1, ["b"])
    with pytest.raises(SinkRenamed, match=f"sinkId={before or 'a'}"):
        renamed.commit(1, receipts)
    renamed.abort(1, receipts)
    Query(world, sink_id=before).start().write(1, ["b"])
    assert world.rows == ["a", "b"]
    assert world.staged() == 0


@RENAMES
@pytest.mark.parametrize("epoch", [0, 1])
def test_another_sink_id_does_not_apply_a_replayed_epoch_again(
    world: MemoryWorld, before: str | None, after: str | None, epoch: int
) -> None:
    """Spark replays an epoch that was decided but is not in its commit log."""
    run = Query(world, sink_id=before).start()
    for earlier in range(epoch + 1):
        run.write(earlier, [f"row {earlier}"])
    renamed = Query(world, sink_id=after, on_lost_commit=f"continue@{epoch}")
    with contextlib.suppress(SparkonceError):
        renamed.start().write(epoch, [f"row {epoch}"])
    assert world.rows == [f"row {n}" for n in range(epoch + 1)]


@RENAMES
def test_two_drivers_of_one_checkpoint_with_other_sink_ids_do_not_both_commit(
    world: MemoryWorld, before: str | None, after: str | None
) -> None:
    old = Query(world, sink_id=before).start()
    old.write(0, ["row 0"])
    new = Query(world, sink_id=after, on_lost_commit="continue@1").start()
    for run in (new, old, new):
        for epoch in (1, 2):
            try:
                run.write(epoch, [f"row {epoch}"])
            except SparkonceError:
                continue
    assert sorted(world.rows) == ["row 0", "row 1", "row 2"]
