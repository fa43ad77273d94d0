"""The rights that docs/permissions.md gives to operators suffice; for queries see preflight."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk

PAGE = (Path(__file__).parents[2] / "docs" / "permissions.md").read_text()
ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def database(mysql: Cursor, unique: str) -> Iterator[str]:
    mysql.execute(f"CREATE DATABASE {unique}")
    mysql.execute(f"CREATE TABLE {unique}.orders (id BIGINT PRIMARY KEY, n TINYINT)")
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    yield unique
    mysql.execute(f"DROP USER {unique}")
    mysql.execute(f"DROP DATABASE {unique}")


def test_an_operator_needs_no_more(mysql: Cursor, mysql_url: str, database: str) -> None:
    url = f"{mysql_url.rpartition('/')[0]}/{database}"
    aside = {"onBadRow": "deadLetter", "deadLetter": "orders_bad", "maxBadRows": "100%"}
    query = MySqlQuery(ROWS, url=url, dbtable="orders", key="id", **aside)
    query.sink.check()
    query.run(0, [{"id": 1, "n": 1000}])
    query.sink.store.stage(Chunk(query.task(0, 0), 0, 1, b"of a task that comes late"))

    def grant(for_what: str) -> None:
        """Also where a line says that it is for the same as the one before."""
        lines = re.findall(r"^(GRANT .*?) TO 'ops'@'%'; -- (.*)$", PAGE, re.M)
        told = ""
        for statement, what in lines:
            told = told if what == "the same" else what
            if told == for_what:
                mysql.execute(f"{statement.replace('shop.', f'{database}.')} TO '{database}'")

    def said(command: str, *rest: str) -> str:
        own = url.replace("root@", f"{database}:pw@")
        return CliRunner().invoke(main, [command, own, *rest]).output

    grant("status, metrics")
    assert query.name in said("status")
    assert "sparkonce_rows_total" in said("metrics")
    assert "command denied" in said("doctor")
    assert "command denied" in said("gc", "--yes", "--grace", "0s")
    grant("gc, forget")
    assert "1 dropped" in said("gc", "--yes", "--grace", "0s")
    assert "command denied" in said("letters", "-o", "deadLetter=orders_bad")
    grant("letters")
    assert "1 letters" in said("letters")
    assert "1 letters deleted" in said("letters", "orders_bad", "--delete", "--yes")
    assert "is forgotten" in said("forget", query.name, "--yes")
