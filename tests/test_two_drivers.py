"""Two drivers at one store: of one query, or of two that want the same sink.

Each test tries every order in which one interrupts the other.
"""

from __future__ import annotations

import pytest
from tests.chaos import Checkpoint, Spark, require_clean, require_exactly_once, require_in_order
from tests.duel import Duel, every_order
from tests.kit import Query, World

from sparkonce.errors import CheckpointReplaced, ConcurrentDriver, QueryRetired

pytestmark = pytest.mark.usefixtures("quiet")
WHOLE = pytest.mark.parametrize(
    "whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"]
)


# -- one query, two runs


@WHOLE
@pytest.mark.parametrize("before", [0, 1])
def test_two_drivers_of_one_checkpoint_commit_each_epoch_once(
    whole_epochs: bool, before: int
) -> None:
    def prepare() -> Duel:
        duel = Duel(World(whole_epochs=whole_epochs))
        checkpoint = Checkpoint()
        Spark(Query(duel.world), checkpoint).run_to(before - 1)
        for _ in range(2):
            duel.driver(Spark(Query(duel.world), checkpoint), before)
        return duel

    def verify(duel: Duel) -> None:
        refusals = [error for spark in duel.sparks for error in spark.refusals]
        assert all(isinstance(error, ConcurrentDriver) for error in refusals), refusals
        successor = Spark(Query(duel.world), duel.sparks[0].checkpoint)
        successor.run_to(before + 1)
        require_exactly_once(successor)
        require_in_order(duel.world)
        require_clean(duel.world, successor.query)

    every_order(prepare, verify, alike=True)


def test_a_run_that_stages_and_goes_on_while_another_commits() -> None:
    def prepare() -> Duel:
        duel = Duel(World(whole_epochs=False))
        checkpoint = Checkpoint()
        duel.running(Spark(Query(duel.world), checkpoint), 1)
        duel.driver(Spark(Query(duel.world), checkpoint), 0)
        return duel

    def verify(duel: Duel) -> None:
        successor = Spark(Query(duel.world), duel.sparks[0].checkpoint)
        successor.run_to(2)
        require_exactly_once(successor)
        require_clean(duel.world, successor.query)

    every_order(prepare, verify, alike=True, step=4)


def test_two_drivers_of_one_checkpoint_with_other_sink_ids_commit_each_epoch_once() -> None:
    def prepare() -> Duel:
        duel = Duel(World(whole_epochs=False))
        checkpoint = Checkpoint()
        for sink_id in (None, "orders"):
            duel.driver(Spark(Query(duel.world, sink_id=sink_id), checkpoint), 0)
        return duel

    def verify(duel: Duel) -> None:
        for spark in duel.sparks * 2:
            spark.run_until_failure(1)
            require_exactly_once(spark)
        assert duel.sparks[0].checkpoint.committed == 1, "neither goes on"
        sinks = {spark.query.name for spark in duel.sparks if spark.refusals == []}
        assert len(sinks) <= 1, "both write"

    every_order(prepare, verify, alike=True)


# -- two queries


@pytest.mark.parametrize(
    ("whole_epochs", "sink_id"),
    [(True, None), (False, None), (False, "orders")],
    ids=["whole epochs", "chunk by chunk", "sinkId"],
)
def test_of_two_new_queries_at_once_one_gets_the_sink(
    whole_epochs: bool, sink_id: str | None
) -> None:
    def prepare() -> Duel:
        duel = Duel(World(whole_epochs=whole_epochs))
        for name in "ab":
            duel.driver(Spark(Query(duel.world, id=name, sink_id=sink_id)), 0)
        return duel

    def verify(duel: Duel) -> None:
        for spark in duel.sparks:
            spark.run_until_failure(1)
            require_exactly_once(spark)
        assert len({row[0] for row in duel.world.rows}) <= 1, "both wrote"
        refusals = [error for spark in duel.sparks for error in spark.refusals]
        assert all(
            isinstance(error, CheckpointReplaced | QueryRetired | ConcurrentDriver)
            for error in refusals
        )

    every_order(prepare, verify, alike=True)


def test_of_two_new_queries_one_can_go_on() -> None:
    """The first reads its ledger; then the second takes the path over; then the first does."""
    world = World()
    first, second = (Spark(Query(world, id=name)) for name in "ab")
    duel = Duel(world)
    duel.driver(first, 0)
    duel.driver(second, 0)
    duel.fight([1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    assert any(spark.run_until_failure(1) for spark in (first, second)), (
        first.refusals,
        second.refusals,
    )


@WHOLE
@pytest.mark.parametrize(
    ("sink_id", "repeatable"),
    [(None, False), ("orders", True)],
    ids=["default, increment", "sinkId, upsert"],
)
def test_a_query_that_is_replaced_while_it_commits_loses_or_doubles_nothing(
    whole_epochs: bool, sink_id: str | None, repeatable: bool
) -> None:
    def prepare() -> Duel:
        world = World(whole_epochs=whole_epochs)
        override = None if repeatable else "continue:old"
        old = Spark(Query(world, id="old", sink_id=sink_id, repeatable=repeatable))
        new = Spark(
            Query(
                world,
                id="new",
                sink_id=sink_id,
                repeatable=repeatable,
                on_new_checkpoint=override,
            )
        )
        old.run_to(0)
        duel = Duel(world)
        duel.driver(old, 1)
        duel.driver(new, 0)
        return duel

    def verify(duel: Duel) -> None:
        old, new = duel.sparks
        new.run_to(1)
        assert not old.run_until_failure(2)
        assert isinstance(old.refusals[-1], QueryRetired)
        require_exactly_once(old)
        require_exactly_once(new)
        require_clean(duel.world, old.query, new.query)

    every_order(prepare, verify)
