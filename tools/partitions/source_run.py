"""Runs in which a query follows a cluster, and writes into another store."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyspark
from integration.support.servers.mysql import MySqlProcess, private_binary
from integration.support.servers.mysql import connect as connect_mysql
from integration.support.servers.process import Place
from tools.chaos.drivers import ChaosDriver, ChaosSpark, Mode
from tools.chaos.query import Query
from tools.partitions import plan
from tools.partitions.cluster import DRIVER, Cluster
from tools.partitions.cluster_run import ClusterResult, ClusterRun
from tools.partitions.network import OPERATOR, Network
from tools.partitions.sources import NAME, Source, source_of
from tools.partitions.world import ALONE, Struck

from sparkonce import __version__

LANDED, QUERY = "landed", "follow"
BURST = 50
"""Rows that arrive at a time."""

LOST = "failOnDataLoss=false"
"""The option that an error advises where a source has lost rows."""

ASIDE = 0.3
"""The part of the writes that go through any machine, and not through the leader."""

RESTS = 5.0
"""Seconds in which a target must not change at the end."""

MOMENTS = (plan.ANY, plan.FINISHED)
"""The states of the target's epochs at which faults strike; MySQL commits each in one step."""

DRAINS = 180.0
"""Seconds in which a query reads the rest, once all links work."""


class SourceWorld(Struck):
    """The parts of a run.

    Attributes:
        tried: the last number that the feeder has tried to write.
        acknowledged: the numbers that the cluster has acknowledged.
    """

    def __init__(
        self,
        network: Network,
        cluster: Cluster,
        sink: MySqlProcess,
        home: Path,
        spark: ChaosSpark,
        seed: int,
    ) -> None:
        super().__init__(home, spark, (QUERY,))
        self.network, self.target, self.sink = network, cluster, sink
        self.source: Source = source_of(cluster)
        self.tried, self.acknowledged = 0, set[int]()
        self.notes: list[str] = []
        self.chance = random.Random(f"{seed} feeds")
        # A reader may meet rows of a primary that the others have left, and that it loses later.
        self.expected = ALONE | {"UnreadLost"}
        self._tolerates = False

    @property
    def sinks_url(self) -> str:
        return self.sink.url

    def feed(self) -> None:
        """Write through the leader, or through another machine, as clients on its side do."""
        numbers = range(self.tried + 1, self.tried + BURST + 1)
        self.tried += BURST
        through = self.target.door(self.chance.choice(self.target.machines))
        if self.chance.random() > ASIDE:
            with suppress(Exception):  # a paused machine does not say what it is
                through = self.target.home_of(NAME)
        if self.source.write(numbers, through):
            self.acknowledged.update(numbers)

    def landed(self) -> Counter[int]:
        """The numbers in the target, each with its effects."""
        with closing(connect_mysql(self.sink.url)) as client, client.cursor() as cursor:
            cursor.execute(f"SELECT n FROM {LANDED}")
            return Counter(n for (n,) in cursor.fetchall())

    def _note_end(self, driver: ChaosDriver) -> None:
        super()._note_end(driver)
        name, text = driver.end()
        if LOST in driver.said and self.calm:  # else a server may lag, which the error says, too
            self._tolerates = True
            self.notes.append(f"{name}: {text}")

    def _queries(self) -> Mapping[str, Query]:
        more = {"failOnDataLoss": "false"} if self._tolerates else {}
        self._tolerates = False  # one driver tolerates one loss
        reads = {**self.source.options(), "timeout": "5", **more}
        writes = {
            "url": self.sink.url,
            "dbtable": LANDED,
            "writeMode": "append",
            "checkpointLocation": str(self.checkpoint(QUERY)),
        }
        source = self.source
        formats = (source.format, "mysql")
        return {QUERY: Query(formats, reads, writes, source.columns, schema=source.schema)}


class SourceRun(ClusterRun):
    """A run over one kind of cluster; `kills` is the number of faults."""

    keeper: SourceWorld
    result: SourceResult

    def run(self, stack: ExitStack) -> None:
        target = self.start(stack)
        network = target.network
        sink = stack.enter_context(MySqlProcess(private_binary("mysql"), place=Place(OPERATOR)))
        with closing(connect_mysql(sink.url)) as client, client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {LANDED} (n BIGINT, entry VARCHAR(40))")
        skipped = target.impossible()
        self.result = SourceResult(
            store=target.name,
            seed=self.seed,
            planned=self.kills,
            versions={
                "sparkonce": __version__,
                target.name: target.version,
                "pyspark": pyspark.__version__,
            },
            skipped=skipped,
        )
        self.tell(f"{target.name} {target.version}, followed into MySQL")
        spark = ChaosSpark(self.home / "spark", network.places[DRIVER].within)
        stack.enter_context(closing(spark))
        self.keeper = SourceWorld(network, target, sink, self.home, spark, self.seed)
        self.keeper.deadline = self.began + 600 + 300 * self.kills
        stack.callback(self.keeper.close)
        self.keeper.source.prepare()
        faults = plan.draw(self.seed, self.kills, f"{target.name} source", list(skipped), MOMENTS)
        for step in (partial(self.strike_all, faults), self._finish, self._count):
            self.take(step)

    def _finish(self) -> None:
        """Let the query read to the end, without faults."""
        world = self.keeper
        world.target.wait_until_whole()
        world.feed()
        world.need(Mode())
        self.say("no more faults; the query reads to the end")
        self._drain(0.0)
        world.kill(tree=True)  # the next driver replays the last epoch
        world.need(Mode())
        self._drain(RESTS)

    def _drain(self, rests: float) -> None:
        """Wait until the target has all rows, and for some more seconds; nothing new is written."""
        world, limit = self.keeper, time.monotonic() + DRAINS
        while world.source.stored() - world.landed() and time.monotonic() < limit:
            world.supervise()
            world.target.operate()
            time.sleep(0.5)
        time.sleep(rests)

    def _count(self) -> None:
        self.judge()
        world, result = self.keeper, self.result
        stored, landed = world.source.stored(), world.landed()
        gone = [n for n in landed if n not in stored]
        result.rows, result.notes = stored.total(), world.notes
        result.lost = (stored - landed).total()
        result.duplicated = sum(times - 1 for times in landed.values())
        result.rolled_back = len(gone)
        named = [one for one in world.notes if gone or not world.source.confirms(one)]
        if bool(gone) != bool(named):
            said = "; ".join(world.notes) or "nothing"
            result.broken.append(
                f"{len(gone)} rows of the target have left the source, and queries said: {said}"
            )
        if not world.target.loses:
            result.broken += [
                f"{len(lost)} acknowledged rows are {where}"
                for where, lost in {
                    "no longer in the source": world.acknowledged - stored.keys(),
                    "in the target alone": world.acknowledged & {*gone},
                }.items()
                if lost
            ]


@dataclass(kw_only=True)
class SourceResult(ClusterResult):
    """The result of a run over one kind of cluster.

    Attributes:
        notes: what the query named as lost.
        rolled_back: rows of the target that the source had, and lost later.
    """

    notes: list[str] = field(default_factory=list)
    rolled_back: int = 0

    @property
    def line(self) -> str:
        return (
            f"partitions: source={self.store} rows={self.rows} faults={len(self.struck)}"
            f" lost={self.lost} duplicated={self.duplicated} rolled_back={self.rolled_back}"
        )
