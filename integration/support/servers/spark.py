"""One small local Spark for all tests: quiet, in UTC, and with this Python."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyspark
from demo.java import java_home
from integration.support.servers.process import HOST, ServerProcess

from sparkonce.tck.spark.setup import SHORT_LIVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]

QUIET = """
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
rootLogger.appenderRef.file.ref = file
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
appender.file.type = File
appender.file.name = file
appender.file.fileName = LOG
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""
LOG = "spark.sparkonce.tests.log"
END_SECONDS = 300
"""Seconds that a JVM may take to end, in which it may write an archive of its classes."""


@contextmanager
def session(
    scratch: Path, more: Mapping[str, str] | None = None, java: str = ""
) -> Iterator[SparkSession]:
    """A session in its own JVM, with further settings, and further options of Java.

    The next session in the same JVM would have this session's classes and settings.
    """
    from pyspark.sql import SparkSession

    with mock.patch.dict(os.environ, environment(scratch)):
        builder = SparkSession.builder.appName("sparkonce tests")
        for key, value in {**_settings(scratch, java), **(more or {})}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
            _end_jvm()


class OneSession:
    """The only session of a process: other settings end it, and start another one."""

    def __init__(self, new_scratch: Callable[[], Path]) -> None:
        self._new_scratch = new_scratch
        self._more: Mapping[str, str] = {}
        self._session: SparkSession | None = None
        self._running = ExitStack()

    def having(self, more: Mapping[str, str]) -> SparkSession:
        """The session with these further settings."""
        if self._session is None or self._more != more:
            self.close()
            begun = session(self._new_scratch(), more, SHORT_LIVED)
            self._session = self._running.enter_context(begun)
            self._more = more
        return self._session

    def close(self) -> None:
        self._session = None
        self._running.close()


def _end_jvm() -> None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(END_SECONDS)
    SparkContext._gateway = SparkContext._jvm = None


def environment(scratch: Path) -> dict[str, str]:
    """The environment of Spark's processes."""
    # The workers import modules of the tests, so they need the project's root, too.
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home(scratch)),
    }


def _settings(scratch: Path, java: str) -> dict[str, str]:
    log = scratch / "log4j2.properties"
    log.write_text(QUIET.replace("LOG", str(scratch / "spark.log")))
    return {
        LOG: str(scratch / "spark.log"),
        "spark.master": "local[2,4]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": (
            f"-Duser.timezone=UTC -Dlog4j2.configurationFile={log.as_uri()} {java}"
        ),
    }


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
        given = [f"{key}={value}" for key, value in environment(self.directory).items()]
        settings = [f"--conf={key}={value}" for key, value in self._conf().items()]
        jars = ["--jars", ",".join(map(str, self._jars))] if self._jars else []
        return ["env", *given, str(SUBMIT), "--class", SERVER, *settings, *jars]

    def _conf(self) -> dict[str, str]:
        return {
            "spark.master": "local[2]",
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.driver.bindAddress": HOST,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.directory / "warehouse"),
            "spark.ui.enabled": "false",
        }
