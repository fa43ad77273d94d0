"""Drivers as processes: started, watched, killed, frozen."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from integration.support.servers.kafka import source_jars
from integration.support.servers.spark import environment
from tools.chaos.query import Job, Query

from sparkonce.tck.spark import setup
from sparkonce.tck.spark.cluster import Cluster
from sparkonce.tck.spark.processes import Session

FAILED = "terminated with error"
"""Spark says so of a query, and then why."""

EXPECTED = {"StoreUnreachable", "StoreRefused", "StagedDataMissing", "ConcurrentDriver"}
"""What the connector may say under fire. Any other of its errors says what is not so: that a
checkpoint or the store has lost something, or that a row or an option is wrong."""

ERROR = re.compile(r"sparkonce\.errors\.(\w+)(.*)")
BUG = re.compile(
    "^((?:Assertion|Attribute|Index|Key|Name|NotImplemented|Type|UnboundLocal)Error)\\b(.*)",
    re.MULTILINE,
)
SPARKS = re.compile(r"\[(CONCURRENT_\w+)\](.*)|(Python worker exited)(.*)")
PYTHONS = re.compile(
    r"^(?!java|org\.|scala|io\.|py4j|pyspark)(?:\w+\.)*(\w+(?:Error|Exception))\b(.*)", re.MULTILINE
)
OTHER = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception))(: .*)", re.MULTILINE)


@dataclass(frozen=True)
class Mode:
    """How a driver runs.

    Attributes:
        clustered: on two executors that are processes of their own, not in its own JVM.
        patient: waits long for an answer of the store, so that a slow task gets a twin.
    """

    clustered: bool = False
    patient: bool = False


class ChaosDriver(Session):
    """A driver process."""

    def __init__(self, home: Path, job: Job, env: Mapping[str, str], mode: Mode) -> None:
        home.mkdir(parents=True)
        self.home, self.mode = home, mode
        job.write(home / "job.json")
        program = [sys.executable, "-m", "tools.chaos.query", str(home / "job.json")]
        super().__init__(program, home / "driver.log", env)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def failed(self) -> bool:
        """Whether a query of it has ended by an error; the process may live a little longer."""
        return FAILED in self.said

    def end(self) -> tuple[str, str]:
        """Name and text of the error by which its first query ended."""
        found = self._known_end() or self._strange_end() or OTHER.search(self._why or self.said)
        if found is None:
            return "unknown", self.last_words(3)
        name, text = (part for part in found.groups() if part is not None)
        return name, text.strip(": ")[:300]

    @property
    def _why(self) -> str:
        """What Spark says of the query that ended first."""
        return "".join(self.said.split(FAILED, 2)[1:2])

    def _known_end(self) -> re.Match[str] | None:
        """The connector's own error, or Spark's about what faults do to a query."""
        known = [found for kind in (ERROR, BUG, SPARKS) if (found := kind.search(self._why))]
        return min(known, key=re.Match.start) if known else None

    def _strange_end(self) -> re.Match[str] | None:
        """An error of Python that the connector should have made its own."""
        return None if self._known_end() else next(PYTHONS.finditer(self._why), None)

    def alarms(self) -> set[str]:
        """Errors that nothing called for, whenever it spoke of them."""
        log = self.said
        said = [*ERROR.findall(log), *BUG.findall(log)]
        if strange := self._strange_end():
            said.append(strange.groups())
        return {name for name, _ in said} - EXPECTED


class ChaosSpark:
    """Settings and environment of drivers, and the cluster, once one is needed."""

    def __init__(self, home: Path) -> None:
        self.home, self._scratch = home, home / "scratch"
        self._scratch.mkdir(parents=True)
        self.env = {
            **os.environ,
            **environment(self._scratch),
            **setup.environment(self._scratch),
        }
        self._cluster: Cluster | None = None

    def settings(self, mode: Mode) -> dict[str, str]:
        return {
            **setup.driver(self.home, self._scratch),
            "spark.jars": ",".join(map(str, source_jars())),
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.session.timeZone": "UTC",
            **(self._clustered() if mode.clustered else setup.LOCAL),
        }

    def close(self) -> None:
        if self._cluster:
            self._cluster.close()

    def _clustered(self) -> dict[str, str]:
        self._cluster = self._cluster or Cluster(self.home / "cluster", self.env)
        return {**setup.SPECULATIVE, "spark.master": self._cluster.url}


SAME_END = 6
HUNGRY = 2.0
"""Seconds after which queries that are waited for are fed."""


class NotReached(Exception):
    """What was waited for did not come about."""


class Broken(Exception):
    """The run can't go on, or something is not as it is promised."""


