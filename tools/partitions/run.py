"""One run: faults from the seed one after the other, then a count of all rows."""

from __future__ import annotations

import platform
import random
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from integration.support.servers import kafka
from integration.support.servers.kafka import KafkaProcess
from integration.support.servers.process import Place
from tools.chaos import oracle
from tools.chaos.drivers import ChaosSpark, Mode, NotReached
from tools.chaos.oracle import Reader
from tools.chaos.result import RunResult
from tools.chaos.run import LAST_BREATH, ChaosRun
from tools.chaos.topic import Topic
from tools.partitions import plan
from tools.partitions.cluster import DRIVER, Cluster
from tools.partitions.network import OPERATOR, Network
from tools.partitions.plan import Fault
from tools.partitions.strikes import strike
from tools.partitions.world import PartitionWorld

from sparkonce import __version__

BURST = 500
"""Events that arrive at a time."""


@dataclass(kw_only=True)
class PartitionResult(RunResult):
    """The result of a run over one kind of cluster.

    Attributes:
        missed: faults that did not strike, or after which a query did not continue, and why.
        skipped: kinds of faults that this machine can't have, and why.
        named: epochs that the store lost after it had acknowledged them, as queries named them.
        excused: rows of these epochs without an effect.
    """

    store: str
    planned: int
    missed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    named: list[Any] = field(default_factory=list)
    lost: int = 0
    duplicated: int = 0
    excused: int = 0
    torn: int = 0
    reads: int = 0

    @property
    def good(self) -> bool:
        """Whether nothing was lost or duplicated in silence, and every query continued."""
        harm = self.lost or self.duplicated or self.torn or self.broken or self.alarms
        return not harm and not self.missed and self.rows > 0 and self.reads > 0

    @property
    def line(self) -> str:
        return (
            f"partitions: store={self.store} rows={self.rows} faults={len(self.struck)}"
            f" lost={self.lost} duplicated={self.duplicated} torn={self.torn}"
            f" named_as_lost={self.excused}"
        )


class PartitionRun(ChaosRun):
    """A run over one kind of cluster; `kills` is the number of faults."""

    keeper: PartitionWorld
    result: PartitionResult

    def __init__(self, make: type[Cluster], home: Path, **how: Any) -> None:
        super().__init__(home, **how)
        self.make = make
        self.chance = random.Random(f"{self.seed} sides")

    def run(self, stack: ExitStack) -> None:
        network = Network([*self.make.machines, DRIVER])
        target = self.make(network, self.home)
        target.start(stack)
        target.wait_until_whole()
        target.prepare()
        skipped = target.impossible()
        self.result = PartitionResult(
            store=target.name,
            seed=self.seed,
            planned=self.kills,
            versions=_versions(target),
            skipped=skipped,
        )
        self.tell(f"{target.name} {target.version}, Kafka {kafka.VERSION}")
        broker = stack.enter_context(KafkaProcess(Place(OPERATOR)))
        faults = plan.draw(self.seed, self.kills, target.name, list(skipped))
        spark = ChaosSpark(self.home / "spark", network.places[DRIVER].within)
        self.keeper = PartitionWorld(
            network,
            target,
            Topic(broker.address, self.seed),
            stack.enter_context(closing(spark)),
            self.home,
            burst=BURST,
            deadline=self.began + 600 + 300 * len(faults),
        )
        stack.callback(self.keeper.close)
        reader = stack.enter_context(closing(Reader(target.watch, self.began)))
        for step in (partial(self.strike_all, faults), self._finish, self._count):
            self.take(step)
        reader.close()
        self.result.torn, self.result.reads = reader.torn, reader.reads

    def strike(self, fault: Fault) -> str:
        began = time.monotonic()
        try:
            return self.note(fault, began, strike(self.keeper, fault, self.chance))
        except NotReached as error:
            self.result.missed[f"{len(self.result.struck)}: {fault}"] = str(error)
            return f"MISSED: {error}"

    def _finish(self) -> None:
        """Let the queries read to the end of the topic, without faults."""
        world = self.keeper
        world.target.wait_until_whole()
        world.topic.produce(BURST)
        world.need(Mode())
        self.say("no more faults; the queries read to the end")
        world.drain()

    def _count(self) -> None:
        self.judge()
        time.sleep(LAST_BREATH)
        self.say("counting")
        world, result = self.keeper, self.result
        events = list(world.topic.events())
        found = oracle.compare(
            events, world.target.rows(), world.target.counters(), world.named(events)
        )
        result.rows, result.lost, result.duplicated = found.rows, found.lost, found.duplicated
        result.excused, result.named = found.excused, [asdict(loss) for loss in world.losses]

    def say(self, what: str) -> None:
        super().say(f"{self.keeper.topic.produced:9,} rows  {what}")


def _versions(target: Cluster) -> dict[str, str]:
    return {
        "sparkonce": __version__,
        target.name: target.version,
        "pyspark": pyspark.__version__,
        "kafka": kafka.VERSION,
        "python": platform.python_version(),
    }
