"""The drivers of a suite: it keeps one at a time, and passes it from check to check."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import TracebackType

from sparkonce.spark.session import SETTINGS
from sparkonce.tck.spark import setup
from sparkonce.tck.spark.cluster import Cluster
from sparkonce.tck.spark.described import Described
from sparkonce.tck.spark.faults import SIDE, Board
from sparkonce.tck.spark.remote import RemoteDriver

SEED = "SPARKONCE_TCK_SEED"


class Bench:
    """Starts the drivers that checks need, and stops them. A context manager."""

    def __init__(self, home: Path, seed: int | None = None) -> None:
        self.home = home
        self.seed = int(os.environ.get(SEED, "1")) if seed is None else seed
        self._side = home / "side"
        self._side.mkdir(parents=True, exist_ok=True)
        self.board = Board(self._side)
        self._scratch = home / "scratch"
        self._scratch.mkdir(exist_ok=True)
        self._cluster: Cluster | None = None
        self._driver: RemoteDriver | None = None
        self._kept: object = None
        self._started = 0

    def random(self, number: str) -> Random:
        """Random numbers for the moments of the kills and stops in the check of a rule."""
        return Random(f"{self.seed} {number}")  # noqa: S311

    def local(self, subject: Described) -> RemoteDriver:
        """The driver whose tasks run in its own JVM."""
        return self._keep(("local", subject.settings, subject.env), lambda: self.victim(subject))

    def clustered(self, subject: Described) -> RemoteDriver:
        """The driver with two executors, and speculation."""
        return self._keep(
            ("cluster", subject.settings, subject.env), lambda: self._on_cluster(subject)
        )

    def victim(self, subject: Described) -> RemoteDriver:
        """A driver that the caller may kill."""
        return self._launch(subject, setup.LOCAL)

    def kill(self) -> None:
        """SIGKILL for the kept driver; the next check starts its own."""
        if self._driver is not None:
            self._driver.kill()
        self._driver = None
        self.reset()

    def new_home(self, name: str) -> Path:
        """A directory that no other process uses."""
        self._started += 1
        return self.home / f"{self._started:02d}-{name}"

    def reset(self) -> None:
        """Stop all drivers; the next check starts its own."""
        if self._driver is not None:
            self._driver.close()
        if self._cluster is not None:
            self._cluster.close()
        self._driver = self._cluster = self._kept = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reset()

    def _keep(self, wanted: object, start: Callable[[], RemoteDriver]) -> RemoteDriver:
        if self._driver is None or self._kept != wanted or not self._driver.session.alive:
            self.reset()
            self._driver, self._kept = start(), wanted
        return self._driver

    def _on_cluster(self, subject: Described) -> RemoteDriver:
        self._cluster = Cluster(self.new_home("cluster"), self._environment(subject))
        return self._launch(subject, {**setup.SPECULATIVE, "spark.master": self._cluster.url})

    def _launch(self, subject: Described, settings: Mapping[str, str]) -> RemoteDriver:
        home, env = self.new_home("driver"), self._environment(subject)
        return RemoteDriver(home, {**self._settings(home), **settings, **subject.settings}, env)

    def _environment(self, subject: Described) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            **setup.environment(self._scratch),
            SIDE: str(self._side),
            **subject.env,
        }

    def _settings(self, home: Path) -> dict[str, str]:
        return {
            **setup.driver(home, self._scratch),
            **dict.fromkeys(
                SETTINGS, "true"
            ),  # settings that Q10 requires, where they are not the default
            "spark.sql.shuffle.partitions": "2",
            "spark.python.daemon.module": "sparkonce.tck.spark.daemon",
            # Rows reach the sink one by one, and a sink that writes in chunks writes several.
            "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
            "spark.buffer.size": "512",
        }