class DriverKeeper(ABC):
    """Has a driver run, as whoever runs queries does, and knows how each has ended.

    Attributes:
        mode: of the next driver.
        drivers: how many were started.
        zombies: those that must end, whatever they say.
        deadline: by `time.monotonic()`, after which nothing is waited for.
    """

    deadline = math.inf

    def __init__(self, home: Path, spark: ChaosSpark, names: Sequence[str]) -> None:
        self.home, self.spark, self.names = home, spark, names
        self.driver: ChaosDriver | None = None
        self.mode, self.drivers = Mode(), 0
        self.zombies: list[ChaosDriver] = []
        self._started: list[ChaosDriver] = []
        self._ended: list[ChaosDriver] = []
        self._dead: list[ChaosDriver] = []
        self._same_end = (0, {"": 0})

    @abstractmethod
    def _queries(self) -> Mapping[str, Query]:
        """What the next driver runs."""

    @abstractmethod
    def feed(self) -> None:
        """Give the queries something to do."""

    def hungry(self) -> bool:
        """Whether a query has nothing left to do; it is not known if a subclass does not tell."""
        return True

    def checkpoint(self, query: str) -> Path:
        return self.home / "checkpoints" / query

    def epochs(self) -> dict[str, int]:
        """The last epoch that each query has committed; -1 before the first."""
        return {name: _last(self.checkpoint(name) / "commits") for name in self.names}

    def start(self) -> ChaosDriver:
        """Start a driver, beside what there is."""
        self.drivers += 1
        home = self.home / f"driver-{self.drivers:03d}"
        job = Job(self._queries(), self.spark.settings(self.mode))
        self.driver = ChaosDriver(home, job, self.spark.env, self.mode)
        self._started.append(self.driver)
        return self.driver

    def supervise(self) -> None:
        """Start the driver again if it has ended, as whoever runs a query does."""
        self._reap()
        if self.driver is None:
            self.start()

    def _reap(self) -> None:
        if self.driver and not self.driver.alive:
            self._note_end(self.driver)
            self._ended.append(self.driver)
            self.bury(self.driver)

    def until(self, event: Callable[[], bool], what: str, patience: float = 90.0) -> None:
        """Wait for an event, while the queries are fed and the driver supervised."""
        now = time.monotonic()
        limit, fed = min(now + patience, self.deadline), now
        while not event():
            now = time.monotonic()
            if now > limit:
                raise NotReached(f"{what}: not within {patience:.0f} s")
            if now - fed > HUNGRY:
                if self.hungry():
                    self.feed()
                fed = now
            self.supervise()
            time.sleep(0.01)

    def advance(self, epochs: int, patience: float = 180.0) -> None:
        """Wait until all queries have committed so many epochs more."""
        before = self.epochs()

        def advanced() -> bool:
            return all(now >= before[name] + epochs for name, now in self.epochs().items())

        self.feed()
        self.until(advanced, "all queries commit", patience)

    def kill(self, *, tree: bool) -> None:
        """SIGKILL for the driver: with its Python workers, or they are left to find out."""
        if self.driver is None:
            raise Broken("there is no driver to kill")
        self.bury_dead()
        if tree:
            self.driver.close()
        else:
            self.driver.kill_group()
            self._dead.append(self.driver)
        self.driver = None

    def bury(self, driver: ChaosDriver) -> None:
        """Forget a driver that has ended."""
        driver.close()
        if driver is self.driver:
            self.driver = None

    def bury_dead(self) -> None:
        """End what drivers that were killed alone have left: their Python workers."""
        while self._dead:
            self._dead.pop().close()

    def close(self) -> None:
        self.bury_dead()
        self._reap()
        if self.driver:
            self.bury(self.driver)

    def _note_end(self, driver: ChaosDriver) -> None:
        often, epochs = self._same_end
        now = self.epochs()
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


def _last(log: Path) -> int:
    """The number of the last file of a query's log; -1 if there is none."""
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit()), default=-1)
