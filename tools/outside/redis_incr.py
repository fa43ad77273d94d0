"""foreachBatch with redis-py, as users commonly write it: each row adds to a counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import redis

from sparkonce.tck.batch import BatchSink
from sparkonce.tck.streaming import StreamingSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming import DataStreamWriter


def write(batch: DataFrame, mode: str, options: Mapping[str, str]) -> None:  # noqa: ARG001
    """Write a batch."""
    url, prefix = options["url"], options["prefix"]

    def count(rows: Iterable[Row]) -> None:
        with redis.Redis.from_url(url) as client, client.pipeline(transaction=False) as pipe:
            for row in rows:
                pipe.incrby(f"{prefix}:{row.id}", row.n)
            pipe.execute()

    batch.foreachPartition(count)


def attach(writer: DataStreamWriter, options: Mapping[str, str]) -> DataStreamWriter:
    """Attach the sink to a query."""
    return writer.foreachBatch(lambda batch, _: write(batch, "append", options))


def sink(url: str, prefix: str, env: Mapping[str, str]) -> StreamingSink:
    """Describe the sink to the kit."""
    return StreamingSink(
        name="foreachBatch with redis-py INCRBY",
        attach=f"{__name__}:attach",
        **_described(url, prefix, env),
    )


def batches(url: str, prefix: str, env: Mapping[str, str]) -> BatchSink:
    """Describe the same writer as a sink of batches."""
    return BatchSink(
        name="foreachPartition with redis-py INCRBY",
        attach=f"{__name__}:write",
        limits={"B08": "it knows no batch by name", "B09": "it overwrites nothing"},
        **_described(url, prefix, env),
    )


def _described(url: str, prefix: str, env: Mapping[str, str]) -> dict[str, Any]:
    options = {"url": url, "prefix": prefix}
    return {"read": lambda: counters(url, prefix), "options": options, "env": env}


def counters(url: str, prefix: str) -> Counter[str]:
    """The number of effects of each id."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        keys = list(client.scan_iter(f"{prefix}:*", count=10_000))
        values = client.mget(keys) if keys else []
        counted = zip(keys, values, strict=True)
        return Counter({key.split(":", 1)[1]: int(value) for key, value in counted})
