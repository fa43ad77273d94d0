"""What these formats do not do is refused through Spark with what to use instead."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

Try = Callable[[SparkSession], object]
READS: dict[str, Try] = {
    "a batch": lambda spark: spark.read.format("redis").load(),
    "a batch of a schema": lambda spark: spark.read.schema("id bigint").format("redis").load(),
    "a stream": lambda spark: spark.readStream.format("redis").load(),
}


@pytest.mark.parametrize("what", READS)
def test_a_read_names_what_to_use(spark: SparkSession, what: str) -> None:
    with pytest.raises(PySparkException) as refused:
        list(READS[what](spark).collect())
    assert 'format("redis") writes only' in str(refused.value)
    assert "What to do: use df.writeStream or df.write; to read, " in str(refused.value)


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_that_reach_no_python_source_are_refused_by_spark_by_name(
    spark: SparkSession, mode: str
) -> None:
    """The first one is its default (docs/batch.md)."""
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(3).write.mode(mode).format("redis").save()
