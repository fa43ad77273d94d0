"""The driver's program: both queries, until one of them fails or somebody ends it.

It is started as `python -m tools.chaos.query FILE`; the file holds a `Job` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tools.chaos.target import ROWS, SIDES
from tools.chaos.topic import NAME

from sparkonce.tck.spark.draws import DRAW, with_draw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EVENT = ("partition as part", "offset as place", "split(cast(value as string), ',') as said")
TASKS = 3


@dataclass(frozen=True)
class Sink:
    """A query: its sink, its checkpoint, and the most events that one of its epochs takes."""

    options: Mapping[str, str]
    checkpoint: str
    most: int


@dataclass(frozen=True)
class Job:
    """What a driver runs.

    Attributes:
        kafka: address of the broker.
        format: of the sinks.
        columns: of query `rows`, see `Target.columns`.
        sinks: by the names of the queries.
        settings: of Spark.
    """

    program: ClassVar[str] = "tools.chaos.query"

    kafka: str
    format: str
    columns: Sequence[str]
    sinks: Mapping[str, Sink]
    settings: Mapping[str, str]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def read(path: Path) -> Job:
    job = json.loads(path.read_text())
    return Job(**{**job, "sinks": {name: Sink(**sink) for name, sink in job["sinks"].items()}})


def run(spark: SparkSession, job: Job) -> None:
    for name, sink in job.sinks.items():
        shaped = _rows if name == ROWS else _counters
        (
            shaped(_events(spark, job.kafka, sink.most), job)
            .writeStream.format(job.format)
            .queryName(name)
            .options(**sink.options)
            .option("checkpointLocation", sink.checkpoint)
            .start()
        )
    spark.streams.awaitAnyTermination()


def _events(spark: SparkSession, kafka: str, most: int) -> DataFrame:
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka)
        .option("subscribe", NAME)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", most)
    )
    return source.load().selectExpr(*EVENT)


def _rows(events: DataFrame, job: Job) -> DataFrame:
    """Each event once, in a task that is drawn anew by every replay."""
    rows = events.selectExpr("part", "place", "cast(said[1] as bigint) as amount")
    return with_draw(rows).repartition(TASKS, DRAW).selectExpr(*job.columns)


def _counters(events: DataFrame, _: Job) -> DataFrame:
    """Each event twice, once for each side, in tasks that are drawn anew by every replay."""
    rows = events.selectExpr(
        f"explode(array{SIDES}) as side",
        "cast(said[0] as int) as bucket",
        "1L as n",
        "cast(said[1] as bigint) as amount",
    )
    return with_draw(rows).repartition(TASKS, DRAW).drop(DRAW)


def main(path: str) -> None:
    job = read(Path(path))
    run(session(job.settings), job)


def session(settings: Mapping[str, str]) -> SparkSession:
    """A driver's session with these settings."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("chaos")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    return spark


if __name__ == "__main__":
    main(sys.argv[1])
