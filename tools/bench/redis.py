"""Compares the Redis connector with others: `python -m tools.bench.redis write`.

Run it on a quiet machine. The commands:

    write: writes hashes, also into a cluster and with spark-redis.
    models: writes each model, also with its commands in a redis-py pipeline.
    wide: writes hashes of 50 and 500 columns, without Spark.
    read: reads hashes.
    follow: reads a stream, also with a loop over XRANGE.
    driver: measures the driver's share of a commit.

All figures of a table result from one run, one server and the same rows.
"""

from __future__ import annotations

import socket
import statistics
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import redis
from integration.support.epochs import DirectQuery
from integration.support.servers.cache import jars
from integration.support.servers.redis import RedisProcess, describe_private
from integration.support.servers.redis_cluster import RedisCluster
from pyspark.sql import Row
from pyspark.sql.datasource import InputPartition
from tools.bench import harness
from tools.bench.harness import BY_HAND, COUNTING, OWN, OWN_BATCH, PARTS, Writer

SPARK_REDIS = "com.redislabs:spark-redis_2.12:3.0.0"
JVM, JVM_FORM = "spark-redis, its own Spark", "org.apache.spark.sql.redis"
JVM_SCHEMA = "id string, name string, price double, at string"
"""Its columns; `at` is a string, because spark-redis reads no timestamps."""

AT_ONCE = 1000
"""The number of commands in a pipeline by hand; more were slower."""


def one_server(url: str) -> Any:
    return redis.Redis.from_url(url)


def a_cluster(url: str) -> Any:
    """The cluster client of redis-py, which sends a pipeline to each node."""
    first = url.removeprefix("redis+cluster://").partition(",")[0]
    return redis.RedisCluster.from_url(f"redis://{first}")


def by_hand(
    url: str, put: Callable[[Any, Row], object], connect: Callable[[str], Any] = one_server
) -> Writer:
    """A common solution: foreachBatch with a redis-py pipeline in each partition."""

    def send(rows: Iterator[Row]) -> None:
        with connect(url) as client, client.pipeline(transaction=False) as pipe:
            for row in rows:
                put(pipe, row)
                if len(pipe) >= AT_ONCE:
                    pipe.execute()
            pipe.execute()

    return harness.in_partitions(send)


def put_hash(pipe: Any, row: Row) -> None:
    """Unpack the row as a tuple: attributes by name were slower."""
    id_, name, price, at = row
    fields = {"id": id_, "name": name, "price": price, "at": str(at)}
    pipe.hset(f"user:{id_}", mapping=fields)


def flush(*urls: str) -> None:
    for url in urls:
        with redis.Redis.from_url(url) as client:
            client.flushall()


def write(given: Namespace) -> None:
    """Write hashes into one server and into a cluster, and epochs of one row."""
    rows = given.rows or 500_000
    own = {"key": "user:{id}"}
    with (
        RedisProcess() as server,
        RedisCluster(replicas=0) as cluster,
        harness.session() as (spark, home),
    ):
        writers = {
            "noop in the JVM": harness.stream("noop"),
            COUNTING: harness.stream("nowhere"),
            BY_HAND: by_hand(server.url, put_hash),
            OWN: harness.stream("redis", url=server.url, **own),
            OWN_BATCH: harness.in_batches("redis", url=server.url, **own),
        }
        clustered = {
            f"cluster: {BY_HAND}": by_hand(cluster.url, put_hash, a_cluster),
            f"cluster: {OWN}": harness.stream("redis", url=cluster.url, **own),
        }
        fresh = partial(flush, server.url, *(node.url for node in cluster.nodes))
        many = [range(at * rows, (at + 1) * rows) for at in range(given.rounds + 1)]
        large = harness.make_epochs(spark, home / "large", many)
        ways = {
            name: harness.way(spark, large, writer, fresh)
            for name, writer in (writers | clustered).items()
        }
        took = harness.in_turns(ways, 1)
        harness.show_single_rows(spark, home, writers, fresh)
        fresh()
        address = {"host": "127.0.0.1", "port": str(server.port), "key.column": "id"}
        targets = [{**address, "table": table} for table in ("warm", "user")]
        files = harness.folders(large)
        took[JVM] = harness.jvm(jars(SPARK_REDIS), JVM_FORM, targets=targets, folders=files)
    title = f"{rows:,} rows of 4 columns an epoch, {describe_private()}"
    found = {name: rows / each for name, each in harness.medians(took).items()}
    harness.show_rates(title, found, BY_HAND)


