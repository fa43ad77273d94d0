"""How the Spark of a run is set up."""

from __future__ import annotations

import os
from pathlib import Path

from integration.support.servers.kafka import source_jars
from integration.support.servers.spark import environment
from tools.chaos.drivers import Mode

from sparkonce.tck.spark import setup
from sparkonce.tck.spark.cluster import Cluster


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
