"""Batches: their numbers only grow, a run writes each once, and one without a name leaves none."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.ledgers import by_part
from tests.scenarios import MemoryWorld, decide_and_die

from sparkonce.errors import ConcurrentDriver, RecordDamaged, WrittenTwice
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows, Record
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import DIES_BEFORE, Crash


@pytest.fixture(params=[True, False], ids=["whole epochs", "chunk by chunk"])
def batches(request: pytest.FixtureRequest) -> Query:
    """What foreachBatch writes: no checkpoint is known, and numbers only grow."""
    world = MemoryWorld(whole_epochs=request.param)
    return Query(world, checkpoint=None, follows=Follows.GROWS)


def dies_at(query: Query, step: str, epoch: int, rows: list[str], run: Run | None = None) -> None:
    query.faulty().fail_next(step, DIES_BEFORE)
    with pytest.raises(Crash):
        (run or query.start()).write(epoch, rows)
    query.through = None


def test_a_write_that_failed_undecided_is_written_by_its_repetition() -> None:
    query = Query(MemoryWorld(whole_epochs=False), checkpoint=None, follows=Follows.GROWS)
    run = query.start()
    dies_at(query, "decide", 3, ["a"], run)
    run.write(3, ["b"])
    assert query.world.rows == ["b"]


def test_a_second_write_of_one_run_is_refused_also_if_the_first_was_not_finished() -> None:
    """It may be the same rows again, or others: nobody can tell. The first ones are finished."""
    query = Query(MemoryWorld(whole_epochs=False), checkpoint=None, follows=Follows.GROWS)
    run = query.start()
    dies_at(query, "apply", 3, ["a"], run)
    with pytest.raises(WrittenTwice):
        run.write(3, ["b"])
    assert query.world.rows == ["a"]
    query.start().write(3, ["drawn anew"])
    assert query.world.rows == ["a"]


def test_a_run_that_was_superseded_is_refused(batches: Query) -> None:
    old = batches.start()
    old.write(3, ["a"])
    batches.start().write(4, ["b"])
    with pytest.raises(ConcurrentDriver):
        old.write(5, ["c"])
    assert batches.world.rows == ["a", "b"]


def test_a_version_that_an_earlier_release_wrote_is_skipped_whoever_comes(batches: Query) -> None:
    """It did not keep which query wrote it."""
    batches.named = True
    batches.start().write(7, ["a"])
    ledger = batches.ledger
    batches.store.swap(
        batches.name, ledger.moved(**by_part(ledger, stream=None)).to_record(), ledger.stamp
    )
    batches.stream = "some query"
    batches.start().write(7, ["drawn anew"])
    assert batches.world.rows == ["a"]


# -- without a name


@pytest.fixture
def nameless(batches: Query) -> Query:
    batches.follows = Follows.ONCE
    return batches


def test_a_driver_that_finds_its_batch_finished_by_others_does_not_write_it_again() -> None:
    query = Query(MemoryWorld(whole_epochs=False), checkpoint=None, follows=Follows.ONCE)
    store = query.faulty()
    store.before("apply", lambda: recover_all(query.world.store))
    Run(query, "").write(0, ["a"])
    assert query.world.rows == ["a"]


def test_who_finishes_it_meets_its_driver_that_has_finished_it_too() -> None:
    world = MemoryWorld(whole_epochs=False)
    slow = Query(world, "slow", checkpoint=None, follows=Follows.ONCE)
    dies_at(slow, "apply", 0, ["old"], Run(slow, ""))
    other = Query(world, "other", checkpoint=None, follows=Follows.ONCE)

    def finished() -> None:
        recover_all(world.store)
        world.store.swap(slow.name, Record(), slow.ledger.stamp)

    other.faulty().before("swap", finished)
    Run(other, "").write(0, ["new"])
    assert world.in_order() == ["old", "new"]


def recover_all(store: Store) -> None:
    admin = Admin(store)
    for sink in admin.sinks():
        admin.recover(sink)


@pytest.mark.parametrize("follows", [Follows.NEXT, Follows.GROWS])
def test_who_comes_after_such_a_batch_is_remembered(nameless: Query, follows: Follows) -> None:
    """It died before it decided anything, under a name that a stream or an application has now."""
    nameless.sink_id = "orders"
    dies_at(nameless, "prepare", 0, ["a"], Run(nameless, ""))
    after = Query(nameless.world, "b", "orders", checkpoint=None, follows=follows)
    after.start().write(0, ["b"])
    after.start().write(0, ["drawn anew"])
    assert nameless.world.rows == ["b"]


def test_a_batch_lets_a_stream_that_lives_finish_what_it_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It goes on from epoch to epoch, each of which another stream overtakes."""
    world = MemoryWorld(whole_epochs=False)
    live, other = (Query(world, id=name, checkpoint=f"/{name}") for name in "ab")
    decide_and_die(live, 0, ["a/0"])
    other.start().write(0, ["b/0"])
    # Of this module alone: other threads of the process sleep, too.
    clock = SimpleNamespace(sleep=lambda _: goes_on())
    monkeypatch.setattr("sparkonce.exactly_once.neighbours.time", clock)

    def goes_on() -> None:
        live.start().write(0, ["a/0"])  # it skips them
        decide_and_die(live, 1, ["a/1"])
        other.start().write(1, ["b/1"])

    batch = Query(world, id="p", checkpoint=None, follows=Follows.ONCE)
    Run(batch, "").write(0, ["p/0"])
    assert world.rows == ["b/0", "a/0", "b/1", "p/0"]
    assert live.ledger.decision.manifest is not None


def test_a_ledger_in_the_way_that_is_damaged_names_its_sink() -> None:
    world = MemoryWorld(whole_epochs=False)
    stream = Query(world, id="a", checkpoint="/a")
    decide_and_die(stream, 0, ["a/0"])
    world.memory.records[stream.name] = replace(world.memory.records[stream.name], body="{")
    batch = Query(world, id="p", checkpoint=None, follows=Follows.ONCE)
    with pytest.raises(RecordDamaged, match=r"This batch cannot finish .* sink 'a@.*' has decided"):
        Run(batch, "").write(0, ["p/0"])
