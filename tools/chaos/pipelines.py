"""Chaos runs from store to store: `python -m tools.chaos --store pipelines`.

One driver runs five queries. One writes entries of Redis streams into a table. Two write changes of
another table, from the binary log, into an index and into hashes. Two copy all tables of a database
into indices and into another database, while statements alter, empty and create its tables. Faults
strike while all queries have rows to read. At the end the run compares source and target.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import pyspark
from tools.chaos.drivers import ChaosSpark, DriverKeeper
from tools.chaos.pipeline_stores import PipelineStores
from tools.chaos.plan import DRIVER, TREE, WORKER, shuffled
from tools.chaos.query import Query
from tools.chaos.target import has
from tools.chaos.three_stores import FEED, KILLED, ThreeStoresResult, ThreeStoresRun

from sparkonce import __version__

FAILOVER = "failover of MySQL"
DECK = (*[DRIVER, TREE, WORKER] * 2, *KILLED.values(), KILLED["redis"], KILLED["mysql"])
REQUESTS = {
    "XRANGE": ("redis", has(b"\r\nXRANGE\r\n")),
    "a script": ("redis", has(b"\r\nEVALSHA\r\n")),
    "the binary log": ("mysql", lambda request: request[4:5] in (b"\x12", b"\x1e")),
    "the snapshot or a look at the table": ("mysql", has(b"`orders`")),
    "the ledger": ("mysql", has(b"`sparkonce_ledger`")),
    "a bulk": ("elasticsearch", has(b"/_bulk")),
}
PIPELINES = (
    *("stream-to-table", "log-to-index", "log-to-hashes"),
    *("database-to-indices", "database-to-copy"),
)
SNAPSHOT = 8
"""Epochs after which each table of the database has its snapshot: before it an ALTER would end the
query."""

PATIENCE = 240.0
"""Seconds in which a query must commit an epoch."""


class PipelinesDriver(DriverKeeper):
    """Runs the queries of all pipelines."""

    def __init__(self, stores: PipelineStores, home: Path, spark: ChaosSpark) -> None:
        super().__init__(home, spark, PIPELINES)
        self.stores = stores

    def feed(self) -> None:
        self.stores.write(FEED)

    def _queries(self) -> Mapping[str, Query]:
        return self.stores.queries(self.home / "checkpoints")


class PipelinesRun(ThreeStoresRun):
    """A run over all pipelines."""

    keeper: PipelinesDriver
    stores: PipelineStores
    result: PipelinesResult
    requests, epochs = REQUESTS, 0

    def run(self, stack: ExitStack) -> None:
        self.chance = random.Random(self.seed)
        self.stores = PipelineStores(stack, self.seed)
        self.stores.prepare()
        spark = stack.enter_context(closing(ChaosSpark(self.home / "spark")))
        self.keeper = PipelinesDriver(self.stores, self.home, spark)
        stack.callback(self.keeper.close)
        versions = {"sparkonce": __version__, "pyspark": pyspark.__version__}
        versions |= self.stores.versions()
        self.result = PipelinesResult(
            seed=self.seed, kills=self.kills, asked=self.rows, versions=versions
        )
        self.tell(", ".join(" ".join(one) for one in versions.items()))
        self.stores.write(self.rows // 4)
        for step in (partial(self.strike_all, list(self._faults())), self._finish, self.judge):
            self.take(step)

    # -- faults

    def _faults(self) -> Iterator[str]:
        for number, fault in enumerate(islice(shuffled(self.chance, DECK), self.kills)):
            yield fault
            if number == self.kills // 2:
                yield FAILOVER
            cut = self.chance.choice(("reset", "cut reply"))
            yield f"{cut} at {self.chance.choice([*REQUESTS])}"

    def approach(self, _: str) -> None:
        self.keeper.advance(1, PATIENCE)
        self.epochs += 1
        if self.epochs > SNAPSHOT:
            self.stores.alter()
        self.stores.write(max(FEED, self.rows // (3 * self.kills + 1)))
        self.run_for(self.chance.uniform(0.1, 3.0))

    def inject(self, fault: str) -> str:
        return self.stores.fail_over() if fault == FAILOVER else super().inject(fault)

    def _finish(self) -> None:
        """Let the queries read to the end without faults; then compare."""
        self.stores.write(FEED)
        self.say("no more faults; the queries read to the end")
        limit = time.monotonic() + PATIENCE + self.rows / 500
        apart = self.stores.differences()
        while any(map(any, apart.values())) and time.monotonic() < limit:
            self.run_for(2.0)
            apart = self.stores.differences()
        self.run_for(5.0)  # the targets must not change in this time
        apart = self.stores.differences()
        self.result.rows = self.stores.count()
        self.result.lost = {name: lost for name, (lost, _) in apart.items()}
        self.result.duplicated = {name: more for name, (_, more) in apart.items()}


@dataclass(kw_only=True)
class PipelinesResult(ThreeStoresResult):
    """The result of a run; its rows are entries of streams and transactions of the log."""

    name = "pipelines"
