"""One epoch of millions of rows through Spark: how long it takes, and how much memory.

    python -m tools.bench.large mysql [--rows 10000000]
    python -m tools.bench.large mariadb
    python -m tools.bench.large mysql-bytes [--rows 50000]    (of 100 kB; 40 GB of disk)
    python -m tools.bench.large elasticsearch [--rows 5000000]

A small epoch comes first. What is shown is the most memory that any Python process of Spark has
taken by the end of each of them: the tasks' workers and the one that commits.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from integration.support.servers import elasticsearch, mysql
from integration.support.servers import spark as local_spark
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tools.bench import elasticsearch_speed

CONFIG = ("--local-infile=1", "--innodb-buffer-pool-size=1G")
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at DATETIME(6))"
SETTINGS = {"spark.default.parallelism": "4"}
UPSERT = {"writeMode": "upsert", "key": "id", "timeout": "120"}
LARGE_DDL = "(id BIGINT PRIMARY KEY, body LONGBLOB)"
LARGE_ROW = 100_000
"""Bytes that no compression makes fewer."""


def plain(stream: DataFrame) -> DataFrame:
    return stream.selectExpr(
        "value as id", "concat('name-', value % 1000) as name", "value * 0.123457D as price",
        "timestamp_micros(1600000000000000 + value * 1000003) as at",
    )  # fmt: skip


def large(stream: DataFrame) -> DataFrame:
    def with_bodies(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for start in range(0, len(batch), 100):
                ids = batch.column("value")[start : start + 100]
                bodies = pa.array([os.urandom(LARGE_ROW) for _ in ids])
                yield pa.RecordBatch.from_pydict({"id": ids, "body": bodies})

    return stream.select("value").mapInArrow(with_bodies, "id bigint, body binary")


@dataclass(frozen=True)
class Store:
    """A store, and how an epoch goes into it.

    Attributes:
        kind: the name of its format.
        target: the option that names where rows go.
        modes: the options of each kind of epoch.
        rows: of a small epoch, and of a large one.
        made: makes them of numbers.
        start: gives a server that has a `url`, while it is entered.
        fresh: makes the target of that name at that address.
        total: how many rows are there, and the sum of their ids.
    """

    kind: str
    target: str
    modes: Mapping[str, Mapping[str, str]]
    rows: tuple[int, int]
    made: Callable[[DataFrame], DataFrame]
    start: Callable[[], AbstractContextManager[Any]]
    fresh: Callable[[str, str], None]
    total: Callable[[str, str], tuple[int, float]]


def make_table(ddl: str, url: str, name: str) -> None:
    with mysql.connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} {ddl}")


def total_of_table(url: str, name: str) -> tuple[int, float]:
    with mysql.connect(url, read_timeout=600) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), SUM(id) FROM {name}")
        return cursor.fetchone()


def total_of_index(url: str, name: str) -> tuple[int, float]:
    with elasticsearch.connect(url) as client:
        client.indices.refresh(index=name)
        ids = {"ids": {"stats": {"field": "id"}}}
        said = client.search(index=name, size=0, aggs=ids)["aggregations"]["ids"]
    return said["count"], said["sum"]


def sql(
    server: str,
    ddl: str,
    modes: Mapping[str, Mapping[str, str]],
    rows: tuple[int, int],
    made: Callable[[DataFrame], DataFrame] = plain,
) -> Store:
    start = lambda: mysql.MySqlProcess(mysql.private_binary(server), *CONFIG)  # noqa: E731
    fresh = partial(make_table, ddl)
    return Store("mysql", "dbtable", modes, rows, made, start, fresh, total_of_table)


SQL_MODES = {"upsert": UPSERT, "append": {**UPSERT, "writeMode": "append"}}

STORES = {
    "mysql": sql("mysql", DDL, SQL_MODES, (100_000, 10_000_000)),
    "mariadb": sql("mariadb", DDL, SQL_MODES, (100_000, 10_000_000)),
    "mysql-bytes": sql("mysql", LARGE_DDL, {"append": {}}, (500, 50_000), large),
    "elasticsearch": Store(
        "elasticsearch",
        "index",
        {"upsert": UPSERT},
        (100_000, 5_000_000),
        plain,
        elasticsearch_speed.measured,
        elasticsearch_speed.fresh,
        total_of_index,
    ),
}


def workers() -> Iterator[Path]:
    """Spark's Python processes."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                yield process
        except OSError:
            continue


def peak() -> float:
    """MiB that the largest of them has had."""
    found = [0]
    for process in workers():
        try:
            lines = (process / "status").read_text().splitlines()
        except OSError:
            continue
        found += [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return max(found) / 1024


def write(
    spark: SparkSession, store: Store, url: str, target: str, rows: int, mode: Mapping[str, str]
) -> tuple[float, float]:
    """Seconds and MiB of one epoch."""
    store.fresh(url, target)
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    made = store.made(stream.option("numPartitions", 4).load())
    with tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as checkpoint:
        query = (
            made.writeStream.format(store.kind)
            .options(url=url, **{store.target: target}, **mode)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert store.total(url, target) == (rows, rows * (rows - 1) // 2)
    return query.recentProgress[0].durationMs["addBatch"] / 1000, peak()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", choices=STORES)
    parser.add_argument("--rows", type=int)
    args = parser.parse_args()
    store = STORES[args.store]
    shown = Table(title=f"Epochs of one query, {args.store}")
    for column in ("mode", "rows", "s", "rows/s", "largest Python process"):
        shown.add_column(column, justify="right", no_wrap=True)
    few, many = store.rows
    epochs = [(mode, rows) for mode in store.modes for rows in (few, args.rows or many)]
    with (
        tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as home,
        store.start() as server,
        local_spark.session(Path(home), SETTINGS) as spark,
    ):
        for at, (mode, rows) in enumerate(track(epochs, "epochs")):
            took, most = write(spark, store, server.url, f"large{at}", rows, store.modes[mode])
            row = (f"{rows:,}", f"{took:.1f}", f"{rows / took:,.0f}", f"{most:,.0f} MiB")
            shown.add_row(mode, *row)
    Console(width=100).print(shown)


if __name__ == "__main__":
    main()
