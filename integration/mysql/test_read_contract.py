"""The kit's rules of reads against real MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random

import pyarrow as pa
import pytest
from integration.support import mysql_drawn_columns
from integration.support.proxy import Proxy
from integration.support.reading import ConnectorReads
from integration.support.servers.mysql import connect

from pyspark_mysql.connector import MySqlConnector
from sparkonce.tck.read_contract import ReadContract, ReadSubject

COLUMNS = "name VARCHAR(100), n BIGINT, x DOUBLE, flag BOOLEAN, at TIMESTAMP(6) NULL"
AT_ONCE = 1000
CHARSETS = ("utf8mb4", "utf8mb3", "latin1", "ascii", "sjis", "gbk", "ucs2", "big5", "cp1250")


class MySqlReads(ConnectorReads):
    """A table with a primary key."""

    connector = MySqlConnector()

    def __init__(self, proxy: Proxy, url: str, table: str) -> None:
        self.proxy, self.table = proxy, table
        self.raw = {"url": proxy.url, "dbtable": table}
        self.client, self.numbers = connect(url), count(1)
        self.run(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, {COLUMNS}) CHARACTER SET utf8mb4")
        self.run("SET SESSION time_zone='+00:00'")

    def run(self, sql: str, rows: list[tuple[object, ...]] | None = None) -> None:
        with self.client.cursor() as cursor:
            cursor.executemany(sql, rows) if rows else cursor.execute(sql)

    def fill(self, table: pa.Table) -> None:
        rows = [
            (*row[:5], row[5] and row[5].replace(tzinfo=None))
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
        ]
        for at in range(0, len(rows), AT_ONCE):
            self.run(
                f"INSERT INTO {self.table} VALUES (%s, %s, %s, %s, %s, %s)", rows[at : at + AT_ONCE]
            )
        self.run(f"ANALYZE TABLE {self.table}")

    def churn(self) -> None:
        number = next(self.numbers)
        self.run(f"INSERT INTO {self.table} (id, name) VALUES ({-number}, 'new')")
        self.run(f"UPDATE {self.table} SET id = id - 1000000 WHERE id = {-number // 2}")
        self.run(f"DELETE FROM {self.table} WHERE id = {-number // 3}")

    def draw(self, random: Random) -> str:
        with self.client.cursor() as cursor:
            cursor.execute("SELECT collation_name FROM information_schema.collations ORDER BY 1")
            names = [one for (one,) in cursor if one and one.startswith(CHARSETS)]
        return mysql_drawn_columns.draw(random, self.run, self.table, names)

    @contextmanager
    def slow(self) -> Iterator[Callable[[], int]]:
        """Rows of a view, before each of which the server sleeps."""
        self.run(f"RENAME TABLE {self.table} TO {self.table}_rows")
        self.run(f"CREATE VIEW {self.table} AS SELECT * FROM {self.table}_rows WHERE SLEEP(9) = 0")
        self.raw["timeout"] = "0.5"

        def running() -> int:
            with self.client.cursor() as cursor:
                cursor.execute(
                    "SELECT COUNT(*) FROM information_schema.processlist"
                    f" WHERE info LIKE '%{self.table}%' AND state = 'User sleep'"
                )
                return int(cursor.fetchone()[0])

        try:
            yield running
        finally:
            self.run(f"DROP VIEW {self.table}")
            self.run(f"RENAME TABLE {self.table}_rows TO {self.table}")

    def spoil(self) -> str:
        self.run("SET SESSION sql_mode=''")
        self.run(f"ALTER TABLE {self.table} ADD COLUMN day DATE")
        self.run(f"UPDATE {self.table} SET flag = 7 WHERE id = 3")
        return "flag"


class TestMySqlReads(ReadContract):
    @pytest.fixture
    def reading(self, mysql_proxy: Proxy, mysql_url: str, table: str) -> ReadSubject:
        return MySqlReads(mysql_proxy, mysql_url, table)
