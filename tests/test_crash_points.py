"""The process, the network or the store fails at every single call, in every way.

For each call of a fault-free run and each kind of fault: run, fail there, restart and replay with
other rows until all epochs are committed. Then every epoch took effect once, as one whole.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.chaos import Spark, require_clean, require_exactly_once, require_in_order
from tests.faults import ALL, CRASHES, LATE, LOSSES, Fault, FaultyStore
from tests.kit import Query, World

from sparkonce.errors import ConcurrentDriver, StaleSkip

pytestmark = pytest.mark.usefixtures("quiet")
WHOLE = pytest.mark.parametrize(
    "whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"]
)
Scenario = Callable[[World], list[Spark]]


def one_query(world: World) -> list[Spark]:
    """Two epochs of one query, with restarts."""
    spark = Spark(Query(world))
    spark.run_to(1)
    return [spark]


def restarted_query(world: World) -> list[Spark]:
    """A query that is stopped, moved, and gets the path of its checkpoint as an option."""
    query = Query(world, checkpoint=None)
    spark = Spark(query)
    spark.run_to(0)
    for path in ("/here", "/there"):
        query.checkpoint = path
        spark.run_to(spark.checkpoint.committed + 1)
    return [spark]


def replaced(sink_id: str | None) -> Scenario:
    """A query whose checkpoint is deleted, and the one that goes on for it."""

    def run(world: World) -> list[Spark]:
        old = Spark(Query(world, id="old", sink_id=sink_id))
        new = Spark(Query(world, id="new", sink_id=sink_id, on_new_checkpoint="continue:old"))
        old.run_to(0)
        new.run_to(0)
        assert not old.run_until_failure(1), "the old query commits beside the new one"
        return [old, new]

    return run


def calls_of(scenario: Scenario, *, whole_epochs: bool) -> list[str]:
    """The calls that a run without faults makes."""
    world = World(whole_epochs=whole_epochs)
    store = FaultyStore(world.memory)
    world.store = store
    scenario(world)
    return store.calls


def fail(scenario: Scenario, faults: dict[int, Fault], *, whole_epochs: bool) -> list[Spark]:
    """Run with faults, let late requests arrive, commit one more epoch without any, and count."""
    world = World(whole_epochs=whole_epochs)
    store = FaultyStore(world.memory, faults)
    world.store = store
    sparks = scenario(world)
    store.deliver_all()
    world.store = world.memory
    sparks[-1].run_to(sparks[-1].checkpoint.committed + 1)
    for spark in sparks:
        require_exactly_once(spark)
    require_in_order(world)
    require_clean(world, *(spark.query for spark in sparks))
    return sparks


@pytest.mark.parametrize(
    ("whole_epochs", "fault"),
    [
        *((False, fault) for fault in ALL),
        *((True, fault) for fault in (*CRASHES, *LOSSES[:2], *LATE[::2])),
    ],
    ids=str,
)
def test_one_fault_at_any_call_changes_nothing(whole_epochs: bool, fault: Fault) -> None:
    calls = calls_of(one_query, whole_epochs=whole_epochs)
    assert len(calls) > 20
    allowed = (ConcurrentDriver, StaleSkip) if fault in LATE else ()
    for at in range(len(calls)):
        [spark] = fail(one_query, {at: fault}, whole_epochs=whole_epochs)
        assert all(isinstance(error, allowed) for error in spark.refusals), (at, spark.refusals)


@pytest.mark.parametrize("fault", [*CRASHES, *LOSSES[:2], LATE[1], LATE[6]], ids=str)
@pytest.mark.parametrize(
    "scenario",
    [restarted_query, replaced(None), replaced("orders")],
    ids=["moved", "replaced, default sink id", "replaced, sinkId"],
)
@WHOLE
def test_one_fault_at_any_call_of_a_change_of_identity_changes_nothing(
    whole_epochs: bool, scenario: Scenario, fault: Fault
) -> None:
    for at, call in enumerate(calls_of(scenario, whole_epochs=whole_epochs)):
        if call != "stage":
            fail(scenario, {at: fault}, whole_epochs=whole_epochs)


@pytest.mark.parametrize("seed", range(3))
@WHOLE
def test_many_faults_change_nothing(whole_epochs: bool, seed: int) -> None:
    for number in range(40):
        dice = random.Random(f"{seed}/{number}")
        faults = {dice.randrange(60): dice.choice(ALL) for _ in range(dice.randint(2, 6))}
        fail(one_query, faults, whole_epochs=whole_epochs)
