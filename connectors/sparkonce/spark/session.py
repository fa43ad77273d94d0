"""Properties of the query and the session that tasks see, and the driver's side of a sink does not.

Spark passes the ids of query, run and epoch, and every explicit setting of the session, to tasks as
local properties. A task's message returns to the driver what it needs.
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
# The sink cannot look up a default: tasks see only explicit settings, and jars hold no values.
ON_SINCE = (4, 2)
"""The first release that enables both by default."""

CHECKSUM = "org/apache/spark/shuffle/checksum/RowBasedChecksum.class"
NONE_HERE = "a Spark that compares no checksums of shuffles"

PUSH, MANAGER = "spark.shuffle.push.enabled", "spark.shuffle.manager"
OWN = ("sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager")
"""The names of Spark's own manager: https://spark.apache.org/docs/latest/configuration.html"""

log = logging.getLogger("sparkonce")


def may_mix(setting: Callable[[str], str | None], release: str) -> str:
    """The setting with which Spark may mix two computations of an epoch; empty if it cannot.

    A query that draws at random before a shuffle (a UDF, ``uuid()``) computes other rows each time.
    After the loss of an executor, Spark computes its part of the shuffle again. It joins that part
    with rows that tasks have read of the first computation: rows are lost and duplicated, and no
    sink can see it. Since 4.1 Spark can compare checksums, and fail the epoch, so that the query
    replays all of it: https://issues.apache.org/jira/browse/SPARK-53575

    Only Spark's own shuffle has these checksums. Spark compares none if it merges blocks
    (push-based shuffle), or if a plugin exchanges rows with its own operators (RAPIDS). Nor does it
    if another manager writes them (a remote shuffle such as Celeborn or Uniffle, and Gluten).

    `setting` returns the value of an explicit setting, else None; then the default of the release
    applies.
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
    """`NONE_HERE` if this Spark has no such checksums, whatever the settings; else empty."""
    named, found = os.environ.get("SPARK_HOME"), find_spec("pyspark")
    home = Path(named or (found and found.origin and Path(found.origin).parent) or ".")
    return "" if compares(home / "jars") else NONE_HERE


@lru_cache
def compares(jars: Path) -> bool:
    """Whether a Spark can compare checksums of rows, by the class in its jars.

    If that folder has no readable core of Spark, the answer is yes, and the settings decide.
    """
    cores = list(jars.glob("spark-core_*.jar"))
    try:
        return not cores or any(CHECKSUM in ZipFile(jar).namelist() for jar in cores)
    except (OSError, BadZipFile):
        return True


@lru_cache(maxsize=64)
def warn_of_mixing(run_id: str, sink: str, setting: str) -> None:
    """Warn, once a run, of the missing guard."""
    log.warning(
        error_text(
            f"Sink {sink!r}, run {run_id}: Spark may mix two computations of an epoch, with"
            f" {setting}",
            why="if the query draws at random before a shuffle and an executor fails, rows are lost"
            " or duplicated before they reach the sink",
            todo=f"set {' and '.join(SETTINGS)} to true (the default since Spark 4.2; before 4.1"
            " they do not exist, so use a newer Spark). Also let Spark's own shuffle exchange the"
            f" rows ({PUSH}=false, {MANAGER}=sort). Or remove the random values from the query",
        )
    )


EPOCH, QUERY, RUN = "streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id"
APPLICATION, STARTED, TAGS = "spark.app.id", "spark.app.startTime", "spark.job.tags"
EXECUTION = "spark.sql.execution.root.id"
"""The outermost execution: that of the micro-batch, for all writes of its ``foreachBatch``."""
SESSION_TAG, CONNECT_TAG = re.compile(r"spark-session-[0-9a-f-]{36}"), "SparkConnect_"
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
"""The default location of checkpoints: each is a folder there with the name of its query."""


@dataclass(frozen=True)
class SparkSettings:
    """Settings of the session that started a query.

    Attributes:
        checkpoints: see `CHECKPOINTS`; None if not set.
        may_mix: see `sparkonce.spark.session`.
        storage: how to reach the file system of the checkpoint.
    """

    checkpoints: str | None = None
    may_mix: str = ""
    storage: Settings = field(default_factory=Settings)

    @classmethod
    def seen_by(cls, setting: Callable[[str], str | None], release: str) -> SparkSettings:
        """The session of a task."""
        return cls(setting(CHECKPOINTS), may_mix(setting, release))

    def reaching(self, location: str | None, setting: Callable[[str], str | None]) -> SparkSettings:
        """A copy with the settings that its driver needs to read a checkpoint at this location."""
        return replace(self, storage=Settings.seen_by(setting, location))

    def place(self, option: str | None, query_name: str | None) -> str | None:
        """The location of a query's checkpoint; None if unknown.

        Without an option for the location, ``queryName`` names the folder. A query without a name
        gets a folder with a random name at each start.
        """
        if option or not (self.checkpoints and query_name):
            return option
        return f"{self.checkpoints.rstrip('/')}/{query_name}"


class _NoContext:
    """The context of an engine without one: Sail, which is not Spark, runs batches only."""

    def partitionId(self) -> int:  # noqa: N802
        """Always 0: the id orders attempts and shows people where a row was, but names nothing."""
        return 0

    def getLocalProperty(self, _: str) -> None:  # noqa: N802
        """None: the session is unknown."""


Context: TypeAlias = "TaskContext | _NoContext"


def _application(context: Context) -> str:
    """The id of this start of the Spark application; empty if unknown.

    A driver that a cluster manager restarts keeps the application id, and restarts its count of
    executions.
    """
    name = context.getLocalProperty(APPLICATION)
    return f"{name}/{context.getLocalProperty(STARTED) or ''}" if name else ""


def _sessions(context: Context) -> str:
    """The Spark session of a job, and the session around a nested one; empty if unknown.

    A session of Spark Connect does not count: its ``foreachBatch`` keeps it after a restart of the
    query.
    """
    tags = (context.getLocalProperty(TAGS) or "").split(",")
    if any(tag.startswith(CONNECT_TAG) for tag in tags):
        return ""
    return ",".join(sorted(filter(SESSION_TAG.fullmatch, tags)))


def batch_session(context: Context) -> str:
    """The session of a batch outside a stream. A second run of a job has another one.

    Empty if unknown: then nothing distinguishes a second write from a second run of the job.
    """
    known = _application(context), _sessions(context)
    return "/".join(known) if all(known) else ""


def batch_execution(context: Context) -> str:
    """The execution of the micro-batch whose ``foreachBatch`` writes a batch.

    Not the run of the stream: Spark keeps that in the job group, which the user may set.
    """
    known = _application(context), context.getLocalProperty(EXECUTION)
    if not all(known):
        raise UnsupportedQuery(
            "Spark does not report which execution of its micro-batch writes this batch",
            why="without it a second write into a target looks like a replay of the first,"
            f" whose rows must not count twice; property {EXECUTION} has it",
            todo="write from the thread that Spark calls, or from a pyspark.InheritableThread,"
            " and do not change that property",
        )
    return "/".join(map(str, known))


def task_context() -> Context:
    """The context of a task."""
    from pyspark import TaskContext

    return TaskContext.get() or _NoContext()


def epoch_context() -> Context:
    """The context of a task of a streaming query.

    Raises:
        UnsupportedQuery: the task belongs to no streaming query.
    """
    context = task_context()
    if None in map(context.getLocalProperty, (EPOCH, QUERY)):
        raise UnsupportedQuery(
            "This task belongs to no epoch of a streaming query",
            why="without an epoch nothing distinguishes a replay from new rows",
            todo="use writeStream with trigger(processingTime=...) or trigger(availableNow=True)",
        )
    return context
