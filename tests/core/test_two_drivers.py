"""One order of two drivers that a kit of all orders does not ask enough of."""

from __future__ import annotations

import pytest
from tests.worlds import MemoryWorld

from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.duel import Duel
from sparkonce.tck.simulation.restarts import SimulatedSpark

pytestmark = pytest.mark.usefixtures("quiet")


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
