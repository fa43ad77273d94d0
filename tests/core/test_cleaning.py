"""Late cleaning: what no decision can hold any more goes, and its failure harms nothing."""

from __future__ import annotations

import pytest
from tests.worlds import MemoryWorld

from sparkonce.errors import StoreError
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import REQUEST_LOST


@pytest.mark.parametrize("step", ["staged", "discard"])
def test_a_clean_up_that_fails_does_not_fail_the_commit_and_the_next_one_cleans(
    query: Query, step: str
) -> None:
    store, run = query.faulty(), query.start()
    run.stage(0, ["from a speculative task that lost"])
    store.fail_next(step, REQUEST_LOST)
    run.write(0, ["a"])
    assert query.world.staged() > 0
    run.write(1, ["b"])
    assert query.world.staged() == 0
    assert query.world.rows == ["a", "b"]


def test_a_clean_up_that_is_refused_does_not_fail_the_commit(query: Query) -> None:
    run = query.start()
    store = query.faulty()

    def refuse(*_: object) -> None:
        raise StoreError("no right to delete")

    store.discard = refuse  # type: ignore[attr-defined]
    assert run.write(0, ["a"]).decision.epoch == 0


def test_what_tasks_stage_too_late_is_dropped_by_the_next_commit(query: Query) -> None:
    run = query.start()
    run.write(0, ["a"])
    run.write(1, ["b"])
    run.stage_late(0, ["zombie of epoch 0"])
    run.stage_late(1, ["zombie of epoch 1"])
    assert query.world.staged() == 2
    run.write(2, ["c"])
    assert query.world.staged() == 0
    assert query.world.rows == ["a", "b", "c"]


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
