"""One run: faults from the seed one after the other, then a count of all rows."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from integration.support.servers import kafka
from integration.support.servers.kafka import KafkaProcess
from integration.support.servers.process import Place, wait_until
from tools.chaos import oracle
from tools.chaos.drivers import ChaosSpark, Mode
from tools.chaos.oracle import Reader
from tools.chaos.run import LAST_BREATH, SIGHT, versions
from tools.chaos.topic import Topic
from tools.partitions import plan
from tools.partitions.cluster import DRIVER, HEALS
from tools.partitions.cluster_run import ClusterResult, ClusterRun
from tools.partitions.network import OPERATOR
from tools.partitions.world import PartitionWorld

BURST = 2000
"""Events that arrive at a time."""


@dataclass(kw_only=True)
class PartitionResult(ClusterResult):
    """The result of a run over one kind of cluster.

    Attributes:
        named: epochs that the store lost after it had acknowledged them, as queries named them.
        excused: rows of these epochs without an effect.
        torn, reads: reads of half an epoch, and all reads.
    """

    named: list[Any] = field(default_factory=list)
    excused: int = 0
    torn: int = 0
    reads: int = 0

    @property
    def good(self) -> bool:
        return super().good and not self.torn and self.reads > 0

    @property
    def line(self) -> str:
        return (
            f"partitions: store={self.store} rows={self.rows} faults={len(self.struck)}"
            f" lost={self.lost} duplicated={self.duplicated} torn={self.torn}"
            f" named_as_lost={self.excused}"
        )


class PartitionRun(ClusterRun):
    """A run over one kind of cluster; `kills` is the number of faults."""

    keeper: PartitionWorld
    result: PartitionResult

    def run(self, stack: ExitStack) -> None:
        target = self.start(stack)
        network = target.network
        target.prepare()
        skipped = target.impossible()
        self.result = PartitionResult(
            store=target.name,
            seed=self.seed,
            planned=self.kills,
            versions=versions(target),
            skipped=skipped,
        )
        self.tell(f"{target.name} {target.version}, Kafka {kafka.VERSION}")
        broker = stack.enter_context(KafkaProcess(Place(OPERATOR)))
        faults = plan.draw(self.seed, self.kills, target.name, list(skipped), target.moments)
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
        looking = partial(self._look, reader)
        for step in (partial(self.strike_all, faults), self._finish, self._count, looking):
            self.take(step)
        reader.close()
        self.result.torn, self.result.reads = reader.torn, reader.reads

    def _finish(self) -> None:
        """Let the queries read to the end of the topic, without faults."""
        world = self.keeper
        world.target.wait_until_whole()
        world.topic.produce(BURST)
        world.need(Mode())
        self.say("no more faults; the queries read to the end")
        world.drain()
        world.close()
        if not world.target.loses:
            self.say(f"counting on {self._fail_over()}, which leads now")

    def _fail_over(self) -> str:
        """Kill the leader, so that the count is that of another machine."""
        target = self.keeper.target
        before = target.leader()
        for server in target.servers[before]:
            server.kill()

        def moved() -> bool:
            target.operate()
            return target.leader() != before

        wait_until(moved, HEALS, "no other machine leads")
        return target.leader()

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

    def _look(self, reader: Reader) -> None:
        """Check that the reader sees the last state, or it could have missed a torn epoch."""
        wait_until(lambda: reader.last[0] == reader.last[1] > 0, SIGHT, "the reader sees no rows")

    def say(self, what: str) -> None:
        super().say(f"{self.keeper.topic.produced:9,} rows  {what}")
