"""Drivers as processes: started, watched, killed, frozen."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from integration.support.servers.kafka import source_jars
from integration.support.servers.spark import environment
from tools.chaos.query import Job

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


class ChaosDriver:
    """A driver process."""

    def __init__(self, home: Path, job: Job, env: Mapping[str, str], mode: Mode) -> None:
        home.mkdir(parents=True)
        self.home, self.mode = home, mode
        job.write(home / "job.json")
        program = [sys.executable, "-m", "tools.chaos.query", str(home / "job.json")]
        self.session = Session(program, home / "driver.log", env)

    @property
    def alive(self) -> bool:
        return self.session.alive

    @property
    def log(self) -> str:
        return self.session.log.read_text(errors="replace")

    @property
    def failed(self) -> bool:
        """Whether a query of it has ended by an error; the process may live a little longer."""
        return FAILED in self.log

    def end(self) -> tuple[str, str]:
        """Name and text of the error by which its first query ended."""
        found = self._known_end() or self._strange_end() or OTHER.search(self._why or self.log)
        if found is None:
            return "unknown", self.session.last_words(3)
        name, text = (part for part in found.groups() if part is not None)
        return name, text.strip(": ")[:300]

    @property
    def _why(self) -> str:
        """What Spark says of the query that ended first."""
        return "".join(self.log.split(FAILED, 2)[1:2])

    def _known_end(self) -> re.Match[str] | None:
        """The connector's own error, or Spark's about what faults do to a query."""
        known = [found for kind in (ERROR, BUG, SPARKS) if (found := kind.search(self._why))]
        return min(known, key=re.Match.start) if known else None

    def _strange_end(self) -> re.Match[str] | None:
        """An error of Python that the connector should have made its own."""
        return None if self._known_end() else next(PYTHONS.finditer(self._why), None)

    def alarms(self) -> set[str]:
        """Errors that nothing called for, whenever it spoke of them."""
        log = self.log
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
