"""A driver that commits, and an operator at the same ledger.

Each test tries every order in which one interrupts the other.
"""

from __future__ import annotations

import contextlib

import pytest
from integration.support.marks import slow_cases
from tests.worlds import MemoryWorld

from sparkonce.errors import QueryRetired, SparkonceError
from sparkonce.operate.admin import Admin
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.duel import Duel, every_order
from sparkonce.tck.simulation.oracles import require_clean, require_exactly_once
from sparkonce.tck.simulation.restarts import SimulatedSpark

pytestmark = pytest.mark.usefixtures("quiet")
WHOLE = pytest.mark.parametrize(
    "whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"]
)


def lone_driver(whole_epochs: bool, epoch: int) -> Duel:
    """A driver that is about to commit."""
    duel = Duel(MemoryWorld(whole_epochs=whole_epochs))
    spark = SimulatedSpark(Query(duel.world))
    spark.run_to(epoch - 1)
    duel.driver(spark, epoch)
    return duel


def require_one_epoch_more(duel: Duel) -> None:
    """The driver, restarted, commits its epoch and the next."""
    spark = duel.sparks[0]
    spark.run_to(spark.checkpoint.committed + 2)
    require_exactly_once(spark)
    require_clean(duel.world, spark.query)


@WHOLE
@pytest.mark.parametrize("epoch", [0, *slow_cases(1)])
def test_gc_beside_a_commit_that_takes_longer_than_its_grace(
    whole_epochs: bool, epoch: int
) -> None:
    def prepare() -> Duel:
        duel = lone_driver(whole_epochs, epoch)
        duel.actors.append(collect)
        return duel

    def collect(store: Store) -> None:
        admin = Admin(store)
        for sink in admin.sinks():
            admin.gc(sink, 0.0)

    every_order(prepare, require_one_epoch_more)


def test_recover_beside_a_commit() -> None:
    def prepare() -> Duel:
        duel = lone_driver(False, 1)
        duel.actors.append(recover)
        return duel

    def recover(store: Store) -> None:
        admin = Admin(store)
        for _ in range(2):
            for sink in admin.sinks():
                admin.recover(sink)

    every_order(prepare, require_one_epoch_more)


@pytest.mark.parametrize(
    ("whole_epochs", "epoch"),
    [(True, 0), (True, 1), (False, 0), (False, 1)],
)
def test_forget_beside_a_commit(whole_epochs: bool, epoch: int) -> None:
    def prepare() -> Duel:
        duel = lone_driver(whole_epochs, epoch)
        name = duel.sparks[0].query.name
        duel.actors.append(lambda store: forget(store, name))
        return duel

    def forget(store: Store, name: str) -> None:
        # An epoch that is just being applied is finished first.
        with contextlib.suppress(SparkonceError):
            Admin(store).forget(name)

    def verify(duel: Duel) -> None:
        spark = duel.sparks[0]
        while not spark.query.ledger.owner.forgotten:
            forget(duel.world.memory, spark.query.name)
        before = list(duel.world.rows)
        assert not spark.run_until_failure(spark.checkpoint.committed + 1)
        assert isinstance(spark.refusals[-1], QueryRetired)
        assert duel.world.rows == before
        require_exactly_once(spark)

    every_order(prepare, verify, step=2)
