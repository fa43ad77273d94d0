"""The driver: a separate process that runs queries and batches by commands from a pipe."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from sparkonce.tck.spark.batches import Job, imported, write
from sparkonce.tck.spark.draws import DRAW, with_draw
from sparkonce.tck.spark.faults import SIDE, watch
from sparkonce.tck.spark.follow import follow
from sparkonce.tck.spark.query import (
    DescribedQuery,
    FollowedQuery,
    Known,
    Progress,
    Shape,
    Status,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Attach = Callable[["DataStreamWriter", Mapping[str, str]], "DataStreamWriter"]
COLUMNS = "id string, n bigint"


class DriverProgram:
    """A Spark session, and the query or batch that it runs."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.query: StreamingQuery | Job | None = None
        self.error = ""

    def start(self, query: dict[str, Any]) -> Status:
        """Start a query or a batch."""
        described = DescribedQuery(**{**query, "shape": Shape(**query["shape"])})
        return self._begin(lambda: _started(self.spark, described))

    def follow(self, query: dict[str, Any]) -> Status:
        """Start a query over a source."""
        return self._begin(lambda: follow(self.spark, FollowedQuery(**query)))

    def _begin(self, start: Callable[[], StreamingQuery | Job]) -> Status:
        self.stop()
        self.query, self.error = None, ""
        try:
            self.query = start()
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
        return self.status()

    def wait(self, seconds: float) -> Status:
        """Wait for the end of the query, for this time at most."""
        if self.query is not None:
            with suppress(StreamingQueryException):  # the status reports it
                self.query.awaitTermination(seconds)  # type: ignore[arg-type]
        return self.status()

    def stop(self) -> Status:
        """Stop the query, in any state."""
        if self.query is not None and not isinstance(self.query, Job):
            with suppress(StreamingQueryException):
                self.query.stop()
        return self.status()

    def progress(self) -> Progress:
        """Spark's progress of the last epochs of the query."""
        if self.query is None or isinstance(self.query, Job):
            return Progress([])
        return Progress([json.loads(epoch.json) for epoch in self.query.recentProgress])

    def knows(self, setting: str) -> Known:
        """Whether this Spark knows a setting; it also accepts unknown ones."""
        return Known(self.spark.conf.isModifiable(setting))

    def status(self) -> Status:
        """The status of the query."""
        if self.query is None:
            return Status(False, self.error)
        failed = self.query.exception()
        return Status(self.query.isActive, str(failed) if failed else "")


def _started(spark: SparkSession, query: DescribedQuery) -> StreamingQuery | Job:
    return Job(lambda: _write(spark, query)) if query.mode else _writer(spark, query).start()


def _write(spark: SparkSession, query: DescribedQuery) -> None:
    spark.createDataFrame([], "id int")  # or Spark 4.3 finds no Python format in this thread
    rows = _shaped(spark.read.schema(COLUMNS).json(query.input), query.shape)
    write(query.format, query.attach)(rows.selectExpr(*query.columns), query.mode, query.options)


def _writer(spark: SparkSession, query: DescribedQuery) -> DataStreamWriter:
    files = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(query.input)
    rows = _shaped(files, query.shape).selectExpr(*query.columns)
    # Spark passes the name to the sink, as one more option.
    writer = rows.writeStream.option("checkpointLocation", query.checkpoint).queryName("sparkonce")
    return _attach(query)(writer.trigger(availableNow=True), query.options)


def _attach(query: DescribedQuery) -> Attach:
    if query.attach:
        attach: Attach = imported(query.attach)
        return attach
    return lambda writer, options: writer.format(query.format).options(**options)


def _shaped(rows: DataFrame, shape: Shape) -> DataFrame:
    if shape.random or shape.choose:
        rows = with_draw(rows)
    if shape.choose:
        rows = rows.withColumn("id", F.concat("id", F.when(F.col(DRAW) < 0, ".a").otherwise(".b")))
    rows = rows.repartition(shape.partitions, DRAW if shape.random else "id").select("id", "n")
    if shape.watched:
        rows = rows.mapInArrow(watch(Path(os.environ[SIDE]), shape.pause), COLUMNS)
    return rows


def _session(settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("sparkonce.tck")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def main(settings: str, replies: str) -> None:
    """Reply to each line of standard input with one line."""
    with os.fdopen(int(replies), "w") as out:
        driver = DriverProgram(_session(json.loads(Path(settings).read_text())))
        print(json.dumps({"ready": True}), file=out, flush=True)
        for line in sys.stdin:
            call, arguments = json.loads(line)
            answer = asdict(getattr(driver, call)(**arguments))
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
