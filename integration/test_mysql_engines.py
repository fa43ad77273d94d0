"""Every table that a commit writes has transactions, or nothing is written at all."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from integration.epochs import MySqlQuery
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
        query.sink.store.check()
    mysql.execute(f"ALTER TABLE {other}.bad ENGINE=InnoDB")
    query.sink.store.check()


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
    options = {"ledgerSchema": other, "createTables": "false"}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=target, key="id", **options)
    with pytest.raises(StoreUnsafe, match=f"sparkonce_{own} has the engine MyISAM"):
        query.sink.store.check()


def test_a_table_that_keeps_its_history_is_written_like_any_other(
    mysql: Cursor, mysql_url: str, table: str, mysql_name: str
) -> None:
    if mysql_name != "mariadb":
        pytest.skip("only MariaDB has such tables")
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT) WITH SYSTEM VERSIONING")
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, key="id", writeMode="increment")
    query.sink.store.check()
    for epoch in range(3):
        query.run(epoch, [{"id": 1, "n": 1}, {"id": 2, "n": 1}])
    mysql.execute(f"SELECT * FROM {table} ORDER BY id")
    assert mysql.fetchall() == ((1, 3), (2, 3))
    mysql.execute(f"SELECT COUNT(*) FROM {table} FOR SYSTEM_TIME ALL")
    assert mysql.fetchall() == ((6,),)
