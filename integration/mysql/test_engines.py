"""Every table that a commit writes has transactions, or nothing is written at all."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from pymysql import OperationalError
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from sparkonce.errors import StoreUnsafe

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
BAD = (
    "sink TEXT, epoch INT, partition_id INT, target TEXT, reason TEXT, row_key TEXT,"
    " row_data TEXT, base64 TEXT"
)


@pytest.fixture
def target(mysql: Cursor, table: str) -> str:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    return table


@pytest.fixture
def other(mysql: Cursor, unique: str) -> Iterator[str]:
    """Another database."""
    mysql.execute(f"CREATE DATABASE {unique}_other")
    yield f"{unique}_other"
    mysql.execute(f"DROP DATABASE {unique}_other")


def test_dead_letters_that_a_repeated_transaction_would_double_are_refused(
    mysql: Cursor, mysql_url: str, target: str, other: str
) -> None:
    mysql.execute(f"CREATE TABLE {other}.bad ({BAD}) ENGINE=MyISAM")
    options = {"onBadRow": "deadLetter", "deadLetter": f"{other}.bad"}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=target, key="id", **options)
    with pytest.raises(StoreUnsafe, match=r"bad has the engine MyISAM"):
        query.sink.check()
    mysql.execute(f"ALTER TABLE {other}.bad ENGINE=InnoDB")
    query.sink.check()


@pytest.mark.parametrize("own", ["ledger", "log"])
def test_a_ledger_that_would_be_moved_without_its_rows_is_refused(
    mysql: Cursor, mysql_url: str, target: str, other: str, own: str
) -> None:
    """As a restored dump or an old default engine may have left it."""
    mysql.execute("SELECT DATABASE()")
    ((home,),) = mysql.fetchall()
    mysql.execute(f"USE {other}")
    for statement in MySqlConnector().ddl():
        mysql.execute(statement)
    mysql.execute(f"ALTER TABLE sparkonce_{own} ENGINE=MyISAM")
    mysql.execute(f"USE {home}")
    options = {"ledgerSchema": other}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=target, key="id", **options)
    with pytest.raises(StoreUnsafe, match=f"sparkonce_{own} has the engine MyISAM"):
        query.sink.check()


@pytest.mark.parametrize("atomicity", ["epoch", *slow_cases("chunk")])
@pytest.mark.parametrize("role", ["sparkonce_ledger", "sparkonce_log", "bad"])
def test_an_engine_without_transactions_is_refused_in_mid_query(
    mysql: Cursor, mysql_url: str, target: str, other: str, role: str, atomicity: str
) -> None:
    """Rows that are put aside would stay, and be counted, without those that are stored."""
    options = {"ledgerSchema": other, "onBadRow": "deadLetter", "deadLetter": f"{other}.bad"}
    options |= {"key": "id", "writeMode": "increment", "atomicity": atomicity}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=target, **options)
    query.sink.check()
    query.run(0, [{"id": 1, "n": 1}])
    mysql.execute(f"ALTER TABLE {other}.{role} ENGINE=MyISAM")
    with pytest.raises(StoreUnsafe, match=f"{role} has the engine MyISAM"):
        query.run(1, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
    mysql.execute(f"ALTER TABLE {other}.{role} ENGINE=InnoDB")
    query.sink.check()
    query.run(1, [{"id": 1, "n": 1}, {"id": None, "n": 1}])
    mysql.execute(f"SELECT n, (SELECT COUNT(*) FROM {other}.bad) FROM {target}")
    assert mysql.fetchall() == ((2, 1),)


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
    mysql_url: str, target: str, federated: str, role: str
) -> None:
    options = {"dbtable": federated}
    if role != "target":
        options = {"dbtable": target, "onBadRow": "deadLetter", "deadLetter": federated}
    query = MySqlQuery(COUNTER, url=mysql_url, **options)
    with pytest.raises(StoreUnsafe, match=f"{federated} has the engine FEDERATED.*XA"):
        query.sink.check()


def test_a_table_that_keeps_its_history_is_written_like_any_other(
    mysql: Cursor, mysql_url: str, table: str, mysql_name: str
) -> None:
    if mysql_name != "mariadb":
        pytest.skip("only MariaDB has such tables")
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING")
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, key="id", writeMode="increment")
    query.sink.check()
    for epoch in range(3):
        query.run(epoch, [{"id": 1, "n": 1}, {"id": 2, "n": 1}])
    mysql.execute(f"SELECT * FROM {table} ORDER BY id")
    assert mysql.fetchall() == ((1, 3), (2, 3))
    mysql.execute(f"SELECT COUNT(*) FROM {table} FOR SYSTEM_TIME ALL")
    assert mysql.fetchall() == ((6,),)
