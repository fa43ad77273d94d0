"""How fast hashes are read into `noop`, beside a reader by hand and spark-redis.

Run it on a quiet machine::

    python -m tools.bench.redis_reads [--rows 500000] [--rounds 3]

One run, one server, hashes of four fields. The readers take turns; medians of the rounds are shown.
spark-redis reads with a Spark of its own, after the others, the same hashes in as many partitions.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import redis
from integration.support.servers import spark as local_spark
from integration.support.servers.cache import jars
from integration.support.servers.redis import RedisProcess, describe_private
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from tools.bench import old_spark, reads
from tools.bench.redis_speed import SPARK_REDIS

JVM = "spark-redis, its own Spark"
AT_ONCE = 1000


class HandReader(reads.HandReader):
    """What users write: each partition scans all keys, and fetches its share of them."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        with redis.Redis.from_url(self.options["url"], decode_responses=True) as client:
            keys: list[str] = []
            for key in client.scan_iter("user:*", count=AT_ONCE):
                if int(key[5:]) % reads.PARTS == partition.value:
                    keys.append(key)
                if len(keys) == AT_ONCE:
                    yield from self._rows(client, keys)
                    keys = []
            yield from self._rows(client, keys)

    def _rows(self, client: redis.Redis, keys: list[str]) -> Iterator[tuple[Any, ...]]:
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.hgetall(key)
        for found in pipe.execute():
            at = datetime.fromisoformat(found["at"].replace("Z", "+00:00"))
            yield int(found["id"]), found["name"], float(found["price"]), at


class Hand(reads.Hand):
    reads = HandReader


def own(spark: SparkSession, url: str, parts: int) -> DataFrame:
    reader = spark.read.format("redis").options(url=url, key="user:{id}", numPartitions=parts)
    return reader.schema(reads.SCHEMA).load()


def main() -> None:
    given = reads.arguments(__doc__, 500_000).parse_args()
    home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
    with RedisProcess() as server:
        with local_spark.session(home) as spark:
            spark.dataSource.register(Hand)
            reads.made(spark, given.rows).write.format("redis").options(
                url=server.url, key="user:{id}"
            ).mode("append").save()
            readers = {
                reads.BY_HAND: partial(reads.by_hand, url=server.url),
                reads.OWN: partial(own, url=server.url, parts=2),
                f"{reads.OWN}, {reads.PARTS} splits": partial(
                    own, url=server.url, parts=reads.PARTS
                ),
            }
            took = reads.in_turns(spark, readers, given.rows, given.rounds)
        options = {"host": "127.0.0.1", "port": str(server.port), "keys.pattern": "user:*"}
        options |= {"key.column": "id", "partitions.number": str(reads.PARTS)}
        form, rounds = "org.apache.spark.sql.redis", given.rounds + 1
        seconds = old_spark.read(jars(SPARK_REDIS), form, options, JVM_SCHEMA, rounds)
        took[JVM] = statistics.median(seconds[1:])
        reads.show(took, given.rows, JVM, describe_private())


JVM_SCHEMA = "id string, name string, price double, at string"
"""It reads no timestamps."""


if __name__ == "__main__":
    main()
