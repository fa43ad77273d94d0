"""Rows that can't be stored go to a table, each once, while the others are stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.mysql_statements import is_query, queries_of
from integration.support.proxy import Proxy
from integration.support.servers.mysql import MySqlProcess, connect
from pymysql.cursors import Cursor

from sparkonce.errors import RowRefused

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])


@pytest.fixture
def tables(mysql: Cursor, table: str) -> Iterator[str]:
    """A target that has room for small numbers, and a name for the table of dead letters."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n TINYINT, x DOUBLE)")
    yield table
    mysql.execute(f"DROP TABLE IF EXISTS {table}_bad")


def query(url: str, table: str, **options: str) -> MySqlQuery:
    given = {"writeMode": "increment", "onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    return MySqlQuery(ROWS, url=url, dbtable=table, key="id", **{**given, **options})


@pytest.fixture
def found(mysql: Cursor, tables: str) -> Callable[[], tuple[Any, Any]]:
    """What was stored, and what was put aside."""

    def found() -> tuple[Any, Any]:
        mysql.execute(f"SELECT id, n FROM {tables} ORDER BY id")
        stored = dict(mysql.fetchall())
        mysql.execute(f"SELECT epoch, reason, row_data FROM {tables}_bad ORDER BY id")
        return stored, list(mysql.fetchall())

    return found


def row(id_: int | None, n: int = 1, x: float = 0.5) -> dict[str, Any]:
    return {"id": id_, "n": n, "x": x}


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
def test_bad_rows_of_server_and_client_are_put_aside(
    mysql_url: str, tables: str, found: Any, atomicity: str
) -> None:
    bad = query(mysql_url, tables, atomicity=atomicity, chunkRows="4")
    bad.sink.check()
    rows = [row(i) for i in range(10)]
    rows[3], rows[5], rows[8] = row(3, 300), row(None), row(8, 1, float("inf"))
    bad.run(0, rows, [row(20, -999)])
    bad.run(0, rows)
    stored, letters = found()
    assert stored == dict.fromkeys({0, 1, 2, 4, 6, 7, 9}, 1)
    assert [epoch for epoch, _, _ in letters] == [0] * 4
    reasons = [reason for _, reason, _ in letters]
    for reason, said in zip(
        reasons, ("id=3: 1264", "Column 'id' is null", "column 'x': inf", "id=20"), strict=True
    ):
        assert said in reason
    assert json.loads(letters[0][2]) == {"id": 3, "n": 300, "x": 0.5}


def test_sum_that_overflows_in_a_later_epoch_is_put_aside(
    mysql_url: str, tables: str, found: Any
) -> None:
    bad = query(mysql_url, tables)
    bad.sink.check()
    bad.run(0, [row(1, 100), row(2, 100)])
    bad.run(1, [row(1, 100), row(2, 1)])
    stored, letters = found()
    assert stored == {1: 100, 2: 101}
    assert [(epoch, "id=1" in reason) for epoch, reason, _ in letters] == [(1, True)]


@pytest.mark.slow
def test_each_is_put_aside_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, tables: str, found: Any
) -> None:
    bad = query(mysql_proxy.url, tables)
    bad.sink.check()
    bad.run(0, [row(1)])
    statements = queries_of(mysql_proxy, lambda: bad.run(1, [row(1), row(2, 300)]))
    for epoch in range(2, statements + 2):
        cuts = mysql_proxy.cuts
        mysql_proxy.cut_reply(is_query, nth=epoch - 1)
        bad.run_until_done(epoch, [row(1), row(epoch, 300)])
        mysql_proxy.restore()
        assert mysql_proxy.cuts == cuts + 1
    stored, letters = found()
    assert statements > 12
    assert stored == {1: statements + 2}
    assert [epoch for epoch, _, _ in letters] == list(range(1, statements + 2))


def test_epoch_that_is_stuck_chunk_by_chunk_goes_on_once_bad_rows_may_go_aside(
    mysql_url: str, tables: str, found: Any
) -> None:
    stuck = MySqlQuery(
        ROWS, url=mysql_url, dbtable=tables, key="id", writeMode="increment", atomicity="chunk"
    )
    stuck.sink.check()
    rows = [row(1), row(2, 300), row(3)]
    with pytest.raises(RowRefused, match="id=2"):
        stuck.run(0, rows)
    stuck.restart(onBadRow="deadLetter", deadLetter=f"{tables}_bad")
    stuck.sink.check()
    stuck.run(0, rows)
    stored, letters = found()
    assert stored == {1: 1, 3: 1}
    assert len(letters) == 1


def test_row_that_is_larger_than_a_packet_is_put_aside_and_cut(
    private_mysql: Callable[..., MySqlProcess],
) -> None:
    server, packet = private_mysql("--max-allowed-packet=64K"), 65536
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    large = MySqlQuery(
        schema,
        url=server.url,
        dbtable="t",
        key="id",
        createTable="true",
        onBadRow="deadLetter",
        deadLetter="bad",
    )
    large.sink.check()
    large.run(0, [{"id": 1, "s": "x" * packet}, {"id": 2, "s": "y"}])
    with connect(server.url) as client, client.cursor() as mysql:
        mysql.execute("SELECT id, s FROM t")
        assert mysql.fetchall() == ((2, "y"),)
        mysql.execute("SELECT reason, LENGTH(row_data) FROM bad")
        ((reason, length),) = mysql.fetchall()
    assert re.match("larger than the server takes, and cut: .*id=1: it takes 65,5", reason)
    assert 0 <= length < packet
