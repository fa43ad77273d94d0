"""Deletes by key: they find the very rows that the same keys have written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow, OptionError

INT, STR, BIN = pa.int64(), pa.string(), pa.binary()
HALF = dt.datetime(2024, 1, 1, 0, 0, 0, 500_000)
Make = Callable[..., MySqlQuery]


@pytest.fixture
def create(mysql: Cursor, table: str) -> Callable[[str], None]:
    def create(definition: str) -> None:
        mysql.execute(f"CREATE TABLE {table} ({definition})")

    return create


@pytest.fixture
def query(mysql_url: str, table: str) -> Make:
    def query(columns: dict[str, pa.DataType], **options: str) -> MySqlQuery:
        schema = pa.schema(list(columns.items()))
        made = MySqlQuery(schema, url=mysql_url, dbtable=table, **options)
        made.sink.check()
        return made

    return query


@pytest.fixture
def stored(mysql: Cursor, table: str) -> Callable[[], list[tuple[Any, ...]]]:
    def stored() -> list[tuple[Any, ...]]:
        mysql.execute(f"SELECT * FROM {table} ORDER BY 1")
        return list(mysql.fetchall())

    return stored


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
    create: Any, query: Make, stored: Any, case: str, atomicity: str
) -> None:
    column, kind, values = KEYS[case]
    create(f"k {column} NOT NULL, j INT NOT NULL, PRIMARY KEY (k, j)")
    rows = [{"k": value, "j": 1} for value in values]
    query({"k": kind, "j": INT}, key="k,j", writeMode="upsert").run(0, rows)
    assert len(stored()) == len(values)
    given = {"writeMode": "delete", "atomicity": atomicity, "chunkRows": "1"}
    query({"k": kind, "j": INT}, key="k,j", **given).run(0, rows, rows)
    assert stored() == []


@pytest.mark.parametrize(
    "definition",
    ["k INT, INDEX (k)", "k INT", "k TEXT", "k VARCHAR(2000)", "k TEXT, INDEX (k(9))"],
)
def test_key_need_be_neither_unique_nor_indexed(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, definition: str
) -> None:
    create(definition)
    mysql.execute(f"INSERT INTO {table} (k) VALUES ('1'), ('1'), ('2')")
    kind = INT if "INT" in definition else STR
    keys = [1, 3] if "INT" in definition else ["1", "3"]
    deleting = query({"k": kind}, key="k", writeMode="delete")
    deleting.run(0, [{"k": key} for key in keys])
    assert [str(k) for (k,) in stored()] == ["2"]


@pytest.mark.parametrize(
    ("key", "said"),
    [("\U0001f600", "Incorrect string value"), ("x" * 10, "longer than the column")],
)
def test_key_that_its_column_cannot_hold_is_refused(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, key: str, said: str
) -> None:
    create("k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY")
    mysql.execute(f"INSERT INTO {table} VALUES ('?'), ('xxxxxxxxx')")
    with pytest.raises(BadRow, match=f"row with k=.*{said}"):
        query({"k": STR}, key="k", writeMode="delete").run(0, [{"k": "?"}, {"k": key}])
    assert len(stored()) == 2


@pytest.mark.parametrize(("rule", "size"), [("RESTRICT", 15), ("CASCADE", 3), ("SET NULL", 15)])
def test_rows_that_point_to_each_other_are_deleted_child_by_child(
    create: Any, query: Make, stored: Any, mysql: Cursor, table: str, rule: str, size: int
) -> None:
    """In any order where the foreign key takes the child along, or lets it go."""
    create(f"id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES {table} (id) ON DELETE {rule}")
    tree = ", ".join(f"({i}, {i // 2 or 'NULL'})" for i in range(1, size + 1))
    mysql.execute(f"INSERT INTO {table} VALUES {tree}, (90, NULL), (91, 90)")
    deleting = query({"id": INT}, key="id", writeMode="delete")
    ids = [{"id": i} for i in range(1, size + 1)]
    if rule == "RESTRICT":
        with pytest.raises(BadRow, match=r"row with id=1: .*foreign key"):
            deleting.run(0, ids)
        ids.reverse()
    deleting.run(0, ids)
    assert stored() == [(90, None), (91, 90)]


def test_column_of_a_name_that_the_connector_needs_is_refused(query: Make) -> None:
    with pytest.raises(OptionError, match="'Sparkonce_Row' has a name that the connector needs"):
        query({"Sparkonce_Row": INT}, key="Sparkonce_Row", writeMode="delete")
