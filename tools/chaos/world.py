"""A run under way: the servers, the driver, and what a fault can do with them."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from integration.support.proxy import Proxy
from tools.chaos.drivers import ChaosDriver, ChaosSpark, Mode
from tools.chaos.query import Job, Query
from tools.chaos.target import COUNTERS, QUERIES, ROWS, SIDES, Target
from tools.chaos.topic import NAME, Ends, Topic

MOST = {ROWS: 8000, COUNTERS: 3000}
"""Events in an epoch. One of the counters is small enough that Redis shows it whole or not."""

SAID = "split(cast(value as string), ',')"
EVENTS = {
    ROWS: ("partition as part", "offset as place", f"cast({SAID}[1] as bigint) as amount"),
    COUNTERS: (
        f"explode(array{SIDES}) as side",
        f"cast({SAID}[0] as int) as bucket",
        "1L as n",
        f"cast({SAID}[1] as bigint) as amount",
    ),
}
"""Each event once, and for the counters twice, once for each side."""

TIMEOUT, PATIENT = 5, 90
HUNGRY = 2.0
SAME_END = 6


class NotReached(Exception):
    """What was waited for did not come about."""


class Broken(Exception):
    """The run can't go on, or something is not as it is promised."""


class ChaosWorld:
    """What a run consists of.

    Args:
        target: the store.
        proxy: before the store.
        topic: fed here.
        spark: how drivers are set up.
        home: for checkpoints and logs.
        burst: events that are produced at a time.
        deadline: by `time.monotonic()`, when the run must be over.
    """

    def __init__(
        self,
        target: Target,
        proxy: Proxy,
        topic: Topic,
        spark: ChaosSpark,
        home: Path,
        *,
        burst: int,
        deadline: float,
    ) -> None:
        self.target, self.proxy, self.topic, self.spark = target, proxy, topic, spark
        self.home, self.burst, self.deadline = home, burst, deadline
        self.progress = Progress(home / "checkpoints")
        self.driver: ChaosDriver | None = None
        self.mode = Mode()
        self.drivers = 0
        self.zombies: list[ChaosDriver] = []
        self._started: list[ChaosDriver] = []
        self._ended: list[ChaosDriver] = []
        self._same_end = (0, {"": 0})
        self._dead: list[ChaosDriver] = []

    # -- the driver

    def need(self, mode: Mode) -> None:
        """Have a driver of this mode that has committed an epoch of each query."""
        self._reap()
        if self.driver and self.driver.mode != mode:
            self.kill(tree=True)
        self.mode = mode
        if self.driver is None:
            self.start()
            self.advance(1)

    def start(self) -> ChaosDriver:
        """Start a driver, beside what there is."""
        self.drivers += 1
        home = self.home / f"driver-{self.drivers:03d}"
        self.driver = ChaosDriver(home, self._job(), self.spark.env, self.mode)
        self._started.append(self.driver)
        return self.driver

    def supervise(self) -> None:
        """Start the driver again if it has ended, as whoever runs a query does.

        Raises:
            Broken: it ends and ends, and nothing is committed meanwhile.
        """
        self._reap()
        if self.driver is None:
            self.start()

    def _reap(self) -> None:
        if self.driver and not self.driver.alive:
            self._note_end(self.driver)
            self._ended.append(self.driver)
            self.bury(self.driver)

    def kill(self, *, tree: bool) -> None:
        """SIGKILL for the driver: with its Python workers, or they are left to find out."""
        if self.driver is None:
            raise Broken("there is no driver to kill")
        self.bury_dead()
        if tree:
            self.driver.session.close()
        else:
            self.driver.session.kill_group()
            self._dead.append(self.driver)
        self.driver = None

    def bury(self, driver: ChaosDriver) -> None:
        """Forget a driver that has ended."""
        driver.session.close()
        if driver is self.driver:
            self.driver = None

    def bury_dead(self) -> None:
        """End what drivers that were killed alone have left: their Python workers."""
        while self._dead:
            self._dead.pop().session.close()

    def close(self) -> None:
        self.bury_dead()
        self._reap()
        if self.driver:
            self.bury(self.driver)

    def _note_end(self, driver: ChaosDriver) -> None:
        often, epochs = self._same_end
        now = self.progress.epochs()
        self._same_end = (often + 1 if now == epochs else 1, now)
        if self._same_end[0] >= SAME_END:
            name, text = driver.end()
            raise Broken(f"{SAME_END} drivers ended with nothing committed: {name}: {text}")

    def ends(self) -> dict[str, int]:
        """By which errors drivers have ended, but for zombies, which must."""
        ended = (one for one in self._judged() if one.failed or one in self._ended)
        return dict(Counter(driver.end()[0] for driver in ended))

    def alarms(self) -> list[str]:
        """What drivers have said that is not so, whoever ended them; not what zombies said."""
        said = ((driver.home.name, driver.alarms()) for driver in self._judged())
        return [f"{name}: {', '.join(sorted(alarms))}" for name, alarms in said if alarms]

    def _judged(self) -> list[ChaosDriver]:
        return [driver for driver in self._started if driver not in self.zombies]

    # -- moments

    def until(self, event: Callable[[], bool], what: str, patience: float = 90.0) -> None:
        """Wait for an event, while the topic is fed and the driver supervised.

        Raises:
            NotReached: it does not come.
        """
        now = time.monotonic()
        limit, fed = min(now + patience, self.deadline), now
        while not event():
            now = time.monotonic()
            if now > limit:
                raise NotReached(f"{what}: not within {patience:.0f} s")
            if now - fed > HUNGRY:
                self._feed()
                fed = now
            self.supervise()
            time.sleep(0.01)

    def _feed(self) -> None:
        """Produce more if a query has nothing left to do."""
        done = [sum(ends.values()) for ends in self.progress.committed().values()]
        if max(done) >= self.topic.produced:
            self.topic.produce(self.burst)

    def advance(self, epochs: int, patience: float = 180.0) -> None:
        """Wait until both queries have committed so many epochs more.

        Raises:
            NotReached: they do not.
        """
        before = self.progress.epochs()

        def advanced() -> bool:
            now = self.progress.epochs()
            return all(now[name] >= before[name] + epochs for name in QUERIES)

        self.topic.produce(self.burst)
        self.until(advanced, "both queries commit", patience)

    def drain(self) -> None:
        """Wait until both queries have committed all that the topic holds."""
        ends = self.topic.ends()

        def drained() -> bool:
            self.supervise()
            return all(done == ends for done in self.progress.committed().values())

        while not drained():
            if time.monotonic() > self.deadline:
                raise Broken(f"the queries did not come to the end: {self.progress.epochs()}")
            time.sleep(0.2)

    # -- last checks

    def lead_to(self, url: str) -> None:
        """Lead the queries to another server."""
        self.proxy.lead_to(url)

    def must_fail(self, error: str) -> str:
        """Wait until the driver has ended with this error; what it said.

        Raises:
            Broken: it does not.
        """
        driver, limit = self.driver, time.monotonic() + 120.0
        if driver is None:
            raise Broken("there is no driver")
        while driver.alive and time.monotonic() < limit:
            self.topic.produce(self.burst)
            time.sleep(1.0)
        name, text = driver.end()
        if driver.alive or name != error:
            raise Broken(f"the driver should have ended with {error}; it says {name}: {text}")
        return f"{name}: {text}"

    # -- set-up

    def _job(self) -> Job:
        queries = {name: self._query(name) for name in QUERIES}
        return Job(queries, self.spark.settings(self.mode))

    def _query(self, name: str) -> Query:
        reads = {
            "kafka.bootstrap.servers": self.topic.address,
            "subscribe": NAME,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": str(MOST[name]),
        }
        writes = {
            **self.target.options(name),
            "url": self.proxy.url,
            "timeout": str(PATIENT if self.mode.patient else TIMEOUT),
            "chunkRows": "500",
            "checkpointLocation": str(self.progress.checkpoint(name)),
        }
        columns = self.target.columns if name == ROWS else ("side", "bucket", "n", "amount")
        return Query(("kafka", self.target.format), reads, writes, columns, EVENTS[name])


def fresh(home: Path) -> Path:
    """An empty directory."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return home


class Progress:
    """What Spark has noted of both queries.

    Args:
        checkpoints: the directory that holds the checkpoint of each.
    """

    def __init__(self, checkpoints: Path) -> None:
        self._homes = {name: checkpoints / name for name in QUERIES}

    def checkpoint(self, query: str) -> Path:
        return self._homes[query]

    def epochs(self) -> dict[str, int]:
        """The last epoch that each has committed; -1 before the first."""
        return {name: last(home / "commits") for name, home in self._homes.items()}

    def committed(self) -> dict[str, Ends]:
        """The offsets up to which each has committed."""
        epochs = self.epochs()
        return {name: _ends(home, epochs[name]) for name, home in self._homes.items()}


def last(log: Path) -> int:
    """The number of the last file of a query's log; -1 if there is none."""
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit()), default=-1)


def _ends(home: Path, epoch: int) -> Ends:
    if epoch < 0:
        return {}
    *_, last = (home / "offsets" / str(epoch)).read_text().splitlines()
    return {int(one): end for one, end in json.loads(last)[NAME].items()}
