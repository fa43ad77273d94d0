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
from itertools import cycle
from typing import Any

import pytest
from integration.support.servers.finder import Server
from integration.support.servers.mysql import connect

from pyspark_mysql.connector import MySqlConnector
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.store_contract import StoreContract
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
    client.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    client.run(f"USE {name}")
    for statement in (*MySqlConnector().ddl(), TARGET):
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
