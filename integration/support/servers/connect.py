"""A server of Spark Connect for tests, from the PySpark that runs them."""

from __future__ import annotations

import socket
from pathlib import Path

import pyspark
from integration.support.servers import spark
from integration.support.servers.port import HOST
from integration.support.servers.process import ServerProcess

SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer(ServerProcess):
    """A server with two cores; its Python is this one."""

    start_seconds = 180.0

    def __init__(self, *jars: Path) -> None:
        super().__init__()
        self._jars = jars

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self.port}"

    def command(self) -> list[str]:
        given = [f"{key}={value}" for key, value in spark.environment(self.directory).items()]
        settings = [f"--conf={key}={value}" for key, value in self._settings().items()]
        jars = ["--jars", ",".join(map(str, self._jars))] if self._jars else []
        return ["env", *given, str(SUBMIT), "--class", SERVER, *settings, *jars]

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _settings(self) -> dict[str, str]:
        return {
            "spark.master": "local[2]",
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.bindAddress": HOST,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.directory / "warehouse"),
            "spark.ui.enabled": "false",
        }
