"""How the Spark of a run is set up."""

from __future__ import annotations

import os
from pathlib import Path

from integration.chaos.drivers import Mode
from integration.servers.kafka import source_jars
from integration.servers.spark import environment

from sparkonce.tck.spark.bench import JAVA, SPECULATIVE
from sparkonce.tck.spark.cluster import Cluster

LOCAL = {"spark.master": "local[2,4]"}


class Spark:
    """Settings and environment of drivers, and the cluster, once one is needed."""

    def __init__(self, home: Path) -> None:
        self.home, self._scratch = home, home / "scratch"
        self._scratch.mkdir(parents=True)
        self._java = f'{JAVA} "-Djava.io.tmpdir={self._scratch}"'
        self.env = {
            **os.environ,
            **environment(self._scratch),
            "SPARK_DAEMON_JAVA_OPTS": self._java,
            "SPARK_DAEMON_MEMORY": "256m",
            # What is killed can't tidy up.
            "SPARK_LOCAL_DIRS": str(self._scratch),
            "TMPDIR": str(self._scratch),
        }
        self._cluster: Cluster | None = None

    def settings(self, mode: Mode) -> dict[str, str]:
        return {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": self._java,
            "spark.executor.extraJavaOptions": self._java,
            "spark.jars": ",".join(map(str, source_jars())),
            "spark.sql.shuffle.partitions": "3",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(self.home / "warehouse"),
            **(self._clustered() if mode.clustered else LOCAL),
        }

    def close(self) -> None:
        if self._cluster:
            self._cluster.close()

    def _clustered(self) -> dict[str, str]:
        self._cluster = self._cluster or Cluster(self.home / "cluster", self.env)
        return {**SPECULATIVE, "spark.master": self._cluster.url}
