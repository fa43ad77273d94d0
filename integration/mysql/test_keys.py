"""Deletes by key: they find the very rows that the same keys have written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from datetime import date, datetime, timezone
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table

from sparkonce.errors import BadRow, OptionError

INT, STR, BIN = pa.int64(), pa.string(), pa.binary()
HALF = dt.datetime(2024, 1, 1, 0, 0, 0, 500_000)


def query(table: Table, columns: dict[str, pa.DataType], **options: str) -> MySqlQuery:
    return table.checked(pa.schema(list(columns.items())), **options)


KEYS = {
    "latin1": ("VARCHAR(9) CHARACTER SET latin1", STR, ["é", "c"]),
    "utf16": ("VARCHAR(9) CHARACTER SET utf16", STR, ["a", "c"]),
    "another collation": ("VARCHAR(9) COLLATE utf8mb4_bin", STR, ["a", "A"]),
    "ENUM": ("ENUM('é','c') CHARACTER SET latin1", STR, ["é", "c"]),
    "BIT": ("BIT(16)", BIN, [b"\1\2", b"\0\5"]),
    "BINARY": ("BINARY(2)", BIN, [b"a\0", b"b "]),
    "fraction in DATETIME": ("DATETIME", pa.timestamp("us"), [HALF]),
    "fraction in TIMESTAMP": ("TIMESTAMP", pa.timestamp("us", "UTC"), [HALF]),
    "fraction in TIME": ("TIME", pa.time64("us"), [dt.time(1, 2, 3, 500_000)]),
}


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
@pytest.mark.parametrize("case", KEYS)
def test_rows_are_deleted_by_the_keys_they_were_written_with(
    table: Table, case: str, atomicity: str
) -> None:
    column, kind, values = KEYS[case]
    table.create(f"k {column} NOT NULL, j INT NOT NULL, PRIMARY KEY (k, j)")
    rows = [{"k": value, "j": 1} for value in values]
    query(table, {"k": kind, "j": INT}, key="k,j", writeMode="upsert").run(0, rows)
    assert len(table.stored()) == len(values)
    given = {"writeMode": "delete", "atomicity": atomicity, "chunkRows": "1"}
    query(table, {"k": kind, "j": INT}, key="k,j", **given).run(0, rows, rows)
    assert table.stored() == []


@pytest.mark.parametrize(
    "definition", ["k INT, INDEX (k)", "k INT", "k TEXT", "k VARCHAR(2000)", "k TEXT, INDEX (k(9))"]
)
def test_key_need_be_neither_unique_nor_indexed(table: Table, definition: str) -> None:
    table.create(definition)
    table.run(f"INSERT INTO {table} (k) VALUES ('1'), ('1'), ('2')")
    kind = INT if "INT" in definition else STR
    keys = [1, 3] if "INT" in definition else ["1", "3"]
    deleting = query(table, {"k": kind}, key="k", writeMode="delete")
    deleting.run(0, [{"k": key} for key in keys])
    assert [str(k) for (k,) in table.stored()] == ["2"]


@pytest.mark.parametrize(
    ("key", "said"),
    [("\U0001f600", "Incorrect string value"), ("x" * 10, "longer than the column")],
)
def test_key_that_its_column_cannot_hold_is_refused(table: Table, key: str, said: str) -> None:
    table.create("k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY")
    table.run(f"INSERT INTO {table} VALUES ('?'), ('xxxxxxxxx')")
    with pytest.raises(BadRow, match=f"row with k=.*{said}"):
        query(table, {"k": STR}, key="k", writeMode="delete").run(0, [{"k": "?"}, {"k": key}])
    assert len(table.stored()) == 2


@pytest.mark.parametrize(("rule", "size"), [("RESTRICT", 15), ("CASCADE", 3), ("SET NULL", 15)])
def test_rows_that_point_to_each_other_are_deleted_child_by_child(
    table: Table, rule: str, size: int
) -> None:
    """In any order where the foreign key takes the child along, or lets it go."""
    table.create(
        f"id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {table} (id) ON DELETE {rule}"
    )
    tree = ", ".join(f"({i}, {i // 2 or 'NULL'})" for i in range(1, size + 1))
    table.run(f"INSERT INTO {table} VALUES {tree}, (90, NULL), (91, 90)")
    deleting = query(table, {"id": INT}, key="id", writeMode="delete")
    ids = [{"id": i} for i in range(1, size + 1)]
    if rule == "RESTRICT":
        with pytest.raises(BadRow, match=r"row with id=1: .*foreign key"):
            deleting.run(0, ids)
        ids.reverse()
    deleting.run(0, ids)
    assert table.stored() == [(90, None), (91, 90)]


def test_column_of_a_name_that_the_connector_needs_is_refused(table: Table) -> None:
    with pytest.raises(OptionError, match="'Sparkonce_Row' has a name that the connector needs"):
        query(table, {"Sparkonce_Row": INT}, key="Sparkonce_Row", writeMode="delete")


UUID = "123e4567-e89b-12d3-a456-426614174000"
MARIADB = ("UUID", "INET4", "INET6")


class Spelled(NamedTuple):
    """A column, a value that it stores as it is, and others that it would store as the same."""

    column: str
    kind: pa.DataType
    value: Any
    others: tuple[Any, ...]


SPELLED = [
    Spelled("BINARY(4)", BIN, b"ab\0\0", (b"ab", b"ab\0")),
    Spelled("BIT(12)", BIN, b"\0\1", (b"\1", b"\0\0\1")),
    Spelled(
        "UUID",
        STR,
        UUID,
        (UUID.upper(), UUID.replace("-", ""), f"123e-{UUID[4:].replace('-', '')}"),
    ),
    Spelled("INET4", STR, "10.2.30.255", ("010.2.30.255", "10.02.30.255")),
]

SPELLED_NAMES = [key.column for key in SPELLED]
SPELLED_MODES = ["increment", *slow_cases("upsert", "update", "delete", "folded")]
Has = Callable[[str], None]


def keyed(table: Table, kind: pa.DataType, mode: str) -> MySqlQuery:
    options = {"sequenceColumn": "n"} if mode == "folded" else {"writeMode": mode}
    schema = pa.schema([("k", kind), ("n", pa.int64())])
    return table.checked(schema, key="k", **options)


@pytest.fixture
def has(mysql_name: str) -> Has:
    """Skips the test where the server has no such column."""

    def has(column: str) -> None:
        if column in MARIADB and mysql_name != "mariadb":
            pytest.skip("only MariaDB has columns of this type")

    return has


@pytest.mark.parametrize("mode", SPELLED_MODES)
@pytest.mark.parametrize("key", SPELLED, ids=SPELLED_NAMES)
def test_a_key_that_would_be_stored_as_another_one_is_a_bad_row(
    table: Table, has: Has, key: Spelled, mode: str
) -> None:
    has(key.column)
    table.create(f"k {key.column} PRIMARY KEY, n BIGINT")
    keyed(table, key.kind, "upsert").run(0, [{"k": key.value, "n": 1}])
    made = keyed(table, key.kind, mode)
    for other in key.others:
        with pytest.raises(BadRow, match=r"column 'k' can't be .*several keys would become one"):
            made.run(0, [{"k": other, "n": 2}])
    assert table.rows("n") == ((1,),)
    made.run(0, [{"k": key.value, "n": 2}])
    done = {"increment": ((3,),), "delete": ()}
    assert table.rows("n") == done.get(mode, ((2,),))


@pytest.mark.parametrize("key", SPELLED, ids=SPELLED_NAMES)
def test_a_value_that_is_no_key_is_stored_as_the_column_has_it(
    table: Table, has: Has, key: Spelled
) -> None:
    has(key.column)
    table.create(f"id INT PRIMARY KEY, v {key.column}")
    schema = pa.schema([("id", pa.int32()), ("v", key.kind)])
    made = table.checked(schema, key="id")
    values = [key.value, *key.others, None]
    made.run(0, [{"id": at, "v": value} for at, value in enumerate(values)])
    assert [value for (value,) in table.rows("v", "id")] == [key.value] * (len(values) - 1) + [None]


def test_a_number_is_a_key_of_bits(table: Table) -> None:
    table.create("k BIT(12) PRIMARY KEY, n BIGINT")
    made = keyed(table, pa.int64(), "increment")
    made.run(0, [{"k": 1, "n": 1}, {"k": 300, "n": 1}, {"k": 1, "n": 1}])
    assert table.rows("k + 0, n", "k") == ((1, 2), (300, 1))


@pytest.mark.parametrize("mode", SPELLED_MODES)
@pytest.mark.parametrize("column", ["INET6", "SET('a','b')"])
def test_a_key_column_whose_values_have_many_spellings_is_refused_at_start(
    table: Table, has: Has, column: str, mode: str
) -> None:
    has(column)
    table.create(f"k {column} PRIMARY KEY, n BIGINT")
    with pytest.raises(OptionError, match=r"Option key names column 'k'.*several spellings"):
        keyed(table, STR, mode)


class UniqueKey(NamedTuple):
    """A column of a key, and two values of it."""

    column: str
    kind: pa.DataType
    stored: Any
    other: Any


UTC = timezone.utc


UNIQUE_KEYS = [
    UniqueKey("BIGINT AUTO_INCREMENT", pa.int64(), 7, 99),
    UniqueKey("BIGINT UNSIGNED", pa.decimal128(20, 0), 2**64 - 1, 0),
    UniqueKey(
        "TIMESTAMP NOT NULL",
        pa.timestamp("us", "UTC"),
        *(datetime(y, 1, 1, tzinfo=UTC) for y in (2020, 2021)),
    ),
    UniqueKey("DATE", pa.date32(), date(2020, 1, 1), date(2021, 1, 1)),
    UniqueKey("VARCHAR(20)", pa.string(), "a", "sparkonce_other_"),
    UniqueKey("VARBINARY(9)", pa.binary(), b"\0\xff", b"\0"),
    UniqueKey("ENUM('2', '1')", pa.string(), "2", "1"),
    UniqueKey("BIT(64)", pa.int64(), 2**62, 1),
]

RENEWED = "TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"


UPSERTS: dict[str, dict[str, str]] = {
    "plain": {},
    "sequence": {"sequenceColumn": "n"},
    "increment": {"writeMode": "increment"},
    "keep": {"nulls": "keep"},
}


@pytest.mark.parametrize("way", UPSERTS)
@pytest.mark.parametrize("key", UNIQUE_KEYS, ids=[key.column for key in UNIQUE_KEYS])
def test_row_that_has_another_rows_unique_value_changes_nothing(
    table: Table, key: UniqueKey, way: str
) -> None:
    """Left to itself, MySQL would update the row that has the e-mail, whatever its id."""
    schema = pa.schema([("id", key.kind), ("mail", pa.int64()), ("n", pa.int64())])
    definition = f"id {key.column} PRIMARY KEY, mail BIGINT NOT NULL UNIQUE, n BIGINT"
    query = table.make(schema, definition, key="id", **UPSERTS[way])
    query.run(0, [{"id": key.stored, "mail": 1, "n": 1}])
    before = table.stored()
    rows = [{"id": key.other, "mail": 1, "n": 5}, {"id": key.stored, "mail": 0, "n": 1}]
    with pytest.raises(BadRow, match="another stored row has its value in another unique key"):
        query.run(1, rows[:1])
    assert table.stored() == before
    query.restart(onBadRow="deadLetter", deadLetter=f"{table}_bad")
    query.sink.check()
    query.run(1, rows[:1])
    query.run(2, rows[1:])
    assert table.count("_bad") == 1
    assert [row[:1] for row in table.stored()] == [row[:1] for row in before]


@pytest.mark.parametrize("way", UPSERTS)
def test_key_that_the_server_would_set_to_the_time_of_day_stays(table: Table, way: str) -> None:
    """In MariaDB the first TIMESTAMP of a table may have been declared so unasked."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    query = table.make(
        schema, f"id INT, at {RENEWED}, n INT, PRIMARY KEY (id, at)", key="id,at", **UPSERTS[way]
    )
    at = datetime(2020, 1, 1, tzinfo=UTC)
    for epoch in range(2):
        query.run(epoch, [{"id": 1, "at": at, "n": n} for n in (epoch, 3)])
    assert [row[:2] for row in table.stored("id, YEAR(at)")] == [(1, 2020)]


