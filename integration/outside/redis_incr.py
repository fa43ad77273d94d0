"""foreachBatch with redis-py, as it is written every day: each row adds to a counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import redis

from sparkonce.tck.streaming import StreamingSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.streaming import DataStreamWriter


def attach(writer: DataStreamWriter, options: Mapping[str, str]) -> DataStreamWriter:
    """Attach the sink to a query."""
    url, prefix = options["url"], options["prefix"]

    def count(rows: Iterable[Row]) -> None:
        with redis.Redis.from_url(url) as client, client.pipeline(transaction=False) as pipe:
            for row in rows:
                pipe.incrby(f"{prefix}:{row.id}", row.n)
            pipe.execute()

    def write(batch: DataFrame, epoch: int) -> None:  # noqa: ARG001
        batch.foreachPartition(count)

    return writer.foreachBatch(write)


def sink(url: str, prefix: str, env: Mapping[str, str]) -> StreamingSink:
    """Describe it to the kit."""
    return StreamingSink(
        read=lambda: counters(url, prefix),
        name="foreachBatch with redis-py INCRBY",
        attach=f"{__name__}:attach",
        options={"url": url, "prefix": prefix},
        env=env,
    )


def counters(url: str, prefix: str) -> Counter[str]:
    """Read how often each id took effect."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        keys = list(client.scan_iter(f"{prefix}:*", count=10_000))
        values = client.mget(keys) if keys else []
        counted = zip(keys, values, strict=True)
        return Counter({key.split(":", 1)[1]: int(value) for key, value in counted})
