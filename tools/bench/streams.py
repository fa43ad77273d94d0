"""Streams for the benches: rows in files, and what any Python sink costs at least."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "id bigint, name string, price double, at timestamp"
Writer = Callable[[DataFrame], DataStreamWriter]


class CountingWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


class Counting(DataSource):
    """Reads the rows in Python and stores nothing: what any Python sink costs at least."""

    @classmethod
    def name(cls) -> str:
        return "counting"

    def streamWriter(self, schema: Any, overwrite: bool) -> CountingWriter:  # noqa: ARG002, N802
        return CountingWriter()


def in_batches(named: str, **options: str) -> Writer:
    """Each epoch as a batch of foreachBatch."""

    def write(batch: DataFrame, _: int) -> None:
        batch.write.format(named).mode("append").options(**options).save()

    return lambda rows: rows.writeStream.foreachBatch(write)


def make_input(spark: SparkSession, home: Path, rows: int, files: int) -> Path:
    for at in range(files):
        made = spark.range(at * rows, (at + 1) * rows, 1, 4 if rows > 1000 else 1).selectExpr(
            "id",
            "concat('name-', id % 1000) as name",
            "rand() * 1000 as price",
            "timestamp_micros(1600000000000000 + id * 1000003) as at",
        )
        made.write.parquet(str(home / f"{at:03d}"))
    return home


def run(spark: SparkSession, source: Path, writer: Writer, files: int) -> StreamingQuery:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
    checkpoint = tempfile.mkdtemp(prefix="sparkonce-bench-")
    started = (
        writer(rows.parquet(f"{source}/*"))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    started.awaitTermination()
    shutil.rmtree(checkpoint)
    return started


def seconds(query: StreamingQuery, phase: str) -> list[float]:
    """How long that phase took, epoch by epoch, without the first (workers start in it)."""
    return [progress.durationMs[phase] / 1000 for progress in query.recentProgress[1:]]
