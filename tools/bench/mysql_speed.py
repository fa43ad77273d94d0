"""How fast the MySQL sink is, beside what users do today and beside a writer that only counts.

Run it on a quiet machine::

    python -m tools.bench.mysql_speed [--rows 500000] [--rounds 3] [--server mariadb]

All figures come from one run, one Spark session, one server and the same rows of four columns
(bigint, string, double, timestamp). In a round each writer gets three epochs: a small one, in which
workers start; all rows, into a table that is all but empty; and the same rows again, as duplicates.
The writers take turns; medians of the rounds are shown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from integration.support.servers import spark as local_spark
from integration.support.servers.cache import jar
from integration.support.servers.mysql import MySqlProcess, connect, private_binary, version_at
from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console
from rich.table import Table
from tools.bench.streams import Counting, Writer, in_batches, make_input, run, seconds

CONNECTOR_J = "com.mysql:mysql-connector-j:9.5.0"
CONFIG = ("--local-infile=1", "--innodb-buffer-pool-size=1G")
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at DATETIME(6))"
UPSERT = (
    "INSERT INTO {} (id, name, price, at) VALUES (%s, %s, %s, %s) ON DUPLICATE KEY UPDATE"
    " name = VALUES(name), price = VALUES(price), at = VALUES(at)"
)
BY_HAND, JDBC = "foreachBatch + executemany", "foreachBatch + JDBC append"
COUNTING = "counting Arrow writer"
WARM_UP = 100_000
names = count()


@dataclass(frozen=True)
class Contestant:
    """A way to write a table.

    Attributes:
        writer: made from the server's address and the table.
        again: whether it can take the same rows a second time.
    """

    writer: Callable[[str, str], Writer]
    again: bool = True


def by_hand(url: str, table: str) -> Callable[[DataFrame, int], None]:
    """What users write: executemany in each partition, 10,000 rows at a time, then a commit."""

    def send(rows: Iterator[Row]) -> None:
        with connect(url, autocommit=False) as client, client.cursor() as cursor:
            batch: list[Row] = []
            for row in rows:
                batch.append(row)
                if len(batch) == 10_000:
                    cursor.executemany(UPSERT.format(table), batch)
                    batch.clear()
            cursor.executemany(UPSERT.format(table), batch)
            client.commit()

    return lambda batch, _: batch.foreachPartition(send)


def by_jdbc(url: str, table: str) -> Callable[[DataFrame, int], None]:
    """Spark's own JDBC writer with the fastest settings of Connector/J."""
    where = urlsplit(url)
    options = {
        "url": f"jdbc:mysql://{where.hostname}:{where.port}{where.path}"
        "?rewriteBatchedStatements=true&sslMode=DISABLED&connectionTimeZone=UTC"
        "&allowPublicKeyRetrieval=true",
        "driver": "com.mysql.cj.jdbc.Driver",
        "user": where.username or "",
        "dbtable": table,
        "batchsize": "10000",
    }
    return lambda batch, _: batch.write.format("jdbc").options(**options).mode("append").save()


def sparkonce(url: str, table: str, **options: str) -> Writer:
    settings = {"url": url, "dbtable": table, **options}
    return lambda rows: rows.writeStream.format("mysql").options(**settings)


CONTESTANTS = {
    COUNTING: Contestant(lambda *_: lambda rows: rows.writeStream.format("counting")),
    BY_HAND: Contestant(lambda *to: lambda rows: rows.writeStream.foreachBatch(by_hand(*to))),
    JDBC: Contestant(
        lambda *to: lambda rows: rows.writeStream.foreachBatch(by_jdbc(*to)), again=False
    ),
    "sparkonce upsert": Contestant(lambda *to: sparkonce(*to, key="id")),
    "sparkonce upsert, df.write": Contestant(
        lambda url, table: in_batches("mysql", url=url, dbtable=table, key="id")
    ),
    "sparkonce append": Contestant(lambda *to: sparkonce(*to, writeMode="append"), again=False),
}


def new_table(url: str) -> str:
    name = f"bench_{next(names)}"
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} {DDL}")
    return name


