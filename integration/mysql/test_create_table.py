"""A target that can't be what the query needs is not made, or not left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table
from pymysql import OperationalError
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.write import creation
from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe

NAMES = ["\U0001f600", "a ", "n" * 65, "", "a\0"]


def tables(table: Table) -> int:
    return len(table.run(f"SHOW TABLES LIKE '{table}'"))


def query(table: Table, name: str) -> MySqlQuery:
    schema = pa.schema([("id", pa.int64()), (name, pa.int64())])
    return table.query(schema, createTable="true")


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_name_that_the_server_can_not_have_makes_no_table(table: Table, name: str) -> None:
    with pytest.raises(OptionError, match="can't create a column named"):
        query(table, name).sink.check()
    assert tables(table) == 0


@pytest.mark.parametrize("name", ["n" * 64, "é`.€ x", "\uffee"])
def test_odd_name_is_made_as_it_is(table: Table, name: str) -> None:
    made = query(table, name)
    made.sink.check()
    made.run(0, [{"id": 1, name: 2}])
    assert table.rows() == ((1, 2),)


@pytest.mark.parametrize("written", [False, True])
def test_made_table_that_does_not_fit_is_dropped_unless_someone_has_written_to_it(
    table: Table, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    making = creation.target_ddl

    def other(*args: object, **names: object) -> str:
        """A server that makes something else."""
        rows = " AS SELECT 1 AS id" if written else ""
        return making(*args, **names).partition("(")[0] + "(id BIGINT)" + rows

    monkeypatch.setattr(creation, "target_ddl", other)
    with pytest.raises(OptionError, match="'n' of the query is not in the table"):
        query(table, "n").sink.check()
    assert tables(table) == int(written)
    table.run("SELECT 1")  # and nothing is locked


@pytest.mark.parametrize("gone", ["target", "ledger and log", "letters"])
def test_table_that_is_dropped_in_a_session_is_made_anew_by_the_next_query(
    table: Table, unique: str, gone: str
) -> None:
    """A process keeps the sink, whose options and schema are the same, and its connections."""
    table.run(f"CREATE DATABASE {unique}_own")
    options = {"url": table.url, "dbtable": table, "createTable": "true", "key": "id"}
    options |= {"ledgerSchema": f"{unique}_own", "onBadRow": "deadLetter"}
    options |= {"deadLetter": f"{unique}_own.bad", "writeMode": "increment"}
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    dropped = {
        "target": table,
        "ledger and log": f"{unique}_own.sparkonce_ledger, {unique}_own.sparkonce_log",
        "letters": f"{unique}_own.bad",
    }
    for _ in range(2):
        query = MySqlQuery(schema, **options)
        query.sink.check()
        query.run(0, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
        table.run(f"DROP TABLE {dropped[gone]}")
    assert tables(table) == int(gone != "target")


ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("op", pa.string())])


@pytest.fixture
def user(mysql: Cursor, mysql_url: str, unique: str) -> str:
    """The address of an empty database, as a user who may drop tables, but not do all else."""
    database = f"{unique}_db"
    mysql.execute(f"CREATE DATABASE {database}")
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    mysql.execute(f"GRANT CREATE, DROP, LOCK TABLES, SELECT, INSERT ON {database}.* TO {unique}")
    for own in ("ledger", "log"):
        mysql.execute(f"GRANT CREATE, UPDATE, DELETE ON {database}.sparkonce_{own} TO {unique}")
    return mysql_url.replace("root@", f"{unique}:pw@").rpartition("/")[0] + f"/{database}"


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
    mysql_name: str, table: Table, what: str
) -> None:
    if (what, mysql_name) == ("scale", "mariadb"):
        pytest.skip("MariaDB has columns of that scale")
    schema, options, said = TOO_LARGE[what]
    with pytest.raises(OptionError, match=f"createTable can't create table .*{said}") as refused:
        table.query(schema, createTable="true", **options).sink.check()
    assert "cast or drop columns" in str(refused.value)
    assert tables(table) == 0


def test_columns_that_differ_in_case_are_told_so(table: Table) -> None:
    schema = pa.schema([("id", pa.int64()), ("ID", pa.int64())])
    with pytest.raises(OptionError, match="the same name for the server, which ignores case"):
        table.query(schema, createTable="true").sink.check()


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


def test_more_columns_than_a_temporary_table_has_are_refused_before_any_row(table: Table) -> None:
    names = [f"c{number}" for number in range(1016)]
    table.create(f"id INT PRIMARY KEY, {' INT, '.join(names)} INT")
    schema = pa.schema([("id", pa.int32()), *((name, pa.int32()) for name in names)])
    schema = schema.append(pa.field("op", pa.string()))
    query = table.query(schema, key="id", opColumn="op")
    with pytest.raises(OptionError, match="columns more than the query"):
        query.sink.check()


BAD = (
    "sink TEXT, epoch INT, partition_id INT, target TEXT, reason TEXT, row_key TEXT,"
    " row_data TEXT, base64 TEXT"
)


@pytest.fixture
def target(table: Table) -> str:
    table.create("id BIGINT PRIMARY KEY, n BIGINT")
    return table


@pytest.fixture
def other(mysql: Cursor, unique: str) -> str:
    """Another database."""
    mysql.execute(f"CREATE DATABASE {unique}_other")
    return f"{unique}_other"


@pytest.mark.parametrize("own", ["ledger", "log"])
def test_a_ledger_that_would_be_moved_without_its_rows_is_refused(
    target: Table, other: str, own: str
) -> None:
    """As a restored dump or an old default engine may have left it."""
    ((home,),) = target.run("SELECT DATABASE()")
    target.run(f"USE {other}")
    for statement in MySqlConnector().ddl():
        target.run(statement)
    target.run(f"ALTER TABLE sparkonce_{own} ENGINE=MyISAM", f"USE {home}")
    options = {"ledgerSchema": other}
    query = target.query(COUNTER, key="id", **options)
    with pytest.raises(StoreUnsafe, match=f"sparkonce_{own} has the engine MyISAM"):
        query.sink.check()


@pytest.mark.parametrize("atomicity", ["epoch", *slow_cases("chunk")])
@pytest.mark.parametrize("role", ["sparkonce_ledger", "sparkonce_log", "bad"])
def test_an_engine_without_transactions_is_refused_in_mid_query(
    target: Table, other: str, role: str, atomicity: str
) -> None:
    """Rows that are put aside would stay, and be counted, without those that are stored."""
    options = {"ledgerSchema": other, "onBadRow": "deadLetter", "deadLetter": f"{other}.bad"}
    options |= {"key": "id", "writeMode": "increment", "atomicity": atomicity}
    query = target.checked(COUNTER, **options)
    query.run(0, [{"id": 1, "n": 1}])
    target.run(f"ALTER TABLE {other}.{role} ENGINE=MyISAM")
    with pytest.raises(StoreUnsafe, match=f"{role} has the engine MyISAM"):
        query.run(1, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
    target.run(f"ALTER TABLE {other}.{role} ENGINE=InnoDB")
    query.sink.check()
    query.run(1, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
    assert target.rows(f"n, (SELECT COUNT(*) FROM {other}.bad)") == ((2, 1),)


@pytest.fixture
def federated(mysql: Cursor, mysql_url: str, mysql_name: str, unique: str) -> Iterator[str]:
    """A table that says that it has transactions, and forwards them to one of this server."""
    if mysql_name != "mariadb":
        pytest.skip("MySQL has this engine only if it is started so")
    try:
        mysql.execute("INSTALL SONAME 'ha_federatedx'")
    except OperationalError as error:
        pytest.skip(f"the server has no such engine: {error}")
    mysql.execute(f"CREATE TABLE {unique}_f ({BAD}, id BIGINT, n BIGINT)")
    where = f"ENGINE=FEDERATED CONNECTION='{mysql_url}/{unique}_f'"
    mysql.execute(f"CREATE TABLE {unique}_r {where}")
    yield f"{unique}_r"
    mysql.execute(f"DROP TABLE {unique}_r, {unique}_f")
    mysql.execute("UNINSTALL SONAME 'ha_federatedx'")


@pytest.mark.parametrize("role", ["target", "dead letters"])
def test_a_table_that_commits_apart_from_the_ledger_is_refused(
    target: Table, federated: str, role: str
) -> None:
    options = {"dbtable": federated}
    if role != "target":
        options = {"dbtable": target, "onBadRow": "deadLetter", "deadLetter": federated}
    query = MySqlQuery(COUNTER, url=target.url, **options)
    with pytest.raises(StoreUnsafe, match=f"{federated} has the engine FEDERATED.*XA"):
        query.sink.check()


def test_a_table_that_keeps_its_history_is_written_like_any_other(
    table: Table, mysql_name: str
) -> None:
    if mysql_name != "mariadb":
        pytest.skip("only MariaDB has such tables")
    table.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING")
    query = table.checked(COUNTER, key="id", writeMode="increment")
    for epoch in range(3):
        query.run(epoch, [{"id": 1, "n": 1}, {"id": 2, "n": 1}])
    assert table.rows("*", "id") == ((1, 3), (2, 3))
    assert table.run(f"SELECT COUNT(*) FROM {table} FOR SYSTEM_TIME ALL") == ((6,),)
