"""The kit against real MySQL and MariaDB: an epoch in one transaction, or one for each chunk."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from integration.servers.mysql import connect
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

DATABASES = 4
TABLES = ("sparkonce_ledger", "sparkonce_log", "target")
TARGET = "CREATE TABLE target (id VARCHAR(191) COLLATE utf8mb4_bin, n BIGINT)"


class MySqlSubject(ConnectorSubject):
    """A database of its own. Each row is appended to a table without a key."""

    pace = 6

    def __init__(self, url: str, *, whole_epochs: bool) -> None:
        if not whole_epochs:
            self.limits = {"whole epochs": "atomicity=chunk applies chunk by chunk"}
        self.client = connect(url)
        self.database = url.rpartition("/")[2]
        options = {
            "url": url,
            "dbtable": "target",
            "writeMode": "append",
            "atomicity": "epoch" if whole_epochs else "chunk",
        }
        super().__init__(MySqlConnector(), options, nowhere={"url": "mysql://127.0.0.1:1/nowhere"})
        self.limits = {**self.limits, **({"apply": "one transaction"} if whole_epochs else {})}

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.client.cursor() as cursor:
            cursor.execute(sql, values or None)
            return list(cursor.fetchall())

    def took_effect(self) -> Counter[str]:
        with connect(self.raw["url"]) as client, client.cursor() as cursor:
            cursor.execute("SELECT id, COUNT(*) FROM target GROUP BY id")
            return Counter(dict(cursor.fetchall()))

    def refuse(self, row: str) -> Callable[[], None]:
        self.run(f"ALTER TABLE target ADD CONSTRAINT strict CHECK (id <> '{row}')")
        return lambda: self.run("ALTER TABLE target DROP CONSTRAINT strict")

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        return {table: self.run(f"SELECT * FROM {table}") for table in TABLES}

    def restore(self, state: Any) -> None:
        self.client.begin()
        for table, rows in state.items():
            self.run(f"DELETE FROM {table}")
            for row in rows:
                places = ", ".join(["%s"] * len(row))
                self.run(f"INSERT INTO {table} VALUES ({places})", *row)
        self.client.commit()


@pytest.fixture(scope="module")
def databases(mysql_server: Any) -> Iterator[list[str]]:
    """Databases that the checks use in turns."""
    names = [f"kit_{number}" for number in range(DATABASES)]
    with connect(mysql_server.url) as client, client.cursor() as cursor:
        for name in names:
            _make(cursor, name)
        yield [mysql_server.url.rpartition("/")[0] + f"/{name}" for name in names]
        for name in names:
            cursor.execute(f"DROP DATABASE {name}")


def _make(cursor: Cursor, name: str) -> None:
    cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    cursor.execute(f"USE {name}")
    for statement in (*MySqlConnector().ddl(), TARGET):
        cursor.execute(statement)


@pytest.fixture(params=[True, False], ids=["one transaction", "a transaction a chunk"])
def new_subject(
    request: pytest.FixtureRequest, databases: list[str], caplog: pytest.LogCaptureFixture
) -> NewSubject:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    numbers = count()

    def make() -> MySqlSubject:
        url = databases[next(numbers) % DATABASES]
        subject = MySqlSubject(url, whole_epochs=request.param)
        for table in TABLES:
            subject.run(f"DELETE FROM {table}")
        return subject

    return make


class TestMySqlStore(StoreContract):
    pass
