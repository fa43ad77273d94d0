"""`python -m tools.shared_classes FILE`: classes of Spark, as Java maps them into memory.

A driver that starts with such an archive is there in half the time, and most tests start some. See
https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html#application-class-data-sharing
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from integration.support.servers.spark import session
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from typing_extensions import override

from sparkonce.spark.features import DataSource, StreamArrowWriter, WriterCommitMessage
from sparkonce.tck.spark.setup import SHORT_LIVED

COLUMNS = "n long, s string"


class Nowhere(DataSource):
    """A sink as those of sparkonce are for Spark."""

    @classmethod
    def name(cls) -> str:
        return "nowhere"

    @override
    def streamWriter(self, schema: StructType, overwrite: bool) -> ToNowhere:
        return ToNowhere()


class ToNowhere(StreamArrowWriter):
    """Takes rows."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def main(archive: Path) -> None:
    """Run what most tests run, in a Java that writes down which classes that takes."""
    new = archive.with_suffix(".new")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        java = f"{SHORT_LIVED} -Xlog:disable -Xlog:all=error:stderr -XX:ArchiveClassesAtExit={new}"
        with session(Path(scratch), java=java) as spark:
            _exercise(spark, Path(scratch))
    new.rename(archive)


def _exercise(spark: SparkSession, home: Path) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, "a")], COLUMNS)
    rows.write.parquet(str(home / "rows"))
    rows.createOrReplaceTempView("rows")
    spark.sql("SELECT s, max(r.n) FROM rows JOIN rows r USING (s) GROUP BY s ORDER BY s").collect()
    spark.dataSource.register(Nowhere)
    source = spark.readStream.schema(COLUMNS).parquet(str(home / "rows"))
    sink = source.repartition(2).writeStream.format("nowhere")
    sink = sink.option("checkpointLocation", str(home / "checkpoint")).trigger(availableNow=True)
    sink.start().awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
