"""Settings for each short-lived Spark: all of it on 127.0.0.1."""

from __future__ import annotations

from pathlib import Path

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Most of a check is Spark's start, which Java's second compiler slows down."""
LOCAL = {"spark.master": "local[2,4]"}
SPECULATIVE = {
    "spark.cores.max": "2",
    "spark.executor.memory": "1g",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    # Long enough for the kill of an executor before Spark starts a twin of its task.
    "spark.speculation.minTaskRuntime": "4s",
}


def java(scratch: Path) -> str:
    """Options of a JVM that keeps its temporary files in that folder."""
    return f'{SHORT_LIVED} "-Djava.io.tmpdir={scratch}"'


def environment(scratch: Path) -> dict[str, str]:
    """Variables of all processes; killed ones can't clean up, so they write into that folder."""
    return {
        "SPARK_DAEMON_JAVA_OPTS": java(scratch),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
    }


def driver(home: Path, scratch: Path) -> dict[str, str]:
    """Settings of a driver and its executors.

    Args:
        home: holds the warehouse.
        scratch: see `environment`.
    """
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": java(scratch),
        "spark.executor.extraJavaOptions": java(scratch),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
    }
