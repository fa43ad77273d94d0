"""Compares the MySQL connector with others: `python -m tools.bench.mysql write`.

Run it on a quiet machine. The commands, which also take `--server mariadb`:

    write: writes new rows, the same rows again, and single rows.
    read: reads a table, also with Spark's own JDBC.
    follow: reads the binary log, also with a loop in Python.
    short: reads transactions of one row each, by the CPU time of the reader.
    large: writes an epoch of ten million rows.
    bytes: writes an epoch of 5 GB; needs 40 GB of disk.
    driver: measures the driver's share of a commit.

All figures of a table result from one run, one server and the same rows.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from statistics import median
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from integration.support.epochs import MySqlQuery
from integration.support.mysql import GTIDS, LOGGED, feed, run
from integration.support.servers.cache import jar
from integration.support.servers.mysql import (
    QUICK,
    MySqlProcess,
    connect,
    private_binary,
    version_at,
)
from pymysql.cursors import SSCursor
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent
from pyspark.sql import DataFrame, Row
from pyspark.sql.datasource import InputPartition
from tools.bench import harness
from tools.bench.harness import BY_HAND, COUNTING, OWN, PARTS, Writer

CONNECTOR_J = "com.mysql:mysql-connector-j:9.5.0"
CONFIG = ("--local-infile=1", "--innodb-buffer-pool-size=1G")
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at {})"
UPSERT = (
    "INSERT INTO bench (id, name, price, at) VALUES (%s, %s, %s, %s) ON DUPLICATE KEY UPDATE"
    " name = VALUES(name), price = VALUES(price), at = VALUES(at)"
)
JDBC = "Spark JDBC"
AT_ONCE, WARM_UP = 10_000, 100_000
LARGE_ROW = 100_000
"""Bytes of a row, which no compression reduces."""

SLOW, LOOP = 10, "python-mysql-replication, a loop"
"""The loop reads one of SLOW rows."""
TABLE = "bench"


def by_hand(url: str) -> Writer:
    """A common solution: executemany in each partition, 10,000 rows at a time, then a commit."""

    def send(rows: Iterator[Row]) -> None:
        with connect(url, autocommit=False) as client, client.cursor() as cursor:
            batch: list[Row] = []
            for row in rows:
                batch.append(row)
                if len(batch) == AT_ONCE:
                    cursor.executemany(UPSERT, batch)
                    batch.clear()
            cursor.executemany(UPSERT, batch)
            client.commit()

    return harness.in_partitions(send)


def jdbc(url: str, more: str) -> dict[str, str]:
    """Options of Spark's own JDBC."""
    where = urlsplit(url)
    return {
        "url": f"jdbc:mysql://{where.hostname}:{where.port}{where.path}?sslMode=DISABLED"
        f"&connectionTimeZone=UTC&allowPublicKeyRetrieval=true&{more}=true",
        "driver": "com.mysql.cj.jdbc.Driver",
        "user": where.username or "",
        "dbtable": TABLE,
        "batchsize": str(AT_ONCE),
        "fetchsize": str(AT_ONCE),
    }


def fresh(url: str, ddl: str = DDL.format("DATETIME(6)")) -> None:
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        cursor.execute(f"CREATE TABLE {TABLE} {ddl}")


def total(url: str) -> tuple[int, float]:
    """The number of rows, and the sum of their ids."""
    with connect(url, read_timeout=600) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), SUM(id) FROM {TABLE}")
        return cursor.fetchone()


def sql_session() -> Any:
    return harness.session({"spark.jars": str(jar(CONNECTOR_J))}, Hand)


def write(given: Namespace) -> None:
    """In a round each writer writes a few rows, all rows, and the same rows again if it can."""
    rows = given.rows or 500_000
    with (
        MySqlProcess(private_binary(given.server), *CONFIG) as server,
        sql_session() as (spark, home),
    ):
        own = {"url": server.url, "dbtable": TABLE}
        twice = {
            COUNTING: harness.stream("nowhere"),
            BY_HAND: by_hand(server.url),
            f"{OWN} upsert": harness.stream("mysql", **own, key="id"),
            f"{OWN} upsert, df.write": harness.in_batches("mysql", **own, key="id"),
        }
        once = {
            JDBC: harness.in_batches("jdbc", **jdbc(server.url, "rewriteBatchedStatements")),
            f"{OWN} append": harness.stream("mysql", **own, writeMode="append"),
        }
        many, table = [range(-WARM_UP, 0), range(rows), range(rows)], partial(fresh, server.url)
        sources = {
            number: harness.make_epochs(spark, home / str(number), many[:number])
            for number in (2, 3)
        }
        ways = {
            name: harness.way(spark, sources[number], writer, table)
            for number, writers in ((3, twice), (2, once))
            for name, writer in writers.items()
        }
        took = harness.in_turns(ways, given.rounds)
        assert total(server.url)[0] == rows + WARM_UP, "the last of them lost rows"
        harness.show_single_rows(spark, home, twice | once, table)
        title = f"{rows:,} rows of 4 columns an epoch, {given.server} {version_at(server.url)}"
    new = {name: each[:: 1 + (name in twice)] for name, each in took.items()}
    again = {name: took[name][1::2] for name in twice}
    for what, seconds, against in (
        ("new rows", new, (BY_HAND, JDBC)),
        ("again", again, (BY_HAND,)),
    ):
        found = {name: rows / each for name, each in harness.medians(seconds).items()}
        harness.show_rates(f"{title}, {what}", found, *against)


