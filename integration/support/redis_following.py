"""What tests of `spark.readStream.format("redis")` share."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyspark_redis.connector import RedisConnector
from pyspark_redis.follow.feed import RedisFeed
from sparkonce import options
from sparkonce.reading import Position, Scan

ROWS = pa.schema([("_id", pa.string()), ("n", pa.int64())])


def feed(url: str, *streams: str, schema: pa.Schema = ROWS, **raw: str) -> RedisFeed:
    given = {"url": url, "streams": ",".join(streams), "startingPosition": "earliest", **raw}
    parsed = options.parse(RedisConnector.follows, given)
    return RedisConnector().feed(parsed, Scan(schema))


def rows(made: RedisFeed, after: Position, end: Position) -> list[dict[str, Any]]:
    return [
        row
        for split in made.between(after, end)
        for batch in made.read(split)
        for row in batch.to_pylist()
    ]


def numbers(made: RedisFeed, after: Position, end: Position) -> list[int]:
    return [row["n"] for row in rows(made, after, end)]
