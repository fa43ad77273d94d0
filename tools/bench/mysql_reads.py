"""How fast a table is read into `noop`, beside a reader by hand and Spark's own JDBC.

Run it on a quiet machine::

    python -m tools.bench.mysql_reads [--rows 1000000] [--rounds 3] [--server mariadb]

One run, one Spark session, one server, one table of four columns (bigint, string, double,
timestamp), the same ranges for all. The readers take turns; medians of the rounds are shown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from integration.support.servers import spark as local_spark
from integration.support.servers.cache import jar
from integration.support.servers.mysql import MySqlProcess, connect, private_binary, version_at
from pymysql.cursors import SSCursor
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from tools.bench import reads
from tools.bench.mysql_speed import CONFIG, CONNECTOR_J

TABLE = "bench_reads"
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at TIMESTAMP(6))"
FETCH, JDBC = 10_000, "Spark JDBC"


class HandReader(reads.HandReader):
    """What users write: a range a partition, rows as tuples."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        step = int(self.options["rows"]) // reads.PARTS + 1
        first = partition.value * step
        client = connect(self.options["url"], cursorclass=SSCursor)
        with client, client.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            where = f"id >= {first} AND id < {first + step}"
            cursor.execute(f"SELECT id, name, price, at FROM {TABLE} WHERE {where}")
            while rows := cursor.fetchmany(FETCH):
                yield from rows


class Hand(reads.Hand):
    reads = HandReader


def ranges(rows: int) -> dict[str, str]:
    return {
        "partitionColumn": "id",
        "lowerBound": "0",
        "upperBound": str(rows),
        "numPartitions": str(reads.PARTS),
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


READERS: dict[str, Callable[..., DataFrame]] = {
    reads.BY_HAND: reads.by_hand,
    JDBC: jdbc,
    reads.OWN: own,
}


def fill(spark: SparkSession, url: str, rows: int) -> None:
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {TABLE} {DDL}")
    reads.made(spark, rows).write.format("mysql").options(url=url, dbtable=TABLE, key="id").mode(
        "append"
    ).save()


def main() -> None:
    parser = reads.arguments(__doc__, 1_000_000)
    parser.add_argument("--server", default="mysql", choices=["mysql", "mariadb"])
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
    settings = {"spark.jars": str(jar(CONNECTOR_J))}
    with (
        MySqlProcess(private_binary(given.server), *CONFIG) as server,
        local_spark.session(home, settings) as spark,
    ):
        spark.dataSource.register(Hand)
        fill(spark, server.url, given.rows)
        readers = {
            name: partial(reader, url=server.url, rows=given.rows)
            for name, reader in READERS.items()
        }
        took = reads.in_turns(spark, readers, given.rows, given.rounds)
        reads.show(took, given.rows, JDBC, version_at(server.url))


if __name__ == "__main__":
    main()
