"""Drivers as processes: started, watched, killed, frozen."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from integration.support.servers.kafka import source_jars
from integration.support.servers.spark import environment
from tools.chaos.query import Job, Query

from sparkonce.tck.spark import setup
from sparkonce.tck.spark.cluster import Cluster
from sparkonce.tck.spark.processes import Session

FAILED = "terminated with error"
"""The text by which Spark reports a failed query; the reason follows."""

EXPECTED = frozenset({"StoreUnreachable", "StoreRefused", "StagedDataMissing", "ConcurrentDriver"})
"""Errors that the connector may raise in a chaos run. Any other error is a false alarm: it claims
that a checkpoint or the store lost data, or that a row or an option is wrong."""

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
        clustered: whether tasks run on two separate executor processes, not in the driver's JVM.
        patient: whether it waits long for a reply of the store, so that a slow task gets a twin.
    """

    clustered: bool = False
    patient: bool = False


class ChaosDriver(Session):
    """A driver process."""

    def __init__(self, home: Path, job: Job, spark: ChaosSpark, mode: Mode) -> None:
        home.mkdir(parents=True)
        self.home, self.mode = home, mode
        job.write(home / "job.json")
        program = [*spark.within, sys.executable, "-m", "tools.chaos.query", str(home / "job.json")]
        super().__init__(program, home / "driver.log", spark.env)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def failed(self) -> bool:
        """Whether one of its queries has failed; the process may live a little longer."""
        return FAILED in self.said

    def end(self) -> tuple[str, str]:
        """Name and text of the error that ended its first query."""
        found = self._known_end() or self._strange_end() or OTHER.search(self._why or self.said)
        if found is None:
            return "unknown", self.last_words(3)
        name, text = (part for part in found.groups() if part is not None)
        return name, text.strip(": ")[:300]

    @property
    def _why(self) -> str:
        """Spark's report on the query that ended first."""
        return "".join(self.said.split(FAILED, 2)[1:2])

    def _known_end(self) -> re.Match[str] | None:
        """An error of the connector, or Spark's error about the effect of a fault."""
        known = [found for kind in (ERROR, BUG, SPARKS) if (found := kind.search(self._why))]
        return min(known, key=re.Match.start) if known else None

    def _strange_end(self) -> re.Match[str] | None:
        """An error of Python that the connector should have translated."""
        return None if self._known_end() else next(PYTHONS.finditer(self._why), None)

    def alarms(self, expected: Set[str] = EXPECTED) -> set[str]:
        """Errors without a cause, anywhere in its log."""
        said = errors_in(self.said)
        if strange := self._strange_end():
            said.add(strange[1])
        return said - expected


def errors_in(log: str) -> set[str]:
    """The errors of the connector, and those that only a bug raises, by name."""
    return {name for name, _ in [*ERROR.findall(log), *BUG.findall(log)]}


class ChaosSpark:
    """Settings and environment of drivers, and the cluster, which starts on demand.

    Attributes:
        within: the words before the command of a driver that start it elsewhere.
    """

    def __init__(self, home: Path, within: Sequence[str] = ()) -> None:
        self.home, self._scratch, self.within = home, home / "scratch", within
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
"""Seconds of waiting after which the run feeds the queries."""


class NotReached(Exception):
    """An expected event did not happen."""


class Broken(Exception):
    """The run can't continue, or a promise was broken."""


class DriverKeeper(ABC):
    """Keeps a driver running, as a supervisor does, and records how each driver ended.

    Attributes:
        mode: the mode of the next driver.
        drivers: the number of started drivers.
        zombies: drivers that must end, with any error.
        deadline: the end of all waiting, by `time.monotonic()`.
        expected: the errors that are no false alarms.
    """

    deadline = math.inf
    expected: Set[str] = EXPECTED

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
        """The queries of the next driver."""

    @abstractmethod
    def feed(self) -> None:
        """Write new rows to the sources."""

    def hungry(self) -> bool:
        """Whether a query has no rows left to read; True unless a subclass knows better."""
        return True

    def checkpoint(self, query: str) -> Path:
        return self.home / "checkpoints" / query

    def epochs(self) -> dict[str, int]:
        """The last epoch that each query has committed; -1 before the first."""
        return {name: _last(self.checkpoint(name) / "commits") for name in self.names}

    def start(self) -> ChaosDriver:
        """Start a driver; others keep running."""
        self.drivers += 1
        home = self.home / f"driver-{self.drivers:03d}"
        job = Job(self._queries(), self.spark.settings(self.mode))
        self.driver = ChaosDriver(home, job, self.spark, self.mode)
        self._started.append(self.driver)
        return self.driver

    def supervise(self) -> None:
        """Restart the driver if it has ended, as a supervisor does."""
        self._reap()
        if self.driver is None:
            self.start()

    def need(self, mode: Mode) -> None:
        """Run a driver of this mode; a new one commits an epoch of each query first."""
        self._reap()
        if self.driver and self.driver.mode != mode:
            self.kill(tree=True)
        self.mode = mode
        if self.driver is None:
            self.start()
            self.advance(1)

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
        """Wait until each query has committed `epochs` more epochs."""
        before = self.epochs()

        def advanced() -> bool:
            return all(now >= before[name] + epochs for name, now in self.epochs().items())

        self.feed()
        self.until(advanced, "all queries commit", patience)

    def kill(self, *, tree: bool) -> None:
        """Send SIGKILL to the driver; with `tree`, also to its Python workers."""
        if self.driver is None:
            raise Broken("no driver exists to kill")
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
        """End the Python workers that outlived a killed driver."""
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
        """The errors that ended drivers, with their counts, except those of zombies."""
        ended = (one for one in self._judged() if one.failed or one in self._ended)
        return dict(Counter(driver.end()[0] for driver in ended))

    def alarms(self) -> list[str]:
        """False alarms of drivers, except those of zombies."""
        said = ((one.home.name, one.alarms(self.expected)) for one in self._judged())
        return [f"{name}: {', '.join(sorted(alarms))}" for name, alarms in said if alarms]

    def _judged(self) -> list[ChaosDriver]:
        return [driver for driver in self._started if driver not in self.zombies]


def _last(log: Path) -> int:
    """The number of the last file of a query's log; -1 if the log is empty."""
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit()), default=-1)
