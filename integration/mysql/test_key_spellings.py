"""Keys that Spark tells apart are not made one by the type of their column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow, OptionError

STR, BIN = pa.string(), pa.binary()
UUID = "123e4567-e89b-12d3-a456-426614174000"
MARIADB = ("UUID", "INET4", "INET6")


class Key(NamedTuple):
    """A column, a value that it stores as it is, and others that it would store as the same."""

    column: str
    kind: pa.DataType
    value: Any
    others: tuple[Any, ...]


KEYS = [
    Key("BINARY(4)", BIN, b"ab\0\0", (b"ab", b"ab\0")),
    Key("BIT(12)", BIN, b"\0\1", (b"\1", b"\0\0\1")),
    Key(
        "UUID",
        STR,
        UUID,
        (UUID.upper(), UUID.replace("-", ""), f"123e-{UUID[4:].replace('-', '')}"),
    ),
    Key("INET4", STR, "10.2.30.255", ("010.2.30.255", "10.02.30.255")),
]
NAMES = [key.column for key in KEYS]
MODES = ["increment", *slow_cases("upsert", "delete", "folded")]
Has = Callable[[str], None]


def query(url: str, table: str, kind: pa.DataType, mode: str) -> MySqlQuery:
    options = {"sequenceColumn": "n"} if mode == "folded" else {"writeMode": mode}
    schema = pa.schema([("k", kind), ("n", pa.int64())])
    made = MySqlQuery(schema, url=url, dbtable=table, key="k", **options)
    made.sink.check()
    return made


@pytest.fixture
def has(mysql_name: str) -> Has:
    """Skips the test where the server has no such column."""

    def has(column: str) -> None:
        if column in MARIADB and mysql_name != "mariadb":
            pytest.skip("only MariaDB has columns of this type")

    return has


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("key", KEYS, ids=NAMES)
def test_a_key_that_would_be_stored_as_another_one_is_a_bad_row(
    mysql: Cursor, mysql_url: str, table: str, has: Has, key: Key, mode: str
) -> None:
    has(key.column)
    mysql.execute(f"CREATE TABLE {table} (k {key.column} PRIMARY KEY, n BIGINT)")
    query(mysql_url, table, key.kind, "upsert").run(0, [{"k": key.value, "n": 1}])
    made = query(mysql_url, table, key.kind, mode)
    for other in key.others:
        with pytest.raises(BadRow, match=r"column 'k' can't be .*one key of several"):
            made.run(0, [{"k": other, "n": 2}])
    mysql.execute(f"SELECT n FROM {table}")
    assert mysql.fetchall() == ((1,),)
    made.run(0, [{"k": key.value, "n": 2}])
    mysql.execute(f"SELECT n FROM {table}")
    done = {"increment": ((3,),), "upsert": ((2,),), "folded": ((2,),), "delete": ()}
    assert mysql.fetchall() == done[mode]


@pytest.mark.parametrize("key", KEYS, ids=NAMES)
def test_a_value_that_is_no_key_is_stored_as_the_column_has_it(
    mysql: Cursor, mysql_url: str, table: str, has: Has, key: Key
) -> None:
    has(key.column)
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {key.column})")
    schema = pa.schema([("id", pa.int32()), ("v", key.kind)])
    made = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id")
    made.sink.check()
    values = [key.value, *key.others, None]
    made.run(0, [{"id": at, "v": value} for at, value in enumerate(values)])
    mysql.execute(f"SELECT v FROM {table} ORDER BY id")
    assert [value for (value,) in mysql.fetchall()] == [key.value] * (len(values) - 1) + [None]


def test_a_number_is_a_key_of_bits(mysql: Cursor, mysql_url: str, table: str) -> None:
    mysql.execute(f"CREATE TABLE {table} (k BIT(12) PRIMARY KEY, n BIGINT)")
    made = query(mysql_url, table, pa.int64(), "increment")
    made.run(0, [{"k": 1, "n": 1}, {"k": 300, "n": 1}, {"k": 1, "n": 1}])
    mysql.execute(f"SELECT k + 0, n FROM {table} ORDER BY k")
    assert mysql.fetchall() == ((1, 2), (300, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("column", ["INET6", "SET('a','b')"])
def test_a_key_column_whose_values_have_many_spellings_is_refused_at_start(
    mysql: Cursor, mysql_url: str, table: str, has: Has, column: str, mode: str
) -> None:
    has(column)
    mysql.execute(f"CREATE TABLE {table} (k {column} PRIMARY KEY, n BIGINT)")
    with pytest.raises(OptionError, match=r"Option key names column 'k'.*several spellings"):
        query(mysql_url, table, STR, mode)
