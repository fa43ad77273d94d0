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


def test_a_batch_write_without_a_mode_is_refused_by_spark_which_names_modes(
    spark: SparkSession,
) -> None:
    """Its default, ErrorIfExists, never reaches a Python source (docs/troubleshooting.md)."""
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(3).write.format("redis").save()
