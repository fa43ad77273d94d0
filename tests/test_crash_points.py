"""The process, the network or the store fails at every single call, in every way.

For each call of a fault-free run and each kind of fault: run, fail there, restart and replay with
other rows until all epochs are committed. Then every epoch took effect once, as one whole.
"""

from __future__ import annotations

import random

import pytest
from tests.chaos import Spark, require_clean, require_exactly_once, require_in_order
from tests.faults import ALL, LATE, FaultyStore, Fault
from tests.kit import Query, World

from sparkonce.errors import ConcurrentDriver, StaleSkip

EPOCHS = 2


def one_query(world: World, faults: dict[int, Fault]) -> tuple[FaultyStore, list[Spark]]:
    """Three epochs of one query, with restarts."""
    store = FaultyStore(world.memory, faults)
    world.store = store
    spark = Spark(Query(world))
    spark.run_to(EPOCHS)
    return store, [spark]


def finish_and_check(world: World, store: FaultyStore, sparks: list[Spark]) -> None:
    """Let late requests arrive, commit one more epoch without any fault, and count."""
    store.deliver_all()
    world.store = world.memory
    live = sparks[-1]
    live.run_to(live.checkpoint.committed + 1)
    for spark in sparks:
        require_exactly_once(spark)
    require_in_order(world)
    require_clean(world, *(spark.query for spark in sparks))


def calls_without_fault(whole_epochs: bool) -> int:
    store, _ = one_query(World(whole_epochs=whole_epochs), {})
    return len(store.calls)


@pytest.mark.parametrize("fault", ALL, ids=str)
@pytest.mark.parametrize("whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"])
def test_one_fault_at_any_call_changes_nothing(whole_epochs: bool, fault: Fault) -> None:
    for at in range(calls_without_fault(whole_epochs) + 5):
        world = World(whole_epochs=whole_epochs)
        store, sparks = one_query(world, {at: fault})
        finish_and_check(world, store, sparks)
        allowed = (ConcurrentDriver, StaleSkip) if fault in LATE else ()
        assert all(isinstance(error, allowed) for error in sparks[0].refusals), (at, sparks[0].refusals)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"])
def test_many_faults_change_nothing(whole_epochs: bool, seed: int) -> None:
    for n in range(60):
        dice = random.Random(f"{seed}/{n}")
        world = World(whole_epochs=whole_epochs)
        faults = {dice.randrange(90): dice.choice(ALL) for _ in range(dice.randint(2, 6))}
        store, sparks = one_query(world, faults)
        finish_and_check(world, store, sparks)
