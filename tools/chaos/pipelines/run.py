"""One run: each fault while all pipelines have something to do, and the comparison at the end."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark
from tools.chaos.drivers import Broken, ChaosSpark, DriverKeeper, NotReached
from tools.chaos.pipelines.stores import Stores
from tools.chaos.query import Query
from tools.chaos.result import RunResult
from tools.chaos.target import has
from tools.chaos.world import fresh

from sparkonce import __version__

DRIVER, TREE, WORKER, FAILOVER = (
    "driver killed",
    "driver and workers killed",
    "Python worker killed",
    "failover of MySQL",
)
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
"""Entries that are written at a time; seconds in which a query must get on."""

Tell = Callable[[str], None]


class PipelinesDriver(DriverKeeper):
    """Has the queries of all pipelines run."""

    def __init__(self, stores: Stores, home: Path, spark: ChaosSpark) -> None:
        super().__init__(home, spark, PIPELINES)
        self._stores = stores

    def _queries(self) -> Mapping[str, Query]:
        return self._stores.queries(self.home / "checkpoints")


class PipelinesRun:
    """A run over all pipelines."""

    def __init__(self, home: Path, *, rows: int, kills: int, seed: int, tell: Tell) -> None:
        self.home, self.rows, self.kills, self.seed, self.tell = home, rows, kills, seed, tell
        self.chance, self.began = random.Random(seed), time.monotonic()

    def __call__(self) -> PipelinesResult:
        fresh(self.home)
        with ExitStack() as stack:
            self.stores = Stores(stack, self.seed)
            self.stores.prepare()
            spark = ChaosSpark(self.home / "spark")
            stack.callback(spark.close)
            self.drivers = PipelinesDriver(self.stores, self.home, spark)
            stack.callback(self.drivers.close)
            versions = {"sparkonce": __version__, "pyspark": pyspark.__version__}
            versions |= self.stores.versions()
            self.result = PipelinesResult(
                seed=self.seed, kills=self.kills, asked=self.rows, versions=versions
            )
            self.tell(", ".join(" ".join(one) for one in self.result.versions.items()))
            try:
                self._strike_all()
                self._finish()
            except (Broken, NotReached) as error:
                self.result.broken.append(str(error))
            except Exception as error:  # whatever a server or client says
                self.tell(traceback.format_exc())
                self.result.broken.append(f"{type(error).__name__}: {error}")
            self._judge()
        return self.result

    # -- faults

    def _faults(self) -> Iterator[str]:
        deck = list(DECK)
        for number in range(self.kills):
            if number % len(deck) == 0:
                self.chance.shuffle(deck)
            yield deck[number % len(deck)]
            if number == self.kills // 2:
                yield FAILOVER
            cut = self.chance.choice(("reset", "cut reply"))
            yield f"{cut} at {self.chance.choice([*REQUESTS])}"

    def _strike_all(self) -> None:
        self.stores.write(self.rows // 4)
        faults = list(self._faults())
        for number, fault in enumerate(faults, 1):
            self._advance()
            self.stores.write(FEED)
            self._go_on_for(self.chance.uniform(0.1, 3.0))
            began = time.monotonic()
            seen = self._strike(fault)
            at, took = began - self.began, time.monotonic() - began
            self.result.struck.append(PipelineFault(fault, at, took, seen, self.drivers.epochs()))
            epochs = ", ".join(f"{name} {epoch}" for name, epoch in self.drivers.epochs().items())
            self._say(f"{number}/{len(faults)} {fault}{seen and f': {seen}'} ({epochs})")

    def _strike(self, fault: str) -> str:
        if fault in (DRIVER, TREE):
            self.drivers.supervise()
            self.drivers.kill(tree=fault == TREE)
            return ""
        if fault == WORKER:
            return self._kill_worker()
        if fault == FAILOVER:
            return self.stores.fail_over()
        for name, told in KILLED.items():
            if fault == told:
                return self._kill_server(name)
        return self._fail_network(*fault.split(" at ", 1))

    def _kill_worker(self) -> str:
        driver = self.drivers.driver
        if driver is None or not driver.alive:
            return "the driver had ended"
        inside = psutil.Process(driver.session.process.pid).children(recursive=True)
        workers = [one for one in inside if one.is_running() and "pyspark.daemon" in _said(one)]
        if not workers:
            return "there was none"
        self.chance.choice(workers).kill()
        return f"one of {len(workers)}"

    def _kill_server(self, name: str) -> str:
        server, away = self.stores.servers[name], self.chance.choice((0.0, 2.0, 6.0))
        server.kill()
        self._go_on_for(away)
        server.start()
        return f"away for {away:g} s"

    def _fail_network(self, kind: str, request: str) -> str:
        name, matching = REQUESTS[request]
        proxy = self.stores.proxies[name]
        before = proxy.cuts
        (proxy.reset if kind == "reset" else proxy.cut_reply)(matching, self.chance.randint(1, 3))
        self.stores.write(FEED)
        limit = time.monotonic() + 30.0
        while proxy.cuts == before and time.monotonic() < limit:
            self._go_on_for(0.2)
        proxy.restore()
        return "" if proxy.cuts > before else "it did not come"

    def _go_on_for(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.drivers.supervise()
            time.sleep(0.05)

    def _advance(self) -> None:
        """Wait until every query has committed an epoch more."""
        before, limit = self.drivers.epochs(), time.monotonic() + PATIENCE
        while not all(self.drivers.epochs()[name] > epoch for name, epoch in before.items()):
            if time.monotonic() > limit:
                raise Broken(
                    f"a query did not get on within {PATIENCE:.0f} s: {self.drivers.epochs()}"
                )
            self.stores.write(FEED // 3)
            self._go_on_for(1.0)

    # -- the end

    def _finish(self) -> None:
        """Let the queries come to the end, with nobody in their way; then compare."""
        self.stores.write(FEED)
        self._say("no more faults; the queries read to the end")
        limit, apart = time.monotonic() + PATIENCE, self.stores.differences()
        while any(map(any, apart.values())) and time.monotonic() < limit:
            self._go_on_for(2.0)
            apart = self.stores.differences()
        self._go_on_for(5.0)  # in which nothing may change any more
        apart = self.stores.differences()
        self.result.rows, self.result.epochs = self.stores.count(), self.drivers.epochs()
        self.result.lost = {name: lost for name, (lost, _) in apart.items()}
        self.result.doubled = {name: more for name, (_, more) in apart.items()}
        self.drivers.close()

    def _judge(self) -> None:
        result, drivers = self.result, self.drivers
        result.drivers, result.seconds = drivers.drivers, time.monotonic() - self.began
        result.ends, result.alarms = drivers.ends(), drivers.alarms()

    def _say(self, what: str) -> None:
        passed = time.monotonic() - self.began
        self.tell(f"{passed // 60:3.0f}:{passed % 60:02.0f} {what}")


def _said(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@dataclass(frozen=True)
class PipelineFault:
    """A fault: when, in seconds, how long it took, what was seen of it, and the epochs by then."""

    fault: str
    at: float
    seconds: float
    seen: str
    epochs: Mapping[str, int]


@dataclass(kw_only=True)
class PipelinesResult(RunResult):
    """What a run showed; its rows are entries of streams, and transactions of the log.

    Attributes:
        lost: by pipeline, rows of the source that the target has not, or not as they are.
        doubled: by pipeline, rows of the target that the source has not.
    """

    kills: int
    lost: Mapping[str, int] = field(default_factory=dict)
    doubled: Mapping[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether source and target are the same, and nothing else was not as promised."""
        wrong = sum(self.lost.values()) + sum(self.doubled.values())
        return bool(self.lost) and not (wrong or self.alarms or self.broken)

    @property
    def line(self) -> str:
        lost, doubled = (sum(one.values()) for one in (self.lost, self.doubled))
        return (
            f"chaos: pipelines rows={self.rows} faults={len(self.struck)} lost={lost}"
            f" doubled={doubled}"
        )
