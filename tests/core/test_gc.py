"""An operator drops what nobody needs any more, beside queries that still stage."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from tests.worlds import MemoryWorld, decide_and_die, die_before

from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.protocol import Staged, attempt_of
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash

HOUR = 3600.0


def test_gc_drops_what_is_older_than_its_grace(query: Query, admin: Admin) -> None:
    query.start().stage(0, ["a", "b", "c"], ["d"])
    [sink] = admin.sinks()
    assert admin.gc(sink, HOUR) == 0
    assert query.world.staged() == 3
    assert admin.gc(sink, 0.0) == 2
    assert query.world.staged() == 0


def test_gc_drops_what_is_over_whatever_its_age(query: Query, admin: Admin) -> None:
    run = query.start()
    run.write(0, ["a"])
    run.stage_late(0, ["zombie"])
    run.stage(1, ["next"])
    [sink] = admin.sinks()
    assert admin.gc(sink, HOUR) == 1
    [left] = query.world.memory.staged(query.name)
    assert left.epoch == 1


def test_what_is_decided_is_no_leftover() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b", "c"])
    [sink] = Admin(query.world.memory).sinks()
    assert sink.leftovers(0.0) == []


def test_gc_never_drops_what_was_decided_since_it_looked() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    admin, run = Admin(query.world.memory), query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    [sink] = admin.sinks()
    query.faulty().fail_next("apply", DIES_BEFORE)
    with pytest.raises(Crash):
        run.commit(0, receipts)
    assert admin.gc(sink, 0.0) == 0
    Query(query.world).start().write(0)
    assert query.world.rows == ["a", "b", "c"]


def test_gc_spares_an_epoch_whose_tasks_still_stage(
    query: Query, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of when it is asked to drop. A task that is done for hours counts once the last one is."""
    run = query.start()
    receipts = run.stage(0, ["early"])
    now = time.monotonic()
    monkeypatch.setattr("sparkonce.tck.simulation.memory.time.monotonic", lambda: now + 2 * HOUR)
    [sink] = admin.sinks()
    assert len(sink.leftovers(HOUR)) == 1
    receipts += [run.stage_task(run.task(0, 1), ["late"])]
    assert admin.gc(sink, HOUR) == 0
    run.commit(0, receipts)
    assert query.world.rows == ["early", "late"]


def test_gc_reads_what_an_older_release_staged_as_of_one_run() -> None:
    """It named attempts by a token alone: they grow old together, and apart from those of today."""
    old = [Staged(token * 32, "q", 3, 1, age) for token, age in (("a", 10.0), ("b", 5000.0))]
    new = Staged(attempt_of("run", "c" * 32), "q", 3, 1, 1.0)
    assert SinkStatus("s", None, (*old, new)).leftovers(HOUR) == []
    aged = [replace(one, age=one.age + HOUR) for one in old]
    assert SinkStatus("s", None, (*aged, new)).leftovers(HOUR) == aged


def undecided(world: MemoryWorld, name: str, checkpoint: str) -> Query:
    query = Query(world, id=name, checkpoint=checkpoint)
    [receipt] = die_before(query, "publish", 0, ["a"])
    world.memory.discard(query.name, [receipt.task.attempt])
    return query


def test_gc_takes_ledgers_away_that_decided_nothing(world: MemoryWorld, admin: Admin) -> None:
    left, busy = undecided(world, "left", "/c/left"), undecided(world, "busy", "/c/busy")
    busy.start().stage(0, ["a"])
    decided = Query(world, id="decided", checkpoint="/c/decided")
    decided.start().write(0, ["b"])
    assert admin.sweep(HOUR) == 0
    assert admin.sweep(0.0) == 1
    assert {sink.name for sink in admin.sinks()} == {busy.name, decided.name}
    left.start().write(0, ["c"])
    assert world.rows == ["b", "c"]
