"""Chaos runs from store to store: `python -m tools.chaos --store pipelines`.

One driver runs three queries: entries of Redis streams into a table; changes of another table, from
the binary log, into an index and into hashes. Faults strike while all queries have rows to read. At
the end the run compares source and target.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import psutil
import pyspark
from tools.chaos.drivers import ChaosSpark, DriverKeeper, NotReached
from tools.chaos.pipeline_stores import PipelineStores
from tools.chaos.plan import DRIVER, TREE, WORKER, shuffled
from tools.chaos.query import Query
from tools.chaos.result import RunResult
from tools.chaos.run import ChaosRun
from tools.chaos.target import has

from sparkonce import __version__

FAILOVER = "failover of MySQL"
KILLED = {name: f"{name} killed" for name in ("redis", "mysql", "elasticsearch")}
DECK = (*[DRIVER, TREE, WORKER] * 2, *KILLED.values(), KILLED["redis"], KILLED["mysql"])
REQUESTS = {
    "XRANGE": ("redis", has(b"\r\nXRANGE\r\n")),
    "a script": ("redis", has(b"\r\nEVALSHA\r\n")),
    "the binary log": ("mysql", lambda request: request[4:5] in (b"\x12", b"\x1e")),
    "the snapshot or a look at the table": ("mysql", has(b"`orders`")),
    "the ledger": ("mysql", has(b"`sparkonce_ledger`")),
    "a bulk": ("elasticsearch", has(b"/_bulk")),
}
PIPELINES = ("stream-to-table", "log-to-index", "log-to-hashes")
FEED, PATIENCE = 300, 240.0
"""Entries in one write; seconds in which a query must commit an epoch."""


class PipelinesDriver(DriverKeeper):
    """Runs the queries of all pipelines."""

    def __init__(self, stores: PipelineStores, home: Path, spark: ChaosSpark) -> None:
        super().__init__(home, spark, PIPELINES)
        self.stores = stores

    def feed(self) -> None:
        self.stores.write(FEED)

    def _queries(self) -> Mapping[str, Query]:
        return self.stores.queries(self.home / "checkpoints")


class PipelinesRun(ChaosRun):
    """A run over all pipelines."""

    keeper: PipelinesDriver
    result: PipelinesResult

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

    def strike(self, fault: str) -> str:
        self.keeper.advance(1, PATIENCE)
        self.stores.write(FEED)
        self._run_for(self.chance.uniform(0.1, 3.0))
        began = time.monotonic()
        return self.note(fault, began, self._inject(fault))

    def _inject(self, fault: str) -> str:
        if fault in (DRIVER, TREE):
            self.keeper.supervise()
            self.keeper.kill(tree=fault == TREE)
            return ""
        if fault == WORKER:
            return self._kill_worker()
        if fault == FAILOVER:
            return self.stores.fail_over()
        for name, kind in KILLED.items():
            if fault == kind:
                return self._kill_server(name)
        return self._fail_network(*fault.split(" at ", 1))

    def _kill_worker(self) -> str:
        driver = self.keeper.driver
        if driver is None or not driver.alive:
            return "the driver had ended"
        inside = psutil.Process(driver.process.pid).children(recursive=True)
        workers = [one for one in inside if one.is_running() and "pyspark.daemon" in _said(one)]
        if not workers:
            return "no worker was running"
        self.chance.choice(workers).kill()
        return f"one of {len(workers)}"

    def _kill_server(self, name: str) -> str:
        server, away = self.stores.servers[name], self.chance.choice((0.0, 2.0, 6.0))
        server.kill()
        self._run_for(away)
        server.start()
        return f"down for {away:g} s"

    def _fail_network(self, kind: str, request: str) -> str:
        name, matching = REQUESTS[request]
        proxy = self.stores.proxies[name]
        before = proxy.cuts
        (proxy.reset if kind == "reset" else proxy.cut_reply)(matching, self.chance.randint(1, 3))
        self.stores.write(FEED)
        with suppress(NotReached):
            self.keeper.until(lambda: proxy.cuts > before, request, 30.0)
        proxy.restore()
        return "" if proxy.cuts > before else "the request did not arrive"

    def _run_for(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.keeper.supervise()
            time.sleep(0.05)

    def _finish(self) -> None:
        """Let the queries read to the end without faults; then compare."""
        self.stores.write(FEED)
        self.say("no more faults; the queries read to the end")
        limit, apart = time.monotonic() + PATIENCE, self.stores.differences()
        while any(map(any, apart.values())) and time.monotonic() < limit:
            self._run_for(2.0)
            apart = self.stores.differences()
        self._run_for(5.0)  # the targets must not change in this time
        apart = self.stores.differences()
        self.result.rows = self.stores.count()
        self.result.lost = {name: lost for name, (lost, _) in apart.items()}
        self.result.doubled = {name: more for name, (_, more) in apart.items()}


def _said(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@dataclass(kw_only=True)
class PipelinesResult(RunResult):
    """The result of a run; its rows are entries of streams and transactions of the log.

    Attributes:
        lost: by pipeline, rows of the source that are missing or stale in the target.
        doubled: by pipeline, rows of the target that the source lacks.
    """

    kills: int
    lost: Mapping[str, int] = field(default_factory=dict)
    doubled: Mapping[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether source and target are equal, and no promise was broken."""
        wrong = sum(self.lost.values()) + sum(self.doubled.values())
        return bool(self.lost) and not (wrong or self.alarms or self.broken)

    @property
    def line(self) -> str:
        lost, doubled = (sum(one.values()) for one in (self.lost, self.doubled))
        return (
            f"chaos: pipelines rows={self.rows} faults={len(self.struck)} lost={lost}"
            f" duplicated={doubled}"
        )