class HandReader(harness.HandReader):
    """A common solution: one range for each partition, rows as tuples."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        step = int(self.options["rows"]) // PARTS + 1
        first = partition.value * step
        client = connect(self.options["url"], cursorclass=SSCursor)
        with client, client.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            where = f"id >= {first} AND id < {first + step}"
            cursor.execute(f"SELECT id, name, price, at FROM {TABLE} WHERE {where}")
            while rows := cursor.fetchmany(AT_ONCE):
                yield from rows


class Hand(harness.Hand):
    reads = HandReader


def read(given: Namespace) -> None:
    """The same ranges for all."""
    rows = given.rows or 500_000
    with (
        MySqlProcess(private_binary(given.server), *CONFIG) as server,
        sql_session() as (spark, _),
    ):
        fresh(server.url, DDL.format("TIMESTAMP(6)"))
        own = {"url": server.url, "dbtable": TABLE}
        made = harness.rows_of(spark.range(rows)).write.format("mysql").options(**own, key="id")
        made.mode("append").save()
        ranges = {"partitionColumn": "id", "lowerBound": "0", "upperBound": str(rows)}
        ranges["numPartitions"] = str(PARTS)
        options = {
            BY_HAND: ("by_hand", {**own, "rows": str(rows)}),
            JDBC: ("jdbc", {**jdbc(server.url, "useCursorFetch"), **ranges}),
            OWN: ("mysql", {**own, **ranges}),
        }
        readers = {
            name: spark.read.format(form).options(**given).load()
            for name, (form, given) in options.items()
        }
        took = harness.reads(readers, rows, given.rounds)
        found = {name: rows / each for name, each in took.items()}
        harness.show_rates(f"{given.server} {version_at(server.url)}", found, BY_HAND, JDBC)


def follow(given: Namespace) -> None:
    rows, at_once, binary = given.rows or 1_000_000, 1000, private_binary("mysql")
    config = (*LOGGED, *GTIDS["mysql"], *QUICK, "--binlog-row-metadata=FULL")
    with MySqlProcess(binary, *config) as log, harness.session() as (spark, _):
        with connect(log.url) as client, client.cursor() as cursor:
            cursor.execute("SELECT @@global.gtid_executed")
            ((begin,),) = cursor.fetchall()
            cursor.execute(f"CREATE TABLE t {DDL.format('TIMESTAMP')}")
            for low in range(0, rows, at_once):
                values = ", ".join(
                    f"({at}, 'customer {at % 9973}', {at * 0.37}, '2026-01-01 00:00:{at % 60:02}')"
                    for at in range(low, low + at_once)
                )
                cursor.execute(f"INSERT INTO t VALUES {values}")
        own = {"url": log.url, "dbtable": "t"}
        ways = {
            LOOP: lambda: _by_replication(log.url, rows // SLOW),
            OWN: harness.follow(spark, "mysql", **own, startingPosition=begin),
            f"{OWN}, 200,000 rows an epoch": harness.follow(
                spark, "mysql", **own, startingPosition=begin, maxRowsPerBatch="200000"
            ),
            f"{OWN}, snapshot": harness.follow(spark, "mysql", **own, startingPosition="snapshot"),
        }
        title = f"Binary log of {binary.how} {binary.version}, {at_once} rows a transaction"
        harness.show_rates(title, harness.rates(ways, given.rounds), LOOP)


def _by_replication(url: str, rows: int) -> int:
    """A common solution: each row as a dictionary; reads a part of the rows."""
    parts = urlsplit(url)
    login = {"host": parts.hostname, "port": parts.port, "user": "root", "passwd": ""}
    reader = BinLogStreamReader(
        connection_settings=login, server_id=77, only_events=[WriteRowsEvent]
    )
    found = 0
    with closing(reader) as events:
        for event in events:
            found += len(event.rows)
            if found >= rows:
                break
    return found


FILL = """
CREATE PROCEDURE fill(rows_ INT, tables_ INT) BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rows_ DO
    SET @into = CONCAT('INSERT INTO t', i % tables_, ' VALUES (?, ?, 0.37, ''2026-01-01'')');
    SET @id = i, @name = CONCAT('customer ', i);
    PREPARE filling FROM @into;
    EXECUTE filling USING @id, @name;
    SET i = i + 1;
  END WHILE;
