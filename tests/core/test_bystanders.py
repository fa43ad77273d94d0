"""A driver that commits, and an operator at the same ledger.

Each test tries every order in which one interrupts the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import pytest
from integration.support.marks import slow_rows
from tests.scenarios import MemoryWorld

from sparkonce.errors import QueryRetired, SparkonceError
from sparkonce.operate.admin import Admin
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.duel import Duel, every_order
from sparkonce.tck.simulation.oracles import require_clean, require_exactly_once
from sparkonce.tck.simulation.restarts import SimulatedSpark

pytestmark = pytest.mark.usefixtures("quiet")
NAME = Query(MemoryWorld()).name


def about_to_commit(whole_epochs: bool, epoch: int, act: Callable[[Store], None]) -> Duel:
    """A driver that is about to commit, and an operator."""
    duel = Duel(MemoryWorld(whole_epochs=whole_epochs))
    spark = SimulatedSpark(Query(duel.world))
    spark.run_to(epoch - 1)
    duel.driver(spark, epoch)
    duel.actors.append(act)
    return duel


def collect(store: Store) -> None:
    admin = Admin(store)
    for sink in admin.sinks():
        admin.gc(sink, 0.0)  # the commit takes longer than its grace


def recover(store: Store) -> None:
    admin = Admin(store)
    for _ in range(2):
        for sink in admin.sinks():
            admin.recover(sink)


def forget(store: Store) -> None:
    # An epoch that is just being applied is finished first.
    with contextlib.suppress(SparkonceError):
        Admin(store).forget(NAME)


@pytest.mark.parametrize(
    ("act", "whole_epochs", "epoch"),
    [
        *((collect, True, 0), (collect, False, 0), (recover, False, 1)),
        *slow_rows((collect, True, 1), (collect, False, 1)),
    ],
)
def test_gc_and_recover_beside_a_commit(
    act: Callable[[Store], None], whole_epochs: bool, epoch: int
) -> None:
    def verify(duel: Duel) -> None:
        """The driver, restarted, commits its epoch and the next."""
        spark = duel.sparks[0]
        spark.run_to(spark.checkpoint.committed + 2)
        require_exactly_once(spark)
        require_clean(duel.world, spark.query)

    every_order(partial(about_to_commit, whole_epochs, epoch, act), verify)


@pytest.mark.parametrize(("whole_epochs", "epoch"), [(True, 0), (True, 1), (False, 0), (False, 1)])
def test_forget_beside_a_commit(whole_epochs: bool, epoch: int) -> None:
    def verify(duel: Duel) -> None:
        spark = duel.sparks[0]
        while not spark.query.ledger.owner.forgotten:
            forget(duel.world.memory)
        before = list(duel.world.rows)
        assert not spark.run_until_failure(spark.checkpoint.committed + 1)
        assert isinstance(spark.refusals[-1], QueryRetired)
        assert duel.world.rows == before
        require_exactly_once(spark)

    every_order(partial(about_to_commit, whole_epochs, epoch, forget), verify, step=2)


# -- one order of two drivers that a kit of all orders does not ask enough of


def test_of_two_new_queries_one_can_go_on() -> None:
    """The first reads its ledger; then the second takes the path over; then the first does."""
    world = MemoryWorld()
    first, second = (SimulatedSpark(Query(world, id=name)) for name in "ab")
    duel = Duel(world)
    duel.driver(first, 0)
    duel.driver(second, 0)
    duel.fight([1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0])
    assert any(spark.run_until_failure(1) for spark in (first, second)), (
        first.refusals,
        second.refusals,
    )