def drop(url: str, table: str, expected: int) -> None:
    """A writer that lost rows would be no writer to compare with."""
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {table}")
        found = cursor.fetchone()[0]
        assert found in (0, expected), f"{table}: {found} rows"
        cursor.execute(f"DROP TABLE {table}")


def throughput(
    spark: SparkSession, home: Path, url: str, rows: int, rounds: int
) -> dict[str, list[float | None]]:
    """Rows a second of each writer, into an empty table and again as duplicates."""
    once = make_epochs(spark, home / "once", rows, times=1)
    twice = make_epochs(spark, home / "twice", rows, times=2)
    spent: dict[str, list[list[float]]] = defaultdict(list)
    for _ in range(rounds):
        for name, contestant in CONTESTANTS.items():
            table = new_table(url)
            source = twice if contestant.again else once
            query = run(spark, source, contestant.writer(url, table), files=1)
            spent[name].append(seconds(query, "addBatch"))
            drop(url, table, rows + WARM_UP)
    return {
        name: [rows / statistics.median(each) for each in zip(*taken, strict=True)]
        for name, taken in spent.items()
    }


def make_epochs(spark: SparkSession, home: Path, rows: int, times: int) -> Path:
    """A few rows, and then all of them so many times; a file each, which Spark splits."""
    full = spark.range(0, rows, 1, 1).selectExpr(
        "id",
        "concat('name-', id % 1000) as name",
        "id * 0.123457D as price",
        "timestamp_micros(1600000000000000 + id * 1000003) as at",
    )
    few = full.limit(WARM_UP).withColumn("id", -full["id"] - 1)
    few.coalesce(1).write.parquet(str(home / "000"))
    for time in range(1, times + 1):
        full.write.option("parquet.block.size", 2 * 1024 * 1024).parquet(str(home / f"{time:03d}"))
    return home


def latency(spark: SparkSession, home: Path, url: str) -> dict[str, float]:
    """Milliseconds that an epoch of a single row takes."""
    single = make_input(spark, home / "single", 1, 25)
    found = {}
    for name, contestant in CONTESTANTS.items():
        table = new_table(url)
        query = run(spark, single, contestant.writer(url, table), files=1)
        found[name] = statistics.median(seconds(query, "addBatch")) * 1000
        drop(url, table, 25)
    return found


def show(fast: dict[str, list[Any]], small: dict[str, float], rows: int, server: str) -> None:
    table = Table(title=f"{rows:,} rows of 4 columns an epoch, {server}")
    heads = ("writer", "rows/s", "x by hand", "x JDBC", "again", "x by hand", "1-row ms", "extra")
    for column in heads:
        table.add_column(column, justify="left" if column == "writer" else "right", no_wrap=True)
    first, again, jdbc = fast[BY_HAND][0], fast[BY_HAND][1], fast[JDBC][0]
    for name, rates in fast.items():
        second = [f"{rates[1]:,.0f}", f"{rates[1] / again:.2f}"] if len(rates) > 1 else ["", ""]
        table.add_row(
            name,
            *(f"{rates[0]:,.0f}", f"{rates[0] / first:.2f}", f"{rates[0] / jdbc:.2f}"),
            *second,
            *(f"{small[name]:.0f}", f"{small[name] - small[COUNTING]:+.0f}"),
        )
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
    settings = {"spark.jars": str(jar(CONNECTOR_J)), "spark.sql.files.maxPartitionBytes": "4m"}
    try:
        with (
            MySqlProcess(private_binary(args.server), *CONFIG) as server,
            local_spark.session(home, settings) as spark,
        ):
            spark.dataSource.register(Counting)
            name = f"{args.server} {version_at(server.url)}"
            fast = throughput(spark, home, server.url, args.rows, args.rounds)
            small = latency(spark, home, server.url)
    finally:
        shutil.rmtree(home)
    show(fast, small, args.rows, name)
    if args.json:
        args.json.write_text(json.dumps({"rows_per_s": fast, "one_row_ms": small}, indent=2))


if __name__ == "__main__":
    main()