END"""
"""Writes transactions of one row, to each of the tables in turn."""


def short(given: Namespace) -> None:
    """The feeds that tasks of Spark read: of a table, and of the databases of one and ten."""
    rows, lines = given.rows or 200_000, []
    for name, options in GTIDS.items():
        config = (*LOGGED, *options, *QUICK, "--binlog-row-metadata=FULL")
        with MySqlProcess(private_binary(name), *config) as server:
            run(server, "CREATE DATABASE one", "CREATE DATABASE ten")
            of_one = _seconds(server, "one", "one.t0", rows)
            as_json = _seconds(server, "one", "one.*", rows)
            of_ten = _seconds(server, "ten", "ten.*", rows)
            version = f"{name} {version_at(server.url)}"
            ratio = f"{of_ten / as_json:.2f}"
            lines.append((version, *(rows / one for one in (of_one, as_json, of_ten)), ratio))
    head = (
        "Transactions of one row a second",
        "one table",
        "as JSON",
        "ten tables",
        "time, ten to one",
    )
    harness.show("Binary log, by CPU time", head, lines)


def _seconds(server: MySqlProcess, database: str, asked: str, rows: int) -> float:
    """The CPU time of a reader of all rows that are written to a database from now on."""
    url, many = f"{server.url.rpartition('/')[0]}/{database}", 10 if database == "ten" else 1
    made, tables = feed(server.url, asked) if "*" in asked else None, range(many)
    drop = ["DROP PROCEDURE IF EXISTS fill", *(f"DROP TABLE IF EXISTS t{at}" for at in tables)]
    run(url, *drop, FILL, *(f"CREATE TABLE t{at} {DDL.format('DATETIME(6)')}" for at in tables))
    made = made or feed(server.url, asked)
    begin = made.advance(made.begin(), made.latest(), None)
    run(url, f"CALL fill({rows}, {many})")
    end, took = made.advance(begin, made.latest(), None), []
    for _ in range(3):
        began = time.process_time()
        splits = made.between(begin, end)
        assert sum(len(batch) for split in splits for batch in made.read(split)) == rows
        took.append(time.process_time() - began)
    return median(took)


def with_bodies(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start in range(0, len(batch), 100):
            ids = batch.column("id")[start : start + 100]
            bodies = pa.array([os.urandom(LARGE_ROW) for _ in ids])
            yield pa.RecordBatch.from_pydict({"id": ids, "body": bodies})


def large(given: Namespace, *, of_bytes: bool = False) -> None:
    few, many = (500, 50_000) if of_bytes else (100_000, 10_000_000)
    ddl = "(id BIGINT PRIMARY KEY, body LONGBLOB)" if of_bytes else DDL.format("DATETIME(6)")
    modes = [{"writeMode": "append"}]
    modes += [] if of_bytes else [{"writeMode": "upsert", "key": "id"}]
    lines = []
    with (
        MySqlProcess(private_binary(given.server), *CONFIG) as server,
        sql_session() as (spark, _),
    ):
        for mode in modes:
            for rows in (few, given.rows or many):
                fresh(server.url, ddl)
                ids: DataFrame = harness.numbers(spark, rows)
                made = ids.mapInArrow(with_bodies, "id bigint, body binary")
                made = made if of_bytes else harness.rows_of(ids)
                writer = harness.stream(
                    "mysql", url=server.url, dbtable=TABLE, timeout="120", **mode
                )
                line = harness.large(made, writer, lambda: total(server.url), rows)
                lines.append((mode["writeMode"], *line))
    harness.show(f"Epochs, {given.server}", harness.LARGE, lines)


def large_bytes(given: Namespace) -> None:
    large(given, of_bytes=True)


def driver(given: Namespace) -> None:
    with MySqlProcess(private_binary("mysql"), "--local-infile=0") as server:
        fresh(server.url)
        own = {"url": server.url, "dbtable": TABLE, "key": "id"}
        harness.show_driver("MySQL", MySqlQuery(harness.ARROW, **own), given)


if __name__ == "__main__":
    commands = {one.__name__: one for one in (write, read, follow, short, large, driver)}
    harness.main(__doc__, {**commands, "bytes": large_bytes})
