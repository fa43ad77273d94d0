"""What these formats do not do is refused through Spark with what to use instead."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_that_reach_no_python_source_are_refused_by_spark_by_name(
    spark: SparkSession, mode: str
) -> None:
    """The first one is its default (docs/batch.md)."""
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(3).write.mode(mode).format("redis").save()
