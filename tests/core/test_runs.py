"""Runs: one at a time commits to a sink, and the one that decided last is the one that goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.worlds import MemoryWorld, move_ledger

from sparkonce.errors import ConcurrentDriver
from sparkonce.tck.simulation.actors import Query


def test_a_run_that_another_one_has_followed_is_refused(query: Query) -> None:
    old, new = query.start(), query.start()
    old.write(0, ["a"])
    new.write(1, ["b"])
    for epoch in (1, 2):
        with pytest.raises(ConcurrentDriver, match=new.run_id):
            old.write(epoch, ["x"])
    new.write(2, ["c"])
    assert query.world.rows == ["a", "b", "c"]


@pytest.mark.parametrize("sleeper_decides", [True, False])
def test_a_replay_supersedes_nobody_and_who_decides_next_goes_on(
    query: Query, sleeper_decides: bool
) -> None:
    """A driver wakes up and replays what the one that has taken over replayed, too."""
    query.start().write(0, ["a"])
    sleeper, successor = query.start(), query.start()
    successor.write(0, ["replayed"])
    sleeper.write(0, ["replayed late"])
    winner, loser = (sleeper, successor) if sleeper_decides else (successor, sleeper)
    receipts = loser.stage(1, ["x"])
    winner.write(1, ["b"])
    with pytest.raises(ConcurrentDriver, match=winner.run_id):
        loser.commit(1, receipts)
    loser.abort(1, receipts)
    winner.write(2, ["c"])
    assert query.world.rows == ["a", "b", "c"]
    assert query.world.staged() == 0


def test_the_one_that_decided_goes_on_beside_a_replay(query: Query) -> None:
    one, two = query.start(), query.start()
    one.write(0, ["a"])
    two.write(0, ["replayed"])
    one.write(1, ["b"])
    with pytest.raises(ConcurrentDriver):
        two.write(1, ["x"])
    assert query.world.rows == ["a", "b"]


def test_a_replay_is_still_one_though_something_moves_the_ledger(query: Query) -> None:
    query.start().write(0, ["a"])
    new = Query(query.world).start()
    receipts = new.stage(0, ["replayed"])
    new.query.faulty().before("swap", lambda: move_ledger(query))
    new.commit(0, receipts)
    assert query.ledger.owner.replayed == {new.run_id: 0}


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
    for epoch in range(40):
        query.start().write(epoch, ["a"])
        query.start().write(epoch, ["replayed"])
    assert len(query.ledger.owner.past_runs) == len(query.ledger.owner.replayed) == 32
    assert query.world.rows == ["a"] * 40


def test_a_commit_without_any_task_does_not_end_the_run(world: MemoryWorld) -> None:
    """Where a batch has no task there is no message, and so no run id."""
    query = Query(world)
    run = query.start()
    run.write(0, ["a"])
    nameless = replace(run.driver(1), run_id="")
    run.committer().commit(nameless, [])
    run.write(2, ["b"])
    assert world.rows == ["a", "b"]
