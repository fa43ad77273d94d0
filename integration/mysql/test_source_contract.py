"""A table that is followed, under the kit's rules of sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.mysql_following import logging_server
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess
from integration.support.sources import table_of_mysql

from sparkonce.tck.sources import SourceContract, StreamingSource


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
