"""Fixtures for tests of MySQL and MariaDB alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from integration.support.mysql import Private, Table, clear
from integration.support.proxy import Proxy
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, private_binary
from pymysql.cursors import Cursor


@pytest.fixture
def mysql(mysql: Cursor, mysql_url: str, unique: str) -> Iterator[Cursor]:
    """A plain client; tables, databases and users that begin as the test's own go in the end."""
    yield mysql
    clear(mysql, urlsplit(mysql_url).path[1:], unique)


@pytest.fixture
def table(mysql: Cursor, mysql_url: str, unique: str) -> Table:
    """The name of a table that no other test uses."""
    return Table(unique, mysql_url, mysql)


@pytest.fixture
def counters(table: Table) -> Table:
    table.create("id BIGINT PRIMARY KEY, n BIGINT")
    return table


@pytest.fixture
def set_global(mysql: Cursor) -> Iterator[Callable[[str, object], None]]:
    """Change a setting of the server for the time of a test, and for connections made from then on.

    Tests of other processes meet it on the shared server: one that they could notice is for a
    server of the module's own.
    """
    before: dict[str, Any] = {}

    def change(name: str, value: object) -> None:
        mysql.execute(f"SELECT @@GLOBAL.{name}")
        before.setdefault(name, mysql.fetchone())
        mysql.execute(f"SET GLOBAL {name} = %s", (value,))

    yield change
    for name, value in before.items():
        mysql.execute(f"SET GLOBAL {name} = %s", value)


@pytest.fixture
def local_infile(set_global: Callable[[str, object], None]) -> Callable[[bool], None]:
    """Say whether the server allows LOAD DATA LOCAL, for connections that are made from then on.

    Others may meet either on the shared server: rows that can't be loaded are inserted.
    """
    return lambda on: set_global("local_infile", int(on))


@pytest.fixture
def private_mysql(mysql_name: str) -> Iterator[Private]:
    """Start a server of the test's own: `private_mysql("--read-only=1")`."""
    with ExitStack() as running:

        def start(*config: str) -> MySqlProcess:
            return running.enter_context(
                or_skip(lambda: MySqlProcess(private_binary(mysql_name), *config))
            )

        yield start


@pytest.fixture
def mysql_proxy(mysql_url: str) -> Iterator[Proxy]:
    """Stand between a test and the shared MySQL or MariaDB, to make the network fail."""
    with Proxy(mysql_url) as proxy:
        yield proxy
