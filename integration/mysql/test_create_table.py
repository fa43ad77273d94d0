"""A target that can't be what the query needs is not made, or not left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from pymysql.cursors import Cursor

from pyspark_mysql.write import preflight
from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe

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
    with pytest.raises(OptionError, match="can't make a column of the name"):
        query(mysql_url, table, name).sink.check()
    assert tables(mysql, table) == 0


@pytest.mark.parametrize("name", ["n" * 64, "é`.€ x", "\uffee"])
def test_odd_name_is_made_as_it_is(mysql: Cursor, mysql_url: str, table: str, name: str) -> None:
    made = query(mysql_url, table, name)
    made.sink.check()
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
        query(mysql_url, table, "n").sink.check()
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
            query.sink.check()
            query.run(0, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
            mysql.execute(f"DROP TABLE {dropped[gone]}")
        assert tables(mysql, table) == int(gone != "target")
    finally:
        mysql.execute(f"DROP DATABASE {unique}_own")


ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("op", pa.string())])


@pytest.fixture
def user(mysql: Cursor, mysql_url: str, unique: str) -> Iterator[str]:
    """The address of an empty database, as a user who may drop tables, but not do all else."""
    database = f"{unique}_db"
    mysql.execute(f"CREATE DATABASE {database}")
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    mysql.execute(f"GRANT CREATE, DROP, LOCK TABLES, SELECT, INSERT ON {database}.* TO {unique}")
    for own in ("ledger", "log"):
        mysql.execute(f"GRANT CREATE, UPDATE, DELETE ON {database}.sparkonce_{own} TO {unique}")
    yield mysql_url.replace("root@", f"{unique}:pw@").rpartition("/")[0] + f"/{database}"
    mysql.execute(f"DROP USER {unique}")
    mysql.execute(f"DROP DATABASE {database}")


def left(mysql: Cursor, unique: str) -> set[str]:
    """The tables of that database, but the connector's own."""
    mysql.execute(f"SHOW TABLES FROM {unique}_db")
    return {name for (name,) in mysql.fetchall() if not name.startswith("sparkonce_")}


@pytest.mark.parametrize("drops", [False, *slow_cases(True)])
def test_a_right_that_is_missing_leaves_no_table(
    mysql: Cursor, user: str, unique: str, drops: bool
) -> None:
    if not drops:
        mysql.execute(f"REVOKE DROP, LOCK TABLES ON {unique}_db.* FROM {unique}")
    query = MySqlQuery(ROWS, url=user, dbtable="t", key="id", createTable="true")
    with pytest.raises(StoreRefused, match="UPDATE command denied"):
        query.sink.check()
    assert left(mysql, unique) == set()
    mysql.execute(f"GRANT UPDATE ON {unique}_db.* TO {unique}")
    query.sink.store.session.pool.close_idle()  # such rights are read when one connects
    query.sink.check()
    assert left(mysql, unique) == {"t"}


def test_a_temporary_table_that_can_not_be_had_leaves_no_table(
    mysql: Cursor, user: str, unique: str
) -> None:
    mysql.execute(f"GRANT UPDATE, DELETE ON {unique}_db.* TO {unique}")
    options = {"key": "id", "opColumn": "op", "createTable": "true"}
    with pytest.raises(StoreRefused, match=r"trying a temporary table.*Access denied"):
        MySqlQuery(ROWS, url=user, dbtable="t", **options).sink.check()
    assert left(mysql, unique) == set()


def test_dead_letters_that_can_not_be_written_leave_no_table(
    mysql: Cursor, user: str, unique: str
) -> None:
    mysql.execute(f"CREATE TABLE {unique}_db.bad (sink TEXT) ENGINE=MyISAM")
    options = {"onBadRow": "deadLetter", "deadLetter": "bad", "createTable": "true"}
    with pytest.raises(StoreUnsafe, match="bad has the engine MyISAM"):
        MySqlQuery(ROWS, url=user, dbtable="t", **options).sink.check()
    assert left(mysql, unique) == {"bad"}


TOO_LARGE = {
    "row": (pa.schema([(f"c{i}", pa.string()) for i in range(900)]), {}, "Row size too large"),
    "columns": (pa.schema([(f"c{i}", pa.int8()) for i in range(1100)]), {}, "Too many columns"),
    "key": (
        pa.schema([(f"c{i}", pa.string()) for i in range(4)]),
        {"key": "c0,c1,c2,c3"},
        "key was too long",
    ),
    "scale": (pa.schema([("n", pa.decimal128(38, 38))]), {}, "Too big scale 38"),
}


@pytest.mark.parametrize("what", ["row", *slow_cases("columns", "key", "scale")])
def test_a_table_that_the_server_can_not_make_is_no_bad_row(
    mysql: Cursor, mysql_url: str, mysql_name: str, table: str, what: str
) -> None:
    if (what, mysql_name) == ("scale", "mariadb"):
        pytest.skip("MariaDB has columns of that scale")
    schema, options, said = TOO_LARGE[what]
    with pytest.raises(OptionError, match=f"createTable can't make table .*{said}") as refused:
        MySqlQuery(schema, url=mysql_url, dbtable=table, createTable="true", **options).sink.check()
    assert "cast or drop columns" in str(refused.value)
    assert tables(mysql, table) == 0


def test_columns_that_differ_in_case_are_told_so(mysql_url: str, table: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("ID", pa.int64())])
    with pytest.raises(OptionError, match="one name for the server, which knows no case"):
        MySqlQuery(schema, url=mysql_url, dbtable=table, createTable="true").sink.check()


def test_a_table_without_a_key_is_told_so_where_the_server_asks_for_one(
    private_mysql: Any, mysql_name: str
) -> None:
    if mysql_name != "mysql":
        pytest.skip("MySQL alone can ask for a key")
    url = private_mysql("--sql-require-primary-key=1").url
    schema = pa.schema([("id", pa.int64())])
    query = MySqlQuery(schema, url=url, dbtable="t", createTable="true")
    with pytest.raises(OptionError, match=r"sql_require_primary_key.*set option key"):
        query.sink.check()
    MySqlQuery(schema, url=url, dbtable="t", createTable="true", key="id").sink.check()


def test_more_columns_than_a_temporary_table_has_are_refused_before_any_row(
    mysql: Any, mysql_url: str, table: str
) -> None:
    names = [f"c{number}" for number in range(1016)]
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, {' INT, '.join(names)} INT)")
    schema = pa.schema([("id", pa.int32()), *((name, pa.int32()) for name in names)])
    schema = schema.append(pa.field("op", pa.string()))
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", opColumn="op")
    with pytest.raises(OptionError, match="columns more than the query"):
        query.sink.check()
