"""Exactly-once sinks for PySpark Structured Streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__version__ = "0.3.0"


def register(spark: SparkSession) -> list[str]:
    """See `sparkonce.spark.source.register`."""
    from sparkonce.spark import source

    return source.register(spark)


def changes(stream: DataFrame, table: str, schema: StructType | str) -> DataFrame:
    """See `sparkonce.spark.table_changes.changes`."""
    from sparkonce.spark import table_changes

    return table_changes.changes(stream, table, schema)
