"""The driver's program: runs all queries of a job until one fails or a signal ends it.

`python -m tools.chaos.query FILE` starts it; the file holds a `Job` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sparkonce.tck.spark.draws import DRAW, with_draw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = 3

Write = tuple[str, Sequence[str], Mapping[str, str]]
"""A write of a batch: format, columns, options."""


@dataclass(frozen=True)
class Query:
    """A query from one store to another.

    Attributes:
        formats: the formats of its source and its sink.
        reads: the source's options.
        writes: the sink's options, including the checkpoint location.
        columns: SQL expressions of the written columns; they may use `draw` if `drawn` is set.
        drawn: SQL expressions over the rows of the source. Each replay then computes other rows, in
            other tasks. Empty if the query writes rows unchanged.
        schema: the schema of the source; empty if the source knows it.
        batches: the writes of `foreachBatch`, which replace the sink.
    """

    formats: tuple[str, str]
    reads: Mapping[str, str]
    writes: Mapping[str, str]
    columns: Sequence[str]
    drawn: Sequence[str] = ()
    schema: str = ""
    batches: Sequence[Write] = ()


@dataclass(frozen=True)
class Job:
    """The queries of a driver by name, and the settings of Spark."""

    queries: Mapping[str, Query]
    settings: Mapping[str, str]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def main(path: str) -> None:
    from pyspark.sql import SparkSession

    job = json.loads(Path(path).read_text())
    builder = SparkSession.builder.appName("chaos")
    for key, value in job["settings"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    for name, query in job["queries"].items():
        start(spark, name, Query(**query))
    spark.streams.awaitAnyTermination()


def start(spark: SparkSession, name: str, query: Query) -> None:
    source, sink = query.formats
    reader = spark.readStream.format(source).options(**query.reads)
    rows = (reader.schema(query.schema) if query.schema else reader).load()
    if query.drawn:
        rows = with_draw(rows.selectExpr(*query.drawn)).repartition(TASKS, DRAW)
    writer = rows.selectExpr(*query.columns).writeStream.queryName(name).options(**query.writes)
    if query.batches:
        writer.foreachBatch(partial(_write_all, query.batches)).start()
    else:
        writer.format(sink).start()


def _write_all(batches: Sequence[Write], batch: DataFrame, _: int) -> None:
    for sink, columns, options in batches:
        batch.select(*columns).write.format(sink).mode("append").options(**options).save()


if __name__ == "__main__":
    main(sys.argv[1])
