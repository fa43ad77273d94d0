"""A server that can be followed, and a table there, for tests of `spark.readStream`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from integration.support.mysql import Table, client, logging_server
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess
from pymysql.cursors import Cursor


@pytest.fixture(scope="module")
def server(mysql_name: str) -> Iterator[MySqlProcess]:
    """A server that the tests of a module share, and may make others wait at."""
    with or_skip(lambda: logging_server(mysql_name)) as one:
        yield one


@pytest.fixture
def url(server: MySqlProcess) -> str:
    return server.url


@pytest.fixture
def mysql(url: str) -> Iterator[Cursor]:
    with client(url) as cursor:
        yield cursor


@pytest.fixture
def table(mysql: Cursor, url: str, unique: str) -> Table:
    return Table(unique, url, mysql)


LEAST = {"mysql": "MINIMAL", "mariadb": "NO_LOG"}
"""What each server has by default."""


@pytest.fixture(params=["FULL", "LEAST"])
def metadata(
    request: pytest.FixtureRequest, set_global: Callable[[str, object], None], mysql_name: str
) -> str:
    wanted = LEAST[mysql_name] if request.param == "LEAST" else request.param
    set_global("binlog_row_metadata", wanted)
    return str(request.param)
