"""A row changes the stored row of its own key, or none, whatever other unique keys there are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow

Make = Callable[..., MySqlQuery]


class Key(NamedTuple):
    """A column of a key, and two values of it."""

    column: str
    kind: pa.DataType
    stored: Any
    other: Any


UTC = timezone.utc
KEYS = [
    Key("BIGINT AUTO_INCREMENT", pa.int64(), 7, 99),
    Key("BIGINT UNSIGNED", pa.decimal128(20, 0), 2**64 - 1, 0),
    Key(
        "TIMESTAMP NOT NULL",
        pa.timestamp("us", "UTC"),
        *(datetime(y, 1, 1, tzinfo=UTC) for y in (2020, 2021)),
    ),
    Key("DATE", pa.date32(), date(2020, 1, 1), date(2021, 1, 1)),
    Key("VARCHAR(20)", pa.string(), "a", "sparkonce_other_"),
    Key("VARBINARY(9)", pa.binary(), b"\0\xff", b"\0"),
    Key("ENUM('2', '1')", pa.string(), "2", "1"),
    Key("BIT(64)", pa.int64(), 2**62, 1),
]
RENEWED = "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"
WAYS: dict[str, dict[str, str]] = {
    "plain": {},
    "sequence": {"sequenceColumn": "n"},
    "increment": {"writeMode": "increment"},
    "keep": {"nulls": "keep"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", KEYS, ids=[key.column for key in KEYS])
def test_row_that_has_another_rows_unique_value_changes_nothing(
    make: Make, mysql: Cursor, stored: Any, table: str, key: Key, way: str
) -> None:
    """Left to itself, MySQL would update the row that has the e-mail, whatever its id."""
    schema = pa.schema([("id", key.kind), ("mail", pa.int64()), ("n", pa.int64())])
    definition = f"id {key.column} PRIMARY KEY, mail BIGINT NOT NULL UNIQUE, n BIGINT"
    query = make(schema, definition, key="id", **WAYS[way])
    query.run(0, [{"id": key.stored, "mail": 1, "n": 1}])
    before = stored()
    rows = [{"id": key.other, "mail": 1, "n": 5}, {"id": key.stored, "mail": 0, "n": 1}]
    with pytest.raises(BadRow, match="another stored row's value in another unique key"):
        query.run(1, rows[:1])
    assert stored() == before
    query.restart(onBadRow="deadLetter", deadLetter=f"{table}_bad")
    query.sink.check()
    query.run(1, rows[:1])
    query.run(2, rows[1:])
    mysql.execute(f"SELECT COUNT(*) FROM {table}_bad")
    assert mysql.fetchall() == ((1,),)
    mysql.execute(f"DROP TABLE {table}_bad")
    assert [row[:1] for row in stored()] == [row[:1] for row in before]


@pytest.mark.parametrize("way", WAYS)
def test_key_that_the_server_would_set_to_the_time_of_day_stays(
    make: Make, stored: Any, way: str
) -> None:
    """In MariaDB the first TIMESTAMP of a table may have been declared so unasked."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    query = make(
        schema, f"id INT, at {RENEWED}, n INT, PRIMARY KEY (id, at)", key="id,at", **WAYS[way]
    )
    at = datetime(2020, 1, 1, tzinfo=UTC)
    for epoch in range(2):
        query.run(epoch, [{"id": 1, "at": at, "n": n} for n in (epoch, 3)])
    assert [row[:2] for row in stored("id, YEAR(at)")] == [(1, 2020)]


@pytest.mark.parametrize("mode", ["''", "'STRICT_ALL_TABLES'"])
def test_another_rows_unique_value_is_told_from_what_a_trigger_signals(
    make: Make, mysql: Cursor, stored: Any, table: str, mode: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("mail", pa.int64())])
    query = make(schema, "id INT AUTO_INCREMENT PRIMARY KEY, mail INT UNIQUE", key="id")
    mysql.execute(f"SET sql_mode = {mode}")
    mysql.execute(
        f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW BEGIN"
        " IF NEW.mail = 9 THEN SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = 1292; END IF; END"
    )
    query.run(0, [{"id": 1, "mail": 1}])
    with pytest.raises(BadRow, match="row with id=2: it has another stored row's value"):
        query.run(1, [{"id": 2, "mail": 1}])
    query.restart()
    with pytest.raises(BadRow, match="row with id=2: 1292"):
        query.run(1, [{"id": 2, "mail": 9}])
    assert stored() == [(1, 1)]


@pytest.mark.parametrize("options", [{}, {"sequenceColumn": "n"}, {"writeMode": "increment"}])
def test_row_that_another_unique_key_takes_for_another_row_is_refused(
    make: Make, stored: Any, options: dict[str, str]
) -> None:
    """Left to itself, MySQL would update the row that has the e-mail, whatever its id."""
    if "writeMode" in options:
        schema = pa.schema([("id", pa.int64()), ("mail", pa.int32()), ("n", pa.int64())])
        mails, definition = (1, 2), "id BIGINT PRIMARY KEY, mail INT UNIQUE, n BIGINT"
    else:
        schema = pa.schema([("id", pa.int64()), ("mail", pa.string()), ("n", pa.int64())])
        mails, definition = ("a", "b"), "id BIGINT PRIMARY KEY, mail VARCHAR(9) UNIQUE, n BIGINT"
    query = make(schema, definition, key="id", **options)
    query.run(0, [{"id": 1, "mail": mails[0], "n": 1}, {"id": 2, "mail": mails[1], "n": 1}])
    before = stored()
    with pytest.raises(BadRow, match="another stored row's value in another unique key"):
        query.run(1, [{"id": 4, "mail": None, "n": 1}, {"id": 3, "mail": mails[0], "n": 5}])
    assert stored() == before
    query.restart()
    null = None if "writeMode" not in options else 0
    query.run(1, [{"id": 1, "mail": null, "n": 5}])
    assert [row[0] for row in stored()] == [1, 2]


def test_collision_is_explained_whatever_the_case_of_names(make: Make, stored: Any) -> None:
    schema = pa.schema([("ID", pa.int64()), ("E", pa.int64())])
    query = make(schema, "id BIGINT PRIMARY KEY, e BIGINT UNIQUE", key="ID")
    query.run(0, [{"ID": 1, "E": 10}])
    with pytest.raises(BadRow, match="another stored row's value in another unique key"):
        query.run(1, [{"ID": 2, "E": 10}])
    assert stored() == [(1, 10)]


def test_a_key_that_the_server_numbers_is_met_by_no_row(make: Any, stored: Any) -> None:
    schema = pa.schema([("code", pa.int64()), ("n", pa.int64())])
    table = "no INT AUTO_INCREMENT PRIMARY KEY, code BIGINT UNIQUE, n BIGINT"
    query = make(schema, table, key="code")
    query.run(0, [{"code": 1, "n": 1}, {"code": 2, "n": 2}])
    query.run(1, [{"code": 1, "n": 3}])
    assert stored("code, n") == [(1, 3), (2, 2)]


def test_a_versioned_table_has_the_key_of_its_rows(
    mysql: Cursor, mysql_url: str, mysql_name: str, table: str, stored: Any
) -> None:
    if mysql_name != "mariadb":
        pytest.skip("MariaDB alone has such tables")
    began, ended = (f"TIMESTAMP(6) GENERATED ALWAYS AS ROW {word}" for word in ("START", "END"))
    mysql.execute(
        f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT, a {began}, b {ended},"
        " PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING"
    )
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id")
    query.run(0, [{"id": 1, "n": 1}])
    query.run(1, [{"id": 1, "n": 2}])
    assert stored("id, n") == [(1, 2)]
