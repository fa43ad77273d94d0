"""Exactly-once sinks for PySpark Structured Streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__version__ = "0.3.0"


def register(spark: SparkSession) -> list[str]:
    """See `sparkonce.spark.source.register`."""
    from sparkonce.spark import source

    return source.register(spark)
