"""Runs: one at a time commits to a sink, and the one that started last is the one that goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.kit import World

from sparkonce.errors import ConcurrentDriver
from sparkonce.tck.actors import Query


def test_a_run_that_another_one_has_followed_is_refused(query: Query) -> None:
    old, new = query.start(), query.start()
    old.write(0, ["a"])
    new.write(1, ["b"])
    for epoch in (1, 2):
        with pytest.raises(ConcurrentDriver, match=new.run_id):
            old.write(epoch, ["x"])
    new.write(2, ["c"])
    assert query.world.rows == ["a", "b", "c"]


def test_a_run_is_followed_by_a_mere_replay_too(query: Query) -> None:
    old, new = query.start(), query.start()
    old.write(0, ["a"])
    new.write(0, ["replayed"])
    with pytest.raises(ConcurrentDriver):
        old.write(1, ["x"])
    new.write(1, ["b"])
    assert query.world.rows == ["a", "b"]


def test_a_replay_supersedes_the_run_before_though_something_moves_the_ledger(
    query: Query,
) -> None:
    old, new = query.start(), Query(query.world).start()
    old.write(0, ["a"])
    receipts = new.stage(0, ["replayed"])
    new.query.faulty().before("swap", lambda: query.start().abort(0, []))
    new.commit(0, receipts)
    assert query.ledger.run_id == new.run_id
    with pytest.raises(ConcurrentDriver):
        old.write(1, ["x"])


def test_of_two_first_commits_the_second_is_a_replay(query: Query) -> None:
    one, two = query.start(), query.start()
    receipts = two.stage(0, ["b"])
    one.write(0, ["a"])
    two.commit(0, receipts)
    with pytest.raises(ConcurrentDriver):
        one.write(1, ["x"])
    assert query.world.rows == ["a"]
    assert query.world.staged() == 1, "of the run that was refused, until it aborts"


def test_a_driver_overtaken_in_the_middle_of_its_commit_is_refused(query: Query) -> None:
    query.start().write(0, ["a"])
    slow, fast = query.start(), Query(query.world).start()
    receipts = slow.stage(1, ["slow"])
    query.faulty().before("publish", lambda: fast.write(1, ["fast"]))
    with pytest.raises(ConcurrentDriver):
        slow.commit(1, receipts)
    fast.write(2, ["next"])
    assert query.world.rows == ["a", "fast", "next"]


def test_runs_superseded_are_remembered_but_not_all(query: Query) -> None:
    first = query.start()
    first.write(0, ["a"])
    for _ in range(40):
        query.start().write(0, ["replayed"])
    assert len(query.ledger.past_runs) == 32
    assert query.world.rows == ["a"]


def test_a_commit_without_any_task_does_not_end_the_run(world: World) -> None:
    """Where a batch has no task there is no message, and so no run id."""
    query = Query(world)
    run = query.start()
    run.write(0, ["a"])
    nameless = replace(run.driver(1), run_id="")
    run.committer().commit(nameless, [])
    run.write(2, ["b"])
    assert world.rows == ["a", "b"]
