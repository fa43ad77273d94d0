"""The kit against real MySQL and MariaDB: an epoch in one transaction, or one for each chunk.

Every check runs, but of its crash points and interleavings only every 30th is tried, or every
60th where an epoch has more calls, being applied chunk by chunk (`pace`). `make test` tries fewer,
and MySQL in one way; `make test-all SPARKONCE_TCK_PACE=1` tries all.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from demo.java import java_home
from integration.support import mysql_drawn_columns
from integration.support.kit import ConnectorReads, counting, table_of_mysql, tables_of_mysql
from integration.support.mysql import Table, logging_server
from integration.support.proxy import Proxy
from integration.support.servers.finder import Server, or_skip
from integration.support.servers.mysql import MySqlProcess, connect

from pyspark_mysql.connector import MySqlConnector
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.read_contract import ReadContract, ReadSubject
from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import CHECKS
from sparkonce.tck.spark.run import run_check
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.streaming import StreamingSink
from sparkonce.tck.subject import NewSubject

DATABASES = 4
TABLES = ("sparkonce_ledger", "sparkonce_log", "target")
TARGET = "CREATE TABLE target (id VARCHAR(191) COLLATE utf8mb4_bin, n BIGINT)"


class Client:
    """A plain client of one database, that all its subjects share, and a subject's threads."""

    def __init__(self, url: str) -> None:
        self.url, self._connection, self._lock = url, connect(url), threading.Lock()

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            if not self._connection.open:  # one that failed must not fail all checks behind it
                self._connection = connect(self.url)
            with self._connection.cursor() as cursor:
                cursor.execute(sql, values or None)
                return list(cursor.fetchall())


class MySqlSubject(ConnectorSubject):
    """A database of its own. Each row is appended to a table without a key."""

    def __init__(self, client: Client, *, whole_epochs: bool) -> None:
        if not whole_epochs:
            self.limits = {"whole epochs": "atomicity=chunk applies chunk by chunk"}
        self.client, self.pace = client, 30 if whole_epochs else 60
        options = {
            "url": client.url,
            "dbtable": "target",
            "writeMode": "append",
            "atomicity": "epoch" if whole_epochs else "chunk",
        }
        super().__init__(MySqlConnector(), options, nowhere={"url": "mysql://127.0.0.1:1/nowhere"})
        self.limits = {**self.limits, **({"apply": "one transaction"} if whole_epochs else {})}

    def took_effect(self) -> Counter[str]:
        return Counter(dict(self.client.run("SELECT id, COUNT(*) FROM target GROUP BY id")))

    def in_order(self) -> list[str]:
        # InnoDB numbers the rows of a table that has no key, and reads them by these numbers.
        return [row for (row,) in self.client.run("SELECT id FROM target")]

    def refuse(self, row: str) -> Callable[[], None]:
        self.client.run(f"ALTER TABLE target ADD CONSTRAINT strict CHECK (id <> '{row}')")
        return lambda: self.client.run("ALTER TABLE target DROP CONSTRAINT strict")

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        return {table: self.client.run(f"SELECT * FROM {table}") for table in TABLES}

    def restore(self, state: Any) -> None:
        self.client.run("BEGIN")
        for table, rows in state.items():
            self.client.run(f"DELETE FROM {table}")
            for row in rows:
                places = ", ".join(["%s"] * len(row))
                self.client.run(f"INSERT INTO {table} VALUES ({places})", *row)
        self.client.run("COMMIT")


@pytest.fixture(scope="module")
def clients(mysql_server: Server) -> Iterator[list[Client]]:
    """Clients of databases that the checks use in turns."""
    home = Client(mysql_server.url)
    names = [f"kit_{number}" for number in range(DATABASES)]
    for name in names:
        _make(home, name)
    yield [Client(mysql_server.url.rpartition("/")[0] + f"/{name}") for name in names]
    for name in names:
        home.run(f"DROP DATABASE {name}")


def _make(client: Client, name: str) -> None:
    made = f"CREATE DATABASE {name} CHARACTER SET utf8mb4"
    for statement in (made, f"USE {name}", *MySqlConnector().ddl(), TARGET):
        client.run(statement)


WHOLE, CHUNKS = "one transaction", "a transaction a chunk"


@pytest.fixture
def new_subject(way: str, clients: list[Client], caplog: pytest.LogCaptureFixture) -> NewSubject:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    turns = cycle(clients)

    def make() -> MySqlSubject:
        client = next(turns)
        for table in TABLES:
            client.run(f"DELETE FROM {table}")
        return MySqlSubject(client, whole_epochs=way == WHOLE)

    return make


def on(server: str, way: str) -> Any:
    """The contract of a server, which applies epochs in this way."""

    def mark(contract: type) -> type:
        contract = pytest.mark.parametrize("way", [way], scope="module")(contract)
        return pytest.mark.parametrize("mysql_name", [server], scope="session")(contract)

    return mark


@on("mysql", WHOLE)
class TestMySqlStore(StoreContract):
    pass


@pytest.mark.slow
@on("mariadb", CHUNKS)
class TestMariaDbStoreByChunks(StoreContract):
    pass


@pytest.mark.slow
@on("mysql", CHUNKS)
class TestMySqlStoreByChunks(StoreContract):
    pass


@pytest.mark.slow
@on("mariadb", WHOLE)
class TestMariaDbStore(StoreContract):
    pass


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
    def reading(self, mysql_proxy: Proxy, table: Table) -> ReadSubject:
        return MySqlReads(mysql_proxy, table.url, table)


@pytest.fixture(scope="module")
def server(mysql_name: str) -> Iterator[MySqlProcess]:
    with or_skip(lambda: logging_server(mysql_name)) as one:
        yield one


@pytest.mark.slow
class TestTable(SourceContract):
    @pytest.fixture
    def source(self, server: MySqlProcess, unique: str, tmp_path: Path) -> StreamingSource:
        env = {"JAVA_HOME": str(java_home(tmp_path))}
        return table_of_mysql(server.url, unique, env)


@pytest.mark.slow
class TestTables(SourceContract):
    @pytest.fixture
    def source(self, server: MySqlProcess, unique: str, tmp_path: Path) -> StreamingSource:
        env = {"JAVA_HOME": str(java_home(tmp_path))}
        return tables_of_mysql(server.url, unique, env)


@pytest.fixture
def sink(table: Table, tmp_path: Path) -> StreamingSink:
    return counting(table.url, table, env={"JAVA_HOME": str(java_home(tmp_path))})


@pytest.mark.slow
@pytest.mark.parametrize("rule", CHECKS)
@pytest.mark.parametrize("mysql_name", ["mysql"], scope="session")
def test_a_stream_is_exactly_once(bench: Bench, sink: StreamingSink, rule: str) -> None:
    """What differs in MariaDB lies behind the steps of a store, and those are tested on both."""
    run_check(bench, rule, sink).insist()


@pytest.mark.slow
@pytest.mark.parametrize("mysql_name", ["mariadb"], scope="session")
def test_a_killed_driver_on_mariadb(bench: Bench, sink: StreamingSink) -> None:
    run_check(bench, "Q04", sink).insist()
