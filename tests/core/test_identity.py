"""Who writes: identity comes before any comparison of epochs, and one query at a time owns a sink.

Each test runs twice where it can: with a sink named by `sinkId`, and with the default sink id,
where only the path of the checkpoint tells that a new query replaces an old one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.scenarios import MemoryWorld

from sparkonce.errors import CheckpointReplaced, QueryRetired, SinkBehindCheckpoint, SinkRenamed
from sparkonce.tck.memory_subject import PLAN
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash


@pytest.fixture(params=[None, "orders"], ids=["default", "sinkId"])
def sink_id(request: pytest.FixtureRequest) -> str | None:
    return request.param


def successor(world: MemoryWorld, sink_id: str | None, **options: Any) -> Query:
    """A query with a new checkpoint at the path of one that has written two epochs."""
    repeatable = options.get("repeatable", False)
    run = Query(world, id="old", sink_id=sink_id, repeatable=repeatable).start()
    run.write(0, ["a"])
    run.write(1, ["b"])
    return Query(world, id="new", sink_id=sink_id, **options)


# -- a new checkpoint


@pytest.mark.parametrize(
    "override", [None, "continue:other", "continue:new", "continue:", "fail"], ids=str
)
@pytest.mark.parametrize("repeatable", [False, True], ids=["increment", "upsert"])
def test_a_new_checkpoint_is_refused_unless_an_override_names_the_query_before(
    world: MemoryWorld, sink_id: str | None, override: str | None, repeatable: bool
) -> None:
    """Where rows can be repeated, only where the option says so."""
    new = successor(world, sink_id, on_new_checkpoint=override, repeatable=repeatable)
    if repeatable and override != "fail":
        assert new.start().write(0, ["a again"]).owner.generation == 2
        return
    with pytest.raises(CheckpointReplaced, match="onNewCheckpoint=continue:old"):
        new.start().write(0, ["a"])
    assert world.rows == ["a", "b"]


def test_the_override_lets_the_new_query_start_anew_and_does_not_let_the_next_one_pass(
    world: MemoryWorld, sink_id: str | None
) -> None:
    new = successor(world, sink_id, on_new_checkpoint="continue:old")
    with pytest.raises(SinkBehindCheckpoint):
        new.start().write(2, ["x"])
    owner = new.start().write(0, ["c"]).owner
    assert (owner.generation, owner.retired, owner.query_id) == (2, ("old",), "new")
    third = Query(world, id="third", sink_id=sink_id, on_new_checkpoint="continue:old")
    with pytest.raises(CheckpointReplaced, match="continue:new"):
        third.start().write(0, ["x"])
    new.start().write(1, ["d"])
    assert world.rows == ["a", "b", "c", "d"]


def test_an_override_for_nobody_is_harmless(world: MemoryWorld, sink_id: str | None) -> None:
    query = Query(world, sink_id=sink_id, on_new_checkpoint="continue:nobody")
    query.start().write(0, ["a"])
    query.start().write(1, ["b"])
    assert world.rows == ["a", "b"]


def test_upsert_goes_on_under_a_new_generation_and_says_so(
    world: MemoryWorld, sink_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = successor(world, sink_id, repeatable=True).start().write(0, ["a again"])
    assert world.rows == ["a", "b", "a again"]
    assert (ledger.owner.retired, ledger.decision.epoch) == (("old",), 0)
    assert "new replaces query old" in caplog.text.replace("Query ", "")


# -- two queries that both run


def test_the_error_of_two_queries_with_one_sink_id_names_it(world: MemoryWorld) -> None:
    owner = Query(world, "owner", "orders", "/checkpoints/a", repeatable=True)
    owner.start().write(0, ["a"])
    other = Query(world, "other", "orders", "/checkpoints/b", repeatable=True)
    with pytest.raises(CheckpointReplaced, match="this one its own sinkId and checkpoint path"):
        other.start().write(0, ["x"])
    other.on_new_checkpoint = "continue:owner"
    other.start().write(0, ["b"])
    with pytest.raises(QueryRetired, match="own checkpoint path and a sinkId \\(not 'orders'\\)"):
        owner.start().write(1, ["x"])
    assert world.rows == ["a", "b"]


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


# -- a claim says which sink a checkpoint path writes to: paths move, and are taken over


PATH, OTHER = "/checkpoints/orders", "/checkpoints/moved"


def test_a_path_may_write_to_two_targets(world: MemoryWorld) -> None:
    """After a change of the target, with a new checkpoint at the old path."""
    one, two = (replace(PLAN, target=f"memory:{name}") for name in ("one", "two"))
    Query(world, id="one", plan=one).start().write(0, ["a"])
    Query(world, id="two", plan=two).start().write(0, ["b"])
    Query(world, id="one", plan=one).start().write(1, ["c"])
    assert world.rows == ["a", "b", "c"]


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


@pytest.mark.parametrize(
    ("before", "after"), [(None, "orders"), ("orders", None), ("orders", "sales")]
)
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
