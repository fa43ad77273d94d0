"""What a task sees of its query and of the session, and the driver's side of a sink does not.

Spark hands the ids of query, run and epoch, and every setting of the session that was set, to
tasks as local properties; a task's message carries to the driver what is needed there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkonce.errors import UnsupportedQuery
from sparkonce.spark import shuffle
from sparkonce.spark.storage import Settings

EPOCH, QUERY, RUN = "streaming.sql.batchId", "sql.streaming.queryId", "spark.jobGroup.id"
APPLICATION, STARTED, TAGS = "spark.app.id", "spark.app.startTime", "spark.job.tags"
EXECUTION = "spark.sql.execution.root.id"
"""The outermost one: of the micro-batch, for whatever ``foreachBatch`` writes in it."""
SESSION_TAG, CONNECT_TAG = re.compile(r"spark-session-[0-9a-f-]{36}"), "SparkConnect_"
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
"""Where checkpoints lie that no option places: there, in a folder that is named as the query is."""


@dataclass(frozen=True)
class Session:
    """Settings of the session in which a query was started.

    Attributes:
        checkpoints: see `CHECKPOINTS`; None if it was not set.
        may_mix: see `sparkonce.spark.shuffle`.
        storage: how the file system of the checkpoint is reached.
    """

    checkpoints: str | None = None
    may_mix: str = ""
    storage: Settings = field(default_factory=Settings)

    @classmethod
    def seen_by(cls, setting: Callable[[str], str | None], release: str) -> Session:
        """The session of a task.

        Args:
            setting: gives the value of a local property, None if it is not set.
            release: of Spark.
        """
        return cls(setting(CHECKPOINTS), shuffle.may_mix(setting, release))

    def reaching(self, location: str | None, setting: Callable[[str], str | None]) -> Session:
        """The same, with what its driver needs to read a checkpoint at this place."""
        return replace(self, storage=Settings.seen_by(setting, location))

    def place(self, option: str | None, query_name: str | None) -> str | None:
        """Where Spark keeps the checkpoint of a query; None if that can't be known.

        A query without a name gets a folder of a random one, anew at each start.

        Args:
            option: ``checkpointLocation``, which the session's setting stands back behind.
            query_name: as given to ``queryName``.
        """
        if option or not (self.checkpoints and query_name):
            return option
        return f"{self.checkpoints.rstrip('/')}/{query_name}"


class Context(Protocol):
    """What is asked of pyspark's `TaskContext`."""

    def partitionId(self) -> int:  # noqa: N802 (Spark's name)
        """The number of the task."""

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802 (Spark's name)
        """What the thread knew that began the job."""


class NoContext:
    """That of an engine which gives none: Sail, which is not Spark, runs batches only."""

    def partitionId(self) -> int:  # noqa: N802
        """Always 0: it orders attempts and tells people where a row was, and names nothing."""
        return 0

    def getLocalProperty(self, key: str) -> None:  # noqa: N802
        """Nothing is known of the session."""


def application(context: Context) -> str:
    """This start of the Spark application; empty if it can't be known.

    A driver that a cluster manager starts again keeps the id, and counts executions anew.
    """
    name = context.getLocalProperty(APPLICATION)
    return f"{name}/{context.getLocalProperty(STARTED) or ''}" if name else ""


def sessions(context: Context) -> str:
    """The Spark session of a job, and with a nested one that around it; empty if not known.

    That of Spark Connect is no answer: its ``foreachBatch`` keeps it when a query starts again.
    """
    tags = (context.getLocalProperty(TAGS) or "").split(",")
    if any(tag.startswith(CONNECT_TAG) for tag in tags):
        return ""
    return ",".join(sorted(filter(SESSION_TAG.fullmatch, tags)))


def task_context() -> Context:
    """The context of a task."""
    from pyspark import TaskContext

    return TaskContext.get() or NoContext()


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
