"""One epoch of ten million rows through Spark: how long it takes, and how much memory.

    python -m integration.bench.mysql_large [--rows 10000000] [--server mariadb]

A small epoch comes first. What is shown is the most memory that any Python process of Spark has
taken by the end of each of them: the tasks' workers and the one that commits.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from integration.servers import spark as local_spark
from integration.servers.mysql import MySqlProcess, connect, private_binary
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

SMALL = 100_000
CONFIG = ("--local-infile=1", "--innodb-buffer-pool-size=1G")
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at DATETIME(6))"
SETTINGS = {"spark.default.parallelism": "4"}


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


def write(spark: SparkSession, url: str, rows: int, mode: str) -> tuple[float, float]:
    """Seconds and MiB of one epoch."""
    table = f"large_{mode}_{rows}"
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {table} {DDL}")
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    made = stream.option("numPartitions", 4).load().selectExpr(
        "value as id", "concat('name-', value % 1000) as name", "value * 0.123457D as price",
        "timestamp_micros(1600000000000000 + value * 1000003) as at",
    )  # fmt: skip
    options = {"url": url, "dbtable": table, "writeMode": mode, "key": "id", "timeout": "120"}
    with tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as checkpoint:
        query = (
            made.writeStream.format("mysql")
            .options(**options)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    with connect(url, read_timeout=600) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), COUNT(DISTINCT id) FROM {table}")
        assert cursor.fetchone() == (rows, rows)
    return query.recentProgress[0].durationMs["addBatch"] / 1000, peak()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    args = parser.parse_args()
    shown = Table(title=f"Epochs of one query, {args.server}")
    for column in ("mode", "rows", "s", "rows/s", "largest Python process"):
        shown.add_column(column, justify="right", no_wrap=True)
    with (
        tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as home,
        MySqlProcess(private_binary(args.server), *CONFIG) as server,
        local_spark.session(Path(home), SETTINGS) as spark,
    ):
        for mode in ("upsert", "append"):
            for rows in (SMALL, args.rows):
                took, most = write(spark, server.url, rows, mode)
                row = (f"{rows:,}", f"{took:.1f}", f"{rows / took:,.0f}", f"{most:,.0f} MiB")
                shown.add_row(mode, *row)
    Console(width=100).print(shown)


if __name__ == "__main__":
    main()
