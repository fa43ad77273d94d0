"""Two actors at one store, in every order in which each interrupts the other once.

A first run counts the turns of both; then each order runs in its own world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby

from sparkonce.store import Store
from sparkonce.tck.simulation.oracles import require
from sparkonce.tck.simulation.restarts import SimulatedSpark
from sparkonce.tck.simulation.turns import Turns, interleavings
from sparkonce.tck.subject import Subject


@dataclass
class Duel:
    """Two actors in one world, and the check that must pass afterwards."""

    world: Subject
    sparks: list[SimulatedSpark] = field(default_factory=list)
    actors: list[Callable[[Store], object]] = field(default_factory=list)
    turns: Turns | None = None

    def driver(self, spark: SimulatedSpark, epoch: int) -> None:
        """An actor that commits or aborts an epoch which its tasks have already staged."""
        planned = spark.plan(epoch)

        def act(store: Store) -> None:
            spark.query.through = store
            spark.commit(planned)

        self.sparks.append(spark)
        self.actors.append(act)

    def running(self, spark: SimulatedSpark, last: int) -> None:
        """An actor that stages and commits."""

        def act(store: Store) -> None:
            spark.query.through = store
            spark.run_until_failure(last)

        self.sparks.append(spark)
        self.actors.append(act)

    def fight(self, order: list[int]) -> Turns:
        """Let them act in this order."""
        self.turns = Turns(self.world.connect, order)
        self.turns.run(*self.actors)
        for spark in self.sparks:
            spark.query.through = None
        return self.turns

    @property
    def history(self) -> str:
        """The calls of both actors, in order."""
        calls = self.turns.calls if self.turns else []
        turns = groupby(calls, key=lambda call: call[0])
        return "; ".join(f"actor {n}: {', '.join(call for _, call in run)}" for n, run in turns)


def every_order(
    prepare: Callable[[], Duel],
    verify: Callable[[Duel], None],
    *,
    alike: bool = False,
    step: int = 1,
) -> None:
    """Try all orders.

    Raises:
        AssertionError: one of them breaks a promise.
    """
    alone = [[n for n, _ in prepare().fight([first] * 999).calls] for first in (0, 1)]
    tried = 0
    for order in interleavings(alone[0].count(0), alone[1].count(1), alike=alike, step=step):
        duel = prepare()
        tried += 1
        try:
            duel.fight(order)
            verify(duel)
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise AssertionError(f"{kind}{error}\n  after: {duel.history}") from error
    require(tried * step > 20, f"tried only {tried} orders")
