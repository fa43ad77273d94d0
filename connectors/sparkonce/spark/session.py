"""What a task sees of its query and of the session, and the driver's side of a sink does not.

Spark hands the ids of query, run and epoch, and every setting of the session that was set, to
tasks as local properties; a task's message carries to the driver what is needed there.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from zipfile import BadZipFile, ZipFile

from sparkonce.errors import UnsupportedQuery, error_text
from sparkonce.spark.storage import Settings

if TYPE_CHECKING:
    from pyspark import TaskContext

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
    """The setting by which Spark may mix two computations of an epoch; empty if it can't.

    A query that draws at random before a shuffle (a UDF, ``uuid()``) computes other rows each time.
    Where an executor is lost, Spark computes its part of the shuffle anew, and joins it to what
    tasks have read of the first computation: rows are lost and doubled, and no sink can see it.
    Since 4.1 Spark can compare checksums, and give such an epoch up, so that it is replayed as a
    whole: https://issues.apache.org/jira/browse/SPARK-53575

    The checksums are those of Spark's own shuffle. None are compared where blocks are merged
    (push-based shuffle), where a plugin exchanges rows by operators of its own (RAPIDS), or where
    another manager writes them (a remote shuffle such as Celeborn or Uniffle, and Gluten).

    `setting` gives the value of a setting that was set, else None; then the default of the release
    holds.
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


def lacks_checksums() -> str:
    """`NONE_HERE` if this Spark has no such checksums, whatever is set; else empty."""
    named, found = os.environ.get("SPARK_HOME"), find_spec("pyspark")
    home = Path(named or (found and found.origin and Path(found.origin).parent) or ".")
    return "" if compares(home / "jars") else NONE_HERE


@lru_cache
def compares(jars: Path) -> bool:
    """Whether a Spark can compare checksums of rows, by the class in its jars that makes them.

    If no core of Spark can be read in that folder, the settings are believed.
    """
    cores = list(jars.glob("spark-core_*.jar"))
    try:
        return not cores or any(CHECKSUM in ZipFile(jar).namelist() for jar in cores)
    except (OSError, BadZipFile):
        return True


@lru_cache(maxsize=64)
def warn_of_mixing(run_id: str, sink: str, setting: str) -> None:
    """Say, once a run, what can't be guarded."""
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


EPOCH, QUERY, RUN = "streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id"
APPLICATION, STARTED, TAGS = "spark.app.id", "spark.app.startTime", "spark.job.tags"
EXECUTION = "spark.sql.execution.root.id"
"""The outermost one: of the micro-batch, for whatever ``foreachBatch`` writes in it."""
SESSION_TAG, CONNECT_TAG = re.compile(r"spark-session-[0-9a-f-]{36}"), "SparkConnect_"
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
"""Where checkpoints lie that no option places: there, in a folder that is named as the query is."""


@dataclass(frozen=True)
class SparkSettings:
    """Settings of the session in which a query was started.

    Attributes:
        checkpoints: see `CHECKPOINTS`; None if it was not set.
        may_mix: see `sparkonce.spark.session`.
        storage: how the file system of the checkpoint is reached.
    """

    checkpoints: str | None = None
    may_mix: str = ""
    storage: Settings = field(default_factory=Settings)

    @classmethod
    def seen_by(cls, setting: Callable[[str], str | None], release: str) -> SparkSettings:
        """The session of a task."""
        return cls(setting(CHECKPOINTS), may_mix(setting, release))

    def reaching(self, location: str | None, setting: Callable[[str], str | None]) -> SparkSettings:
        """The same, with what its driver needs to read a checkpoint at this place."""
        return replace(self, storage=Settings.seen_by(setting, location))

    def place(self, option: str | None, query_name: str | None) -> str | None:
        """Where Spark keeps the checkpoint of a query; None if that can't be known.

        A query without a name gets a folder of a random one, anew at each start.

        ``queryName`` names a folder where no option places the checkpoint.
        """
        if option or not (self.checkpoints and query_name):
            return option
        return f"{self.checkpoints.rstrip('/')}/{query_name}"


class _NoContext:
    """That of an engine which gives none: Sail, which is not Spark, runs batches only."""

    def partitionId(self) -> int:  # noqa: N802
        """Always 0: it orders attempts and tells people where a row was, and names nothing."""
        return 0

    def getLocalProperty(self, _: str) -> None:  # noqa: N802
        """Nothing is known of the session."""


Context: TypeAlias = "TaskContext | _NoContext"


def _application(context: Context) -> str:
    """This start of the Spark application; empty if it can't be known.

    A driver that a cluster manager starts again keeps the id, and counts executions anew.
    """
    name = context.getLocalProperty(APPLICATION)
    return f"{name}/{context.getLocalProperty(STARTED) or ''}" if name else ""


def _sessions(context: Context) -> str:
    """The Spark session of a job, and with a nested one that around it; empty if not known.

    That of Spark Connect is no answer: its ``foreachBatch`` keeps it when a query starts again.
    """
    tags = (context.getLocalProperty(TAGS) or "").split(",")
    if any(tag.startswith(CONNECT_TAG) for tag in tags):
        return ""
    return ",".join(sorted(filter(SESSION_TAG.fullmatch, tags)))


def batch_session(context: Context) -> str:
    """The session of a batch outside a stream. A job that is run again has another one.

    Empty if it can't be known: then a second write can't be told from a job that is run again.
    """
    known = _application(context), _sessions(context)
    return "/".join(known) if all(known) else ""


def batch_execution(context: Context) -> str:
    """The execution of the micro-batch in whose ``foreachBatch`` a batch is written.

    The run of the stream stands in Spark's job group, which is the user's to set.
    """
    known = _application(context), context.getLocalProperty(EXECUTION)
    if not all(known):
        raise UnsupportedQuery(
            "Spark does not tell which execution of its micro-batch writes this batch",
            why="without it a second write into one target can't be told from a replay of the"
            f" first, whose rows must not count twice; property {EXECUTION} has it",
            todo="write from the thread that Spark calls, or from a pyspark.InheritableThread,"
            " and leave that property as it is",
        )
    return "/".join(map(str, known))


def task_context() -> Context:
    """The context of a task."""
    from pyspark import TaskContext

    return TaskContext.get() or _NoContext()


def epoch_context() -> Context:
    """The context of a task of a streaming query.

    Raises:
        UnsupportedQuery: this is none.
    """
    context = task_context()
    if None in map(context.getLocalProperty, (EPOCH, QUERY)):
        raise UnsupportedQuery(
            "This task belongs to no epoch of a streaming query",
            why="without an epoch no replay can be told from new rows",
            todo="use writeStream with trigger(processingTime=...) or trigger(availableNow=True)",
        )
    return context
