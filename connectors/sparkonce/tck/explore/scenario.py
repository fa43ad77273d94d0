"""The participants of a schedule; also a choice, of which 0 is one driver with one task."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkonce.tck.explore.batches import Batch
from sparkonce.tck.explore.cast import DriverOf, Stream
from sparkonce.tck.explore.operators import BESIDE_BATCHES, COMMANDS, Operator
from sparkonce.tck.explore.turns import Actor
from sparkonce.tck.explore.world import World
from sparkonce.tck.simulation.actors import Query

SWITCHES = (0.02, 0.1, 0.3, 0.6)
LOSSES = 0.45
FAULTS = (0.0, 0.015, 0.04, 0.1)


@dataclass
class Scenario:
    """Streams and operators of one schedule.

    Attributes:
        owners: the queries of the first sink: its owner, and its successors.
        other: another sink on the same target.
        batches: batches without a name that write to the same target.
    """

    world: World
    owners: list[Stream] = field(default_factory=list)
    other: Stream | None = None
    batches: list[Batch] = field(default_factory=list)
    operator: Operator | None = None
    drivers: int = 0

    @property
    def streams(self) -> list[Stream]:
        """All of them."""
        return self.owners if self.other is None else [*self.owners, self.other]

    @property
    def disturbed(self) -> bool:
        """Whether a driver may meet traces of another driver, or of its own earlier runs."""
        return self.drivers > len(self.streams) or self.world.faults > 0

    def stream(self, query: Query, drivers: int, last: int) -> Stream:
        """Add a stream with this number of concurrent drivers."""
        stream = Stream(self.world, query, offsets_known=query.id == "a", drivers=drivers)
        self.world.watch.checkpoints[query.id] = stream.checkpoint
        for slot in range(drivers):
            driver = DriverOf(stream, slot + 1, last, starts=3)
            self.world.turns.spawn(Actor(f"driver {query.id}{slot + 1}a", driver))
        self.drivers += drivers
        return stream


def draw(world: World, losses: float = LOSSES, *, batches: bool = True) -> Scenario:
    """Choose the participants, and the rate of faults.

    Args:
        world: the world that they act in.
        losses: how often a store may lose data.
        batches: whether batches may write beside the streams.
    """
    choices, scenario = world.choices, Scenario(world)
    world.temper(choices.dice.choice(SWITCHES), choices.dice.choice(FAULTS))
    world.losses.kind = choices.pick(4, losses)
    last = 1 - choices.pick(2, 0.3)
    drivers = 1 + choices.pick(2, 0.5)
    taking_over = choices.pick(6, 0.35)
    sink_id = "orders" if choices.pick(2, 0.5) else None
    repeatable = taking_over in (3, 4)
    first = Query(world.subject, "a", sink_id, repeatable=repeatable)
    scenario.owners.append(scenario.stream(first, drivers, last))
    if taking_over:
        named = "continue:a" if taking_over in (1, 2) else None
        query = Query(world.subject, "n", sink_id, repeatable=repeatable, on_new_checkpoint=named)
        scenario.owners.append(scenario.stream(query, 1, 0))
    if choices.pick(2, 0.25):
        query = Query(world.subject, "c", checkpoint="/checkpoints/other")
        scenario.other = scenario.stream(query, 1, 0)
    if batches:
        _batches(scenario)
    _operator(scenario)
    return scenario


def _batches(scenario: Scenario) -> None:
    world = scenario.world
    batches = world.choices.pick(3, 0.5)
    if batches:
        world.temper(world.choices.dice.choice(SWITCHES), FAULTS[-1])
    for number in range(batches):
        batch = Batch(world, f"batch{number}")
        world.watch.checkpoints[batch.name] = batch.checkpoint
        scenario.batches.append(batch)
        world.turns.spawn(Actor(f"driver {batch.name}", batch))


def _operator(scenario: Scenario) -> None:
    choices = scenario.world.choices
    known, rate = (BESIDE_BATCHES, 0.9) if scenario.batches else (COMMANDS, 0.35)
    number = choices.pick(3, rate)
    if number:
        commands = tuple(known[choices.pick(3, 0.5)] for _ in range(number))
        scenario.operator = Operator(scenario.world, commands)
        scenario.world.turns.spawn(Actor("operator", scenario.operator))
