"""A target that can't be what the query needs is not made, or not left behind."""

from __future__ import annotations

import pyarrow as pa
import pytest
from integration.epochs import MySqlQuery
from pymysql.cursors import Cursor

from pyspark_mysql import preflight
from sparkonce.errors import OptionError

NAMES = ["\U0001f600", "a ", "n" * 65, "", "a\0"]


def tables(mysql: Cursor, table: str) -> int:
    return mysql.execute(f"SHOW TABLES LIKE '{table}'")


def query(url: str, table: str, name: str) -> MySqlQuery:
    schema = pa.schema([("id", pa.int64()), (name, pa.int64())])
    return MySqlQuery(schema, url=url, dbtable=table, createTable="true")


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_name_that_the_server_can_not_have_makes_no_table(
    mysql: Cursor, mysql_url: str, table: str, name: str
) -> None:
    with pytest.raises(OptionError, match="can't make a table or column of the name"):
        query(mysql_url, table, name).sink.store.check()
    assert tables(mysql, table) == 0


@pytest.mark.parametrize("name", ["n" * 64, "é`.€ x", "\uffee"])
def test_odd_name_is_made_as_it_is(mysql: Cursor, mysql_url: str, table: str, name: str) -> None:
    made = query(mysql_url, table, name)
    made.sink.store.check()
    made.run(0, [{"id": 1, name: 2}])
    mysql.execute(f"SELECT * FROM {table}")
    assert mysql.fetchall() == ((1, 2),)


@pytest.mark.parametrize("written", [False, True])
def test_made_table_that_does_not_fit_is_dropped_unless_someone_has_written_to_it(
    mysql: Cursor, mysql_url: str, table: str, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = preflight.target_ddl

    def other(*args: object, **names: object) -> str:
        """A server that makes something else."""
        rows = " AS SELECT 1 AS id" if written else ""
        return making(*args, **names).partition("(")[0] + "(id BIGINT)" + rows

    monkeypatch.setattr(preflight, "target_ddl", other)
    with pytest.raises(OptionError, match="'n' of the query is not in the table"):
        query(mysql_url, table, "n").sink.store.check()
    assert tables(mysql, table) == int(written)
    mysql.execute("SELECT 1")  # and nothing is locked


@pytest.mark.parametrize("gone", ["target", "ledger and log", "letters"])
def test_table_that_is_dropped_in_a_session_is_made_anew_by_the_next_query(
    mysql: Cursor, mysql_url: str, table: str, unique: str, gone: str
) -> None:
    """A process keeps the sink, whose options and schema are the same, and its connections."""
    mysql.execute(f"CREATE DATABASE {unique}_own")
    options = {"url": mysql_url, "dbtable": table, "createTable": "true", "key": "id"}
    options |= {"ledgerSchema": f"{unique}_own", "onBadRow": "deadLetter"}
    options |= {"deadLetter": f"{unique}_own.bad", "writeMode": "increment"}
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    dropped = {
        "target": table,
        "ledger and log": f"{unique}_own.sparkonce_ledger, {unique}_own.sparkonce_log",
        "letters": f"{unique}_own.bad",
    }
    try:
        for _ in range(2):
            query = MySqlQuery(schema, **options)
            query.sink.store.check()
            query.run(0, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
            mysql.execute(f"DROP TABLE {dropped[gone]}")
        assert tables(mysql, table) == int(gone != "target")
    finally:
        mysql.execute(f"DROP DATABASE {unique}_own")
