"""How fast a table is read into `noop`, beside a reader by hand and Spark's own JDBC.

Run it on a quiet machine::

    python -m integration.bench.mysql_reads [--rows 1000000] [--rounds 3] [--server mariadb]

One run, one Spark session, one server, one table of four columns (bigint, string, double,
timestamp), the same ranges for all. The readers take turns; medians of the rounds are shown.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from integration.bench.mysql_speed import CONFIG, CONNECTOR_J
from integration.servers import spark as local_spark
from integration.servers.maven import jar
from integration.servers.mysql import MySqlProcess, connect, private_binary, version_at
from pymysql.cursors import SSCursor
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from rich.console import Console
from rich.table import Table

TABLE, SCHEMA = "bench_reads", "id bigint, name string, price double, at timestamp"
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at TIMESTAMP(6))"
PARTS, FETCH = 4, 10_000
BY_HAND, JDBC, OWN = "by hand: pymysql SSCursor", "Spark JDBC", "sparkonce"


class Hand(DataSource):
    """What users write: a range a partition, rows as tuples."""

    @classmethod
    def name(cls) -> str:
        return "by_hand"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
        return HandReader(dict(self.options))


class HandReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(at) for at in range(PARTS)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        step = int(self.options["rows"]) // PARTS + 1
        first = partition.value * step
        client = connect(self.options["url"], cursorclass=SSCursor)
        with client, client.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            where = f"id >= {first} AND id < {first + step}"
            cursor.execute(f"SELECT id, name, price, at FROM {TABLE} WHERE {where}")
            while rows := cursor.fetchmany(FETCH):
                yield from rows


def by_hand(spark: SparkSession, url: str, rows: int) -> DataFrame:
    return spark.read.format("by_hand").options(url=url, rows=rows).load()


def ranges(rows: int) -> dict[str, str]:
    return {
        "partitionColumn": "id",
        "lowerBound": "0",
        "upperBound": str(rows),
        "numPartitions": str(PARTS),
    }


def jdbc(spark: SparkSession, url: str, rows: int) -> DataFrame:
    where = urlsplit(url)
    return (
        spark.read.format("jdbc")
        .options(
            url=f"jdbc:mysql://{where.hostname}:{where.port}{where.path}?sslMode=DISABLED"
            "&connectionTimeZone=UTC&allowPublicKeyRetrieval=true&useCursorFetch=true",
            driver="com.mysql.cj.jdbc.Driver",
            user=where.username or "",
            dbtable=TABLE,
            fetchsize=str(FETCH),
            **ranges(rows),
        )
        .load()
    )


def own(spark: SparkSession, url: str, rows: int) -> DataFrame:
    return spark.read.format("mysql").options(url=url, dbtable=TABLE, **ranges(rows)).load()


READERS: dict[str, Callable[[SparkSession, str, int], DataFrame]] = {
    BY_HAND: by_hand,
    JDBC: jdbc,
    OWN: own,
}


def fill(spark: SparkSession, url: str, rows: int) -> None:
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {TABLE} {DDL}")
    made = spark.range(rows).selectExpr(
        "id",
        "concat('customer ', id % 9973) as name",
        "id * 0.37 as price",
        "timestamp_micros(1767225600000000 + id * 1000003) as at",
    )
    made.selectExpr("id", "name", "double(price) as price", "at").write.format("mysql").options(
        url=url, dbtable=TABLE, key="id"
    ).mode("append").save()


def main() -> None:
    given = _arguments()
    home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
    settings = {"spark.jars": str(jar(CONNECTOR_J))}
    with (
        MySqlProcess(private_binary(given.server), *CONFIG) as server,
        local_spark.session(home, settings) as spark,
    ):
        spark.dataSource.register(Hand)
        fill(spark, server.url, given.rows)
        took = defaultdict[str, list[float]](list)
        for number in range(given.rounds + 1):
            for name, reader in READERS.items():
                began = time.monotonic()
                reader(spark, server.url, given.rows).write.format("noop").mode("append").save()
                if number:  # in the first one Java compiles and workers start
                    took[name].append(time.monotonic() - began)
                assert number or reader(spark, server.url, given.rows).count() == given.rows
        show(took, given.rows, version_at(server.url))


def show(took: dict[str, list[float]], rows: int, version: str) -> None:
    speed = {name: rows / statistics.median(each) for name, each in took.items()}
    table = Table("reader", "rows/s", "against by hand", "against JDBC", title=version)
    for name, each in speed.items():
        ratios = (f"{each / speed[other]:.2f}" for other in (BY_HAND, JDBC))
        table.add_row(name, f"{each:,.0f}", *ratios)
    Console(width=100).print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", default="mysql", choices=["mysql", "mariadb"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