@pytest.mark.parametrize("mode", ["''", "'STRICT_ALL_TABLES'"])
def test_another_rows_unique_value_is_told_from_what_a_trigger_signals(
    table: Table, mode: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("mail", pa.int64())])
    query = table.make(schema, "id INT AUTO_INCREMENT PRIMARY KEY, mail INT UNIQUE", key="id")
    table.run(f"SET sql_mode = {mode}")
    table.run(
        f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW BEGIN"
        " IF NEW.mail = 9 THEN SIGNAL SQLSTATE '22007' SET MYSQL_ERRNO = 1292; END IF; END"
    )
    query.run(0, [{"id": 1, "mail": 1}])
    with pytest.raises(BadRow, match="row with id=2: another stored row has its value"):
        query.run(1, [{"id": 2, "mail": 1}])
    query.restart()
    with pytest.raises(BadRow, match="row with id=2: 1292"):
        query.run(1, [{"id": 2, "mail": 9}])
    assert table.stored() == [(1, 1)]


def test_collision_is_explained_whatever_the_case_of_names(table: Table) -> None:
    schema = pa.schema([("ID", pa.int64()), ("E", pa.int64())])
    query = table.make(schema, "id BIGINT PRIMARY KEY, e BIGINT UNIQUE", key="ID")
    query.run(0, [{"ID": 1, "E": 10}])
    with pytest.raises(BadRow, match="another stored row has its value in another unique key"):
        query.run(1, [{"ID": 2, "E": 10}])
    assert table.stored() == [(1, 10)]


def test_a_key_that_the_server_numbers_is_met_by_no_row(table: Table) -> None:
    schema = pa.schema([("code", pa.int64()), ("n", pa.int64())])
    definition = "no INT AUTO_INCREMENT PRIMARY KEY, code BIGINT UNIQUE, n BIGINT"
    query = table.make(schema, definition, key="code")
    query.run(0, [{"code": 1, "n": 1}, {"code": 2, "n": 2}])
    query.run(1, [{"code": 1, "n": 3}])
    assert table.stored("code, n") == [(1, 3), (2, 2)]


def test_a_versioned_table_has_the_key_of_its_rows(mysql_name: str, table: Table) -> None:
    if mysql_name != "mariadb":
        pytest.skip("MariaDB alone has such tables")
    began, ended = (f"TIMESTAMP(6) GENERATED ALWAYS AS ROW {word}" for word in ("START", "END"))
    table.run(
        f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT, a {began}, b {ended},"
        " PERIOD FOR SYSTEM_TIME (a, b)) WITH SYSTEM VERSIONING"
    )
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    query = table.query(schema, key="id")
    query.run(0, [{"id": 1, "n": 1}])
    query.run(1, [{"id": 1, "n": 2}])
    assert table.stored("id, n") == [(1, 2)]