class Model(NamedTuple):
    """A model: its options, its columns, and the command for a row by hand."""

    options: dict[str, str]
    columns: Sequence[str]
    put: Callable[[Any, Row], object]


MODELS = {
    "stream": Model(
        {"model": "stream", "key": "s:{k}"},
        ("id % 16 as k", "id", "name", "price"),
        lambda pipe, row: pipe.xadd(
            f"s:{row[0]}", {"k": row[0], "id": row[1], "name": row[2], "price": row[3]}
        ),
    ),
    "counter": Model(
        {"model": "counter", "key": "c:{k}"},
        ("id % 50000 as k", "1L as n"),
        lambda pipe, row: pipe.incrby(f"c:{row[0]}", row[1]),
    ),
    "hash, increment": Model(
        {"writeMode": "increment", "key": "h:{k}"},
        ("id % 50000 as k", "1L as n", "id as m"),
        lambda pipe, row: (
            pipe.hincrby(f"h:{row[0]}", "n", row[1]),
            pipe.hincrby(f"h:{row[0]}", "m", row[2]),
        ),
    ),
    "set": Model(
        {"model": "set", "key": "m:{k}"},
        ("id % 5000 as k", "concat('member-', id) as v"),
        lambda pipe, row: pipe.sadd(f"m:{row[0]}", row[1]),
    ),
    "zset": Model(
        {"model": "zset", "key": "z:{k}", "scoreColumn": "price"},
        ("id % 50000 as k", "concat('member-', id) as v", "price"),
        lambda pipe, row: pipe.zadd(f"z:{row[0]}", {row[1]: row[2]}),
    ),
    "list": Model(
        {"model": "list", "key": "l:{k}"},
        ("id % 5000 as k", "name"),
        lambda pipe, row: pipe.rpush(f"l:{row[0]}", row[1]),
    ),
}


def models(given: Namespace) -> None:
    rows = given.rows or 200_000
    lines = []
    with RedisProcess() as server, harness.session() as (spark, home):
        many = [range(at * rows, (at + 1) * rows) for at in range(given.rounds + 1)]
        source = harness.make_epochs(spark, home / "rows", many)
        for name, model in MODELS.items():
            found = []
            for writer in (
                by_hand(server.url, model.put),
                harness.stream("redis", url=server.url, **model.options),
                harness.in_batches("redis", url=server.url, **model.options),
            ):
                flush(server.url)
                shaped = lambda batch: writer(batch.selectExpr(*model.columns))  # noqa: B023, E731
                found.append(rows / statistics.median(harness.epochs(spark, source, shaped)))
            lines.append((name, *found, f"{found[1] / found[0]:.2f}"))
    title = f"{rows:,} rows an epoch, rows/s, {describe_private()}"
    harness.show(title, ("model", BY_HAND, OWN, OWN_BATCH, f"against {BY_HAND}"), lines)


def wide(given: Namespace) -> None:
    """Compares with a plain client that sends prepared commands."""
    lines = (_wide(columns, rows, given.rounds) for columns, rows in ((50, 40_000), (500, 4_000)))
    head = ("hashes", "plain client", "commit", "staging", "commit / plain")
    harness.show(f"rows/s without Spark, {describe_private()}", head, lines)


