"""How fast each model of Redis is, beside foreachBatch with a redis-py pipeline of its commands.

Also hashes of 50 and of 500 columns, beside what the server takes from a plain client that sends
commands which were made before. Run it on a quiet machine::

    python -m tools.bench.redis_models [--rows 200000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import redis
from integration.support.epochs import DirectQuery
from integration.support.servers import spark as local_spark
from integration.support.servers.redis import RedisProcess, describe_private
from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console
from rich.table import Table
from tools.bench.redis_speed import flush
from tools.bench.streams import SCHEMA, in_batches, make_input, run, seconds

PIPE = 1000
"""Commands in a pipeline by hand: more were slower."""

WIDE = {50: 40_000, 500: 4_000}
"""Columns of a hash, and rows."""


class Way(NamedTuple):
    """One model: its options, the columns it takes, and what is sent by hand for a row."""

    options: dict[str, str]
    columns: Sequence[str]
    by_hand: Callable[[Any, Row], object]


WAYS = {
    "stream": Way(
        {"model": "stream", "key": "s:{k}"},
        ("id % 16 as k", "id", "name", "price"),
        lambda pipe, row: pipe.xadd(
            f"s:{row[0]}", {"k": row[0], "id": row[1], "name": row[2], "price": row[3]}
        ),
    ),
    "counter": Way(
        {"model": "counter", "key": "c:{k}"},
        ("id % 50000 as k", "1L as n"),
        lambda pipe, row: pipe.incrby(f"c:{row[0]}", row[1]),
    ),
    "hash, increment": Way(
        {"writeMode": "increment", "key": "h:{k}"},
        ("id % 50000 as k", "1L as n", "id as m"),
        lambda pipe, row: (
            pipe.hincrby(f"h:{row[0]}", "n", row[1]),
            pipe.hincrby(f"h:{row[0]}", "m", row[2]),
        ),
    ),
    "set": Way(
        {"model": "set", "key": "m:{k}"},
        ("id % 5000 as k", "concat('member-', id) as v"),
        lambda pipe, row: pipe.sadd(f"m:{row[0]}", row[1]),
    ),
    "zset": Way(
        {"model": "zset", "key": "z:{k}", "scoreColumn": "price"},
        ("id % 50000 as k", "concat('member-', id) as v", "price"),
        lambda pipe, row: pipe.zadd(f"z:{row[0]}", {row[1]: row[2]}),
    ),
    "list": Way(
        {"model": "list", "key": "l:{k}"},
        ("id % 5000 as k", "name"),
        lambda pipe, row: pipe.rpush(f"l:{row[0]}", row[1]),
    ),
}


def by_hand(url: str, way: Way) -> Callable[[DataFrame, int], None]:
    def send(rows: Iterator[Row]) -> None:
        with redis.Redis.from_url(url) as client, client.pipeline(transaction=False) as pipe:
            for row in rows:
                way.by_hand(pipe, row)
                if len(pipe) >= PIPE:
                    pipe.execute()
            pipe.execute()

    return lambda batch, _: batch.foreachPartition(send)


def rates(spark: SparkSession, source: Path, url: str, rows: int) -> Iterator[tuple[str, ...]]:
    for name, way in WAYS.items():
        found = []
        for writer in (
            lambda batch, way=way: batch.writeStream.foreachBatch(by_hand(url, way)),
            lambda batch, way=way: (
                batch.writeStream.format("redis").option("url", url).options(**way.options)
            ),
            in_batches("redis", url=url, **way.options),
        ):
            flush(url)
            shaped = lambda batch, writer=writer, way=way: writer(batch.selectExpr(*way.columns))  # noqa: E731
            query = run(spark, source, shaped, files=4)
            found.append(rows / statistics.median(seconds(query, "addBatch")))
        hand, stream, batch = found
        yield (name, f"{hand:,.0f}", f"{stream:,.0f}", f"{batch:,.0f}", f"{stream / hand:.2f}")


# -- wide hashes, without Spark


def wide(columns: int, rows: int, rounds: int) -> tuple[str, ...]:
    """Rows a second: of a plain client, of the commit alone, of staging alone."""
    names = ["id", *(f"c{at}" for at in range(1, columns))]
    values = [
        [row if at == 0 else (row * 7 + at) * 0.37 if at % 2 else row * at for row in range(rows)]
        for at in range(columns)
    ]
    kinds = [pa.float64() if at % 2 and at else pa.int64() for at in range(columns)]
    table = pa.table(values, schema=pa.schema(list(zip(names, kinds, strict=True))))
    staged, committed, plain = [], [], []
    with RedisProcess() as server, redis.Redis.from_url(server.url) as client:
        ready = _commands(names, values, rows)
        for _ in range(rounds):
            client.flushall()
            plain.append(rows / _timed(lambda: _send(server.port, ready)))
            client.flushall()
            query = DirectQuery(table.schema, url=server.url, key="u:{id}")
            began = time.perf_counter()
            receipts = query.stage_batches(0, table.to_batches())
            staged.append(rows / (time.perf_counter() - began))
            committed.append(rows / _timed(lambda: query.commit(0, receipts)))  # noqa: B023
    most, commit, stage = map(statistics.median, (plain, committed, staged))
    told = (f"{rate:,.0f}" for rate in (most, commit, stage))
    return (f"{columns} columns", *told, f"{commit / most:.2f}")


def _commands(names: list[str], values: list[list[Any]], rows: int) -> list[bytes]:
    """HSET of each row, as it is sent, as many together as make a megabyte or so."""
    made = []
    for row in range(rows):
        parts = ["HSET", f"u:{row}"]
        for name, column in zip(names, values, strict=True):
            parts += [name, str(column[row])]
        args = "".join(f"${len(part)}\r\n{part}\r\n" for part in parts)
        made.append(f"*{len(parts)}\r\n{args}".encode())
    step = max(1, 50_000 // len(names))
    return [b"".join(made[at : at + step]) for at in range(0, rows, step)]


def _send(port: int, ready: list[bytes]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for some in ready:
            connection.sendall(some)
            left = some.count(b"$4\r\nHSET\r\n")
            while left > 0:
                left -= connection.recv(1 << 20).count(b"\r\n")


def _timed(step: Callable[[], object]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def show(title: str, head: Sequence[str], lines: Iterator[tuple[str, ...]]) -> None:
    table = Table(title=title)
    for column in head:
        table.add_column(column, justify="left" if column == head[0] else "right", no_wrap=True)
    for line in lines:
        table.add_row(*line)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    server = describe_private()
    head = ("hashes", "plain client", "commit", "staging", "commit / plain")
    lines = (wide(columns, rows, args.rounds) for columns, rows in WIDE.items())
    show(f"rows/s without Spark, {server}", head, lines)
    with tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as scratch:
        home = Path(scratch)
        with RedisProcess() as started, local_spark.session(home) as spark:
            source = make_input(spark, home / "rows", args.rows, args.rounds + 1)
            assert SCHEMA.startswith("id bigint, name string, price double")
            head = ("model", "by hand", "sparkonce", "df.write", "x by hand")
            title = f"{args.rows:,} rows an epoch, rows/s, {server}"
            show(title, head, rates(spark, source, started.url, args.rows))


if __name__ == "__main__":
    main()
