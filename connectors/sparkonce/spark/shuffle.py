"""Whether Spark may mix two computations of one epoch, before its rows reach a sink.

A query that draws at random before a shuffle (a UDF, ``uuid()``) computes other rows each time.
Where an executor is lost, Spark computes its part of the shuffle anew, and joins it to what tasks
have read of the first computation: rows are lost and doubled, and no sink can see it. Since 4.1
Spark can compare checksums, and give such an epoch up, so that it is replayed as a whole.
See https://issues.apache.org/jira/browse/SPARK-53575

The checksums are those of Spark's own shuffle. None are compared where blocks are merged
(push-based shuffle), where a plugin exchanges rows by operators of its own (RAPIDS), or where
another manager writes them (a remote shuffle such as Celeborn or Uniffle, and Gluten).
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from sparkonce.errors import error_text

SETTINGS = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
# A default can't be looked up where the sink runs: tasks see what was set, and jars hold no values.
ON_SINCE = (4, 2)
"""The first release that has both on by default."""

CHECKSUM = "org/apache/spark/shuffle/checksum/RowBasedChecksum.class"
NONE_HERE = "a Spark that compares no checksums of shuffles"

PUSH, MANAGER = "spark.shuffle.push.enabled", "spark.shuffle.manager"
OWN = ("sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager")
"""Spark's manager, by its names: https://spark.apache.org/docs/latest/configuration.html"""

log = logging.getLogger("sparkonce")


def may_mix(setting: Callable[[str], str | None], release: str) -> str:
    """The setting by which computations may be mixed, with its value; empty if they can't.

    Args:
        setting: gives the value of a setting that was set, else None.
        release: of Spark, whose default holds else.
    """
    numbers = re.match(r"(\d+)\.(\d+)", release)
    default = numbers is None or (int(numbers[1]), int(numbers[2])) >= ON_SINCE
    for name in SETTINGS:
        if (setting(name) or str(default)).lower() != "true":
            return f"{name}=false"
    if (setting(PUSH) or "").lower() == "true":
        return f"{PUSH}=true"
    manager = setting(MANAGER) or OWN[0]
    return "" if manager in OWN else f"{MANAGER}={manager}"


def lacking() -> str:
    """`NONE_HERE` if this Spark has no such checksums, whatever is set; else empty."""
    return "" if compares(_home() / "jars") else NONE_HERE


@lru_cache
def compares(jars: Path) -> bool:
    """Whether a Spark can compare checksums of rows, by the class in its jars that makes them.

    Args:
        jars: the folder. If no core of Spark can be read there, the settings are believed.
    """
    cores = list(jars.glob("spark-core_*.jar"))
    try:
        return not cores or any(map(_has_class, cores))
    except (OSError, BadZipFile):
        return True


def _has_class(jar: Path) -> bool:
    with ZipFile(jar) as packed:
        return CHECKSUM in packed.namelist()


def _home() -> Path:
    named, found = os.environ.get("SPARK_HOME"), find_spec("pyspark")
    return Path(named or (found and found.origin and Path(found.origin).parent) or ".")


@lru_cache(maxsize=64)
def warn(run_id: str, sink: str, setting: str) -> None:
    """Say, once a run, what can't be guarded.

    Args:
        run_id: of the query.
        sink: its name.
        setting: see `may_mix`, or `NONE_HERE`.
    """
    log.warning(
        error_text(
            f"Sink {sink!r}, run {run_id}: Spark may mix two computations of an epoch, with"
            f" {setting}",
            why="where an executor is lost, and the query draws at random before a shuffle, rows"
            " are lost or doubled before they reach the sink",
            todo=f"set {' and '.join(SETTINGS)} to true (since Spark 4.2 they are, unless changed;"
            " before 4.1 there are none, so use a newer Spark), and let Spark's own shuffle"
            f" exchange the rows ({PUSH}=false, {MANAGER}=sort); or let the query draw nothing",
        )
    )