def _wide(columns: int, rows: int, rounds: int) -> tuple[object, ...]:
    names = ["id", *(f"c{at}" for at in range(1, columns))]
    values = [[(row * 7 + at) * 0.37 for row in range(rows)] for at in range(1, columns)]
    table = pa.table([pa.array(one) for one in (range(rows), *values)], names)
    ready = _commands(table, 50_000 // columns)
    found = []
    with RedisProcess() as server:
        for _ in range(rounds):
            flush(server.url)
            plain = harness.timed(lambda: _send(server.port, ready))
            flush(server.url)
            query = DirectQuery(table.schema, url=server.url, key="u:{id}")
            found.append((plain, *harness.stage_and_commit(query, 0, table.to_batches())))
    plain, stage, commit = (rows / statistics.median(each) for each in zip(*found, strict=True))
    return f"{columns} columns", plain, commit, stage, f"{commit / plain:.2f}"


def _commands(table: pa.Table, at_once: int) -> list[bytes]:
    """The bytes of an HSET for each row, in blocks of about a megabyte."""
    made = []
    for row in table.to_pylist():
        parts = ["HSET", f"u:{row['id']}", *(str(one) for field in row.items() for one in field)]
        args = "".join(f"${len(part)}\r\n{part}\r\n" for part in parts)
        made.append(f"*{len(parts)}\r\n{args}".encode())
    return [b"".join(made[at : at + at_once]) for at in range(0, len(made), at_once)]


def _send(port: int, ready: list[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for some in ready:
            connection.sendall(some)
            left = some.count(b"$4\r\nHSET\r\n")
            while left > 0:
                left -= connection.recv(1 << 20).count(b"\r\n")


class HandReader(harness.HandReader):
    """A common solution: each partition scans all keys, and fetches its share of them."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        with redis.Redis.from_url(self.options["url"], decode_responses=True) as client:
            keys: list[str] = []
            for key in client.scan_iter("user:*", count=AT_ONCE):
                if int(key[5:]) % PARTS == partition.value:
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


class Hand(harness.Hand):
    reads = HandReader


def read(given: Namespace) -> None:
    rows = given.rows or 300_000
    own = {"key": "user:{id}"}
    with RedisProcess() as server:
        with harness.session(hand=Hand) as (spark, _):
            made = harness.rows_of(spark.range(rows)).write.format("redis")
            made.options(url=server.url, **own).mode("append").save()
            reader = spark.read.format("redis").options(url=server.url, **own)
            reader = reader.schema(harness.SCHEMA)
            readers = {
                BY_HAND: spark.read.format("by_hand").option("url", server.url).load(),
                f"{OWN}, {PARTS} splits": reader.option("numPartitions", PARTS).load(),
                OWN: reader.option("numPartitions", 2).load(),
            }
            took = harness.reads(readers, rows, given.rounds)
        options = {"host": "127.0.0.1", "port": str(server.port), "keys.pattern": "user:*"}
        options |= {"key.column": "id", "partitions.number": str(PARTS)}
        other = {"options": options, "schema": JVM_SCHEMA, "rounds": given.rounds + 1}
        took[JVM] = statistics.median(harness.jvm(jars(SPARK_REDIS), JVM_FORM, **other))
    found = {name: rows / each for name, each in took.items()}
    harness.show_rates(f"Hashes, {describe_private()}", found, BY_HAND, JVM)


def follow(given: Namespace) -> None:
    rows, loop = given.rows or 1_000_000, "redis-py, a loop over XRANGE"
    with RedisProcess() as server, harness.session() as (spark, _):
        _fill_stream(server.url, rows)
        own = {"url": server.url, "streams": "s", "startingPosition": "earliest"}
        ways = {
            loop: lambda: _by_xrange(server.url),
            OWN: harness.follow(spark, "redis", **own),
            f"{OWN}, 200,000 rows an epoch": harness.follow(
                spark, "redis", **own, maxRowsPerBatch="200000"
            ),
        }
        harness.show_rates(f"Stream, {describe_private()}", harness.rates(ways, given.rounds), loop)


def _fill_stream(url: str, rows: int) -> None:
    with redis.from_url(url) as client:
        for low in range(0, rows, AT_ONCE):
            pipe = client.pipeline(transaction=False)
            for at in range(low, low + AT_ONCE):
                when, name = f"2026-01-01 00:00:{at % 60:02}", f"customer {at % 9973}"
                pipe.xadd("s", {"id": at, "name": name, "price": at * 0.37, "at": when})
            pipe.execute()


def _by_xrange(url: str) -> int:
    """A common solution: each entry as a dictionary."""
    found, after = 0, "-"
    with redis.from_url(url, decode_responses=True) as client:
        while entries := client.xrange("s", after, count=AT_ONCE):
            found += len(entries)
            after = f"({entries[-1][0]}"
    return found


def driver(given: Namespace) -> None:
    with RedisProcess() as server:
        query = DirectQuery(harness.ARROW, url=server.url, key="row:{id}")
        harness.show_driver("Redis", query, given)


if __name__ == "__main__":
    commands = {one.__name__: one for one in (write, models, wide, read, follow, driver)}
    harness.main(__doc__, commands)
