"""What these formats do not do is refused through Spark with what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from integration.servers.redis import RedisProcess, connect
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession


def test_a_stream_of_reads_names_what_to_use(
    spark: SparkSession, private_redis: Callable[..., RedisProcess], tmp_path: Path
) -> None:
    server = private_redis()
    with connect(server.url) as client:
        client.hset("user:1", "n", 1)
    rows = spark.readStream.format("redis").options(url=server.url, key="user:{id}").load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    with pytest.raises(PySparkException) as refused:
        query.awaitTermination()
    assert 'format("redis") is no source of streams' in str(refused.value)
    assert "What to do: use spark.read" in str(refused.value)


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_that_reach_no_python_source_are_refused_by_spark_by_name(
    spark: SparkSession, mode: str
) -> None:
    """The first one is its default (docs/batch.md)."""
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(3).write.mode(mode).format("redis").save()
