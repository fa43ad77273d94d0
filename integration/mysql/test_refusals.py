"""Rows that the server refuses by whatever number are named, and may go aside."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow, SparkonceError, StoreRefused, StoreUnreachable

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
UNLUCKY = (
    "IF NEW.n = 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 30001, MESSAGE_TEXT = 'unlucky';"
    " END IF"
)
REFUSED = {
    "a generated column divides by zero": ("n INT, g INT AS (10 / n) STORED", None),
    "a CHECK divides by zero": ("n INT, CHECK (10 / n > 0)", None),
    "a trigger signals a number of its own": ("n INT", UNLUCKY),
}


@pytest.fixture
def aside(mysql: Cursor, unique: str) -> Iterator[str]:
    yield f"{unique}_bad"
    mysql.execute(f"DROP TABLE {unique}_bad")


@pytest.mark.parametrize("case", REFUSED)
def test_row_that_the_table_itself_refuses_is_named_and_may_go_aside(
    mysql: Cursor, mysql_url: str, table: str, aside: str, case: str
) -> None:
    definition, trigger = REFUSED[case]
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, {definition})")
    if trigger:
        each = f"BEFORE INSERT ON {table} FOR EACH ROW BEGIN {trigger}; END"
        mysql.execute(f"CREATE TRIGGER {table}_t {each}")
    rows = [{"id": 1, "n": 0}, {"id": 2, "n": 1}]
    options = {"url": mysql_url, "dbtable": table, "key": "id"}
    with pytest.raises(BadRow, match="id=1"):
        MySqlQuery(COUNTER, **options).run(0, rows)
    query = MySqlQuery(COUNTER, onBadRow="deadLetter", deadLetter=aside, **options)
    query.sink.check()
    query.run(0, rows)
    mysql.execute(f"SELECT id FROM {table}")
    assert mysql.fetchall() == ((2,),)
    mysql.execute(f"SELECT COUNT(*) FROM {aside}")
    assert mysql.fetchall() == ((1,),)


ALL_BARRED = "SIGNAL SQLSTATE '{}' SET MYSQL_ERRNO = {}, MESSAGE_TEXT = {}"


def barred(mysql: Cursor, table: str, signal: str) -> None:
    """Make a table whose trigger refuses rows."""
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)")
    declared = "DECLARE said TEXT DEFAULT CONCAT('not ', NEW.id);"
    each = f"BEFORE INSERT ON {table} FOR EACH ROW BEGIN {declared} {signal}; END"
    mysql.execute(f"CREATE TRIGGER {table}_t {each}")


def aside_of(mysql: Cursor, aside: str) -> int:
    mysql.execute(f"SELECT COUNT(*) FROM {aside}")
    ((count,),) = mysql.fetchall()
    return int(count)


@pytest.mark.parametrize(
    ("number", "error"), [(9001, StoreUnreachable), (9999, StoreRefused), (1999, StoreRefused)]
)
def test_answer_that_names_no_row_puts_none_aside(
    mysql: Cursor, mysql_url: str, table: str, aside: str, number: int, error: type[SparkonceError]
) -> None:
    """ProxySQL, for one, has numbers of its own."""
    barred(mysql, table, ALL_BARRED.format("HY000", number, "'no server'"))
    options = {"url": mysql_url, "dbtable": table, "onBadRow": "deadLetter", "deadLetter": aside}
    query = MySqlQuery(COUNTER, **options)
    query.sink.check()
    with pytest.raises(error, match=f"{number} no server"):
        query.run(0, [{"id": 1, "n": 1}])
    assert aside_of(mysql, aside) == 0


@pytest.mark.parametrize("index", ["UNSIGNED ARRAY", "CHAR(3) ARRAY"])
def test_row_that_an_index_over_json_refuses_is_named(
    mysql: Cursor, mysql_url: str, table: str, mysql_name: str, index: str
) -> None:
    if mysql_name != "mysql":
        pytest.skip("MariaDB has no such indexes")
    indexed = f"INDEX f ((CAST(j->'$.a' AS {index})))"
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, j JSON, {indexed})")
    schema = pa.schema([("id", pa.int64()), ("j", pa.string())])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id")
    with pytest.raises(BadRow, match="id=1"):
        query.run(0, [{"id": 1, "j": '{"a": ["xxxx"]}'}])
