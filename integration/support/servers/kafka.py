"""A Kafka broker for tests, from Maven: one node in KRaft mode."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from demo.java import java_home
from integration.support.servers.cache import jars
from integration.support.servers.finder import UnavailableError
from integration.support.servers.process import HERE, Place, Port, ServerProcess

if TYPE_CHECKING:
    from typing_extensions import Self

VERSION = "4.3.1"
BROKER = f"org.apache.kafka:kafka_2.13:{VERSION}"
SOURCE = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
"""Spark's source for Kafka; these releases also work with Spark 4.3."""

CLUSTER = "c3BhcmtvbmNlLXRlc3RzIQ"
JAVA = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
log.dirs={data}
log.retention.hours=-1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


def source_jars() -> list[Path]:
    """The jars of `spark.jars` for `format("kafka")`."""
    return jars(*SOURCE, whole=False)


def obtain() -> None:
    """Download what broker and source need, for a program that is about to lose its network."""
    jars(BROKER)
    source_jars()


class KafkaProcess(ServerProcess):
    """A private broker."""

    start_seconds = 60.0

    def __init__(self, place: Place = HERE) -> None:
        super().__init__(place)
        self._controller = Port()
        self._jars = jars(BROKER)
        self._settings = self.directory / "server.properties"
        self._settings.write_text(
            SETTINGS.format(
                host=self.host,
                port=self.port,
                controller=self._controller.number,
                data=self.directory / "data",
            )
        )

    @property
    def address(self) -> str:
        """The value of `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        if not (self.directory / "data").exists():
            self._format()
        return super().start()

    def command(self) -> list[str]:
        return self._java("kafka.Kafka", str(self._settings))

    def close(self) -> None:
        super().close()
        self._controller.release()

    def _format(self) -> None:
        command = self._java("kafka.tools.StorageTool", "format", "-t", CLUSTER)
        done = subprocess.run(
            [*command, "-c", str(self._settings)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UnavailableError(f"no storage for Kafka: {(done.stderr or done.stdout)[-200:]}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        home = java_home(self.directory)
        if home is None:
            raise UnavailableError("no Java for Kafka")
        path = os.pathsep.join(map(str, self._jars))
        return [str(home / "bin/java"), *JAVA, "-cp", path, main, *arguments]
