"""What the changes of a key in one epoch come to: as if they were made one by one."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import count, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from pymysql.cursors import Cursor

from pyspark_mysql.write import gathering
from sparkonce.errors import OptionError

SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "op", "v", "w")] + [("at", pa.int64())])
COLUMNS = "v VARCHAR(9), w VARCHAR(9), at BIGINT, extra INT DEFAULT 7"
DEFINITION = (
    f"id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, {COLUMNS}"
)
EXACT = f"id VARBINARY(9) PRIMARY KEY, {COLUMNS}"
VALUES = st.one_of(st.none(), st.sampled_from("xyz"))
CHANGE = st.tuples(
    st.sampled_from("aAb"), st.sampled_from("IUD"), VALUES, VALUES, st.integers(0, 3)
)
EPOCHS = st.lists(st.lists(CHANGE, max_size=10), min_size=1, max_size=3)
Stored = dict[str, tuple[Any, ...]]
WAYS = [*product((True, False), (DEFINITION,)), (True, EXACT)]
DELETED = st.lists(st.sampled_from("aAb"), max_size=2)
_numbers = count()


@pytest.fixture(scope="session", params=["mysql", *slow_cases("mariadb")])
def mysql_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def rows(mysql: Cursor, table: str) -> Callable[..., list[tuple[Any, ...]]]:
    def rows(columns: str = "*") -> list[tuple[Any, ...]]:
        mysql.execute(f"SELECT {columns} FROM {table} ORDER BY 1")
        return list(mysql.fetchall())

    return rows


def one_by_one(
    stored: Stored, epoch: list[Any], equal: Callable[[str], str], *, sorts: bool
) -> Stored:
    """What an epoch should make of the rows of the target.

    A row that is new in the end is spelled as the last one of its key.
    """
    kept = {key: spelled for key, (spelled, *_) in stored.items()}
    # Sorting is stable: of equal sequences the later row comes last.
    for key, op, *new, at in sorted(epoch, key=lambda row: row[4] if sorts else 0):
        if op == "D":
            kept.pop(equal(key), None)
            stored.pop(equal(key), None)
            continue
        extra = stored.get(equal(key), (7,))[-1]
        stored[equal(key)] = (kept.get(equal(key), key), *new, at, extra)
    return stored


@pytest.mark.parametrize("way", [*slow_cases(*WAYS[1:]), WAYS[0]])
@given(epochs=EPOCHS, deleted=DELETED)
@example(
    epochs=[[("a", "I", "x", "y", 0)], [("a", "D", None, None, 1), ("a", "I", None, "z", 2)]],
    deleted=["A"],
)
@example(
    epochs=[[("a", "I", "x", None, 2), ("A", "I", None, "y", 3), ("a", "D", None, None, 1)]],
    deleted=[],
)
@example(
    epochs=[[("a", "I", "x", None, 1), ("A", "I", "z", "y", 3), ("a", "D", None, None, 1)]],
    deleted=["b"],
)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_an_epoch_does_what_its_changes_say_one_by_one(
    mysql: Cursor,
    mysql_url: str,
    table: str,
    rows: Any,
    way: Any,
    epochs: Any,
    deleted: Any,
) -> None:
    by_sequence, definition = way
    mysql.execute(f"DROP TABLE IF EXISTS {table}")
    mysql.execute(f"CREATE TABLE {table} ({definition})")
    equal, kind = (str.lower, pa.string()) if definition == DEFINITION else (str, pa.binary())
    target = {"url": mysql_url, "dbtable": table, "key": "id", "chunkRows": "3"}
    options = {"opColumn": "op"}
    if by_sequence:
        options["sequenceColumn"] = "at"
    query = MySqlQuery(SCHEMA.set(0, pa.field("id", kind)), **target, **options)
    deleting = MySqlQuery(pa.schema([("id", kind)]), **target, writeMode="delete")
    for made in (query, deleting):
        made.query_id = f"{made.query_id[:8]}{next(_numbers)}"
    expected: Stored = {}
    for epoch, changes in enumerate(epochs):
        expected = one_by_one(expected, changes, equal, sorts=by_sequence)
        made = [dict(zip(SCHEMA.names, (c[0], c[1], *c[2:]), strict=True)) for c in changes]
        query.run(epoch, made[: len(made) // 2], made[len(made) // 2 :])
        assert found(rows) == sorted(expected.values())
        # Columns that the query lacks are left alone, unless the row is deleted on the way.
        mysql.execute(f"UPDATE {table} SET extra = 9")
        expected = {key: (*row[:-1], 9) for key, row in expected.items()}
    deleting.run(0, [{"id": key} for key in deleted])
    gone = set(map(equal, deleted))
    assert found(rows) == sorted(row for key, row in expected.items() if key not in gone)


def found(rows: Callable[..., list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    return sorted(rows("CAST(id AS CHAR), v, w, at, extra"))


def test_winners_are_deleted_and_written_some_at_a_time(
    mysql: Cursor, mysql_url: str, table: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "FEWEST", 3)
    monkeypatch.setattr(gathering, "MOST", 7)
    mysql.execute(f"CREATE TABLE {table} ({DEFINITION})")
    options = {"key": "id", "opColumn": "op", "sequenceColumn": "at"}
    query = MySqlQuery(SCHEMA, url=mysql_url, dbtable=table, **options)
    query.sink.check()
    made = [
        {"id": f"{at % 50}", "op": "D" if at % 7 == 0 else "I", "v": f"{at}", "at": at // 10}
        for at in range(500)
    ]
    late = sorted(made, key=lambda row: (-row["at"], int(row["v"])))
    query.run(0, late[:200], late[200:])
    left = {row["id"]: row["v"] for row in made if row["op"] == "I" and int(row["v"]) >= 450}
    assert dict(rows("id, v")) == left


def test_epoch_may_take_longer_than_the_time_out(
    mysql: Cursor, mysql_url: str, table: str, rows: Any
) -> None:
    """Each statement is bounded by it; the trigger stands for some millions of rows."""
    mysql.execute(f"CREATE TABLE {table} ({DEFINITION})")
    pause = "FOR EACH ROW SET @x = SLEEP(0.001)"
    mysql.execute(f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} {pause}")
    query = MySqlQuery(SCHEMA, url=mysql_url, dbtable=table, key="id", opColumn="op", timeout="2")
    query.sink.check()
    query.run(0, [{"id": str(n), "op": "c"} for n in range(3000)])
    assert len(rows("id")) == 3000


def test_sequence_that_the_table_lacks_is_compared_and_not_stored(
    mysql: Cursor, mysql_url: str, table: str, rows: Any
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id VARCHAR(9) PRIMARY KEY, v VARCHAR(9))")
    schema = pa.schema([("id", pa.string()), ("v", pa.string()), ("lsn", pa.decimal128(20, 3))])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", sequenceColumn="LSN")
    query.sink.check()
    late, early = (
        {"id": "a", "v": v, "lsn": Decimal(n)} for v, n in (("late", "1.002"), ("old", "1.001"))
    )
    query.run(0, [late, early], [early])
    query.run(1, [{"id": "b", "v": "first", "lsn": 0}, {"id": "b", "v": "x", "lsn": -1}])
    assert rows() == [("a", "late"), ("b", "first")]


def test_sequence_is_compared_as_the_query_has_it_not_as_the_table_keeps_it(
    mysql: Cursor, mysql_url: str, table: str, rows: Any
) -> None:
    """The column cuts the fractions by which the rows differ."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, ts DATETIME, v VARCHAR(9))")
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.string())])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", sequenceColumn="ts")
    query.sink.check()
    at = datetime.datetime(2024, 5, 6, 7, 8, 9, 900_000, datetime.timezone.utc)
    earlier = at.replace(microsecond=100_000)
    query.run(0, [{"id": 1, "ts": at, "v": "last"}, {"id": 1, "ts": earlier, "v": "first"}])
    assert rows() == [(1, datetime.datetime(2024, 5, 6, 7, 8, 9), "last")]


def test_sequence_that_is_missing_in_the_query_is_refused(mysql_url: str, table: str) -> None:
    query = MySqlQuery(SCHEMA, url=mysql_url, dbtable=table, key="id", sequenceColumn="att")
    with pytest.raises(OptionError, match="did you mean 'at'"):
        query.sink.check()


def test_generated_columns_follow_what_is_written(
    mysql: Cursor, mysql_url: str, table: str, rows: Any
) -> None:
    mysql.execute(
        f"CREATE TABLE {table} (n INT AUTO_INCREMENT UNIQUE, id VARCHAR(9) PRIMARY KEY,"
        " twice BIGINT AS (at * 2) STORED, shown VARCHAR(20) AS (CONCAT(id, v)) VIRTUAL,"
        " v VARCHAR(9), w VARCHAR(9), at BIGINT)"
    )
    options = {"key": "id", "opColumn": "op", "sequenceColumn": "at"}
    query = MySqlQuery(SCHEMA, url=mysql_url, dbtable=table, **options)
    query.sink.check()
    a, b = ({"id": key, "op": "I", "v": "v", "at": at} for key, at in (("a", 1), ("b", 2)))
    query.run(0, [a, b])
    query.run(1, [{**a, "op": "D", "at": 3}, {**b, "at": 4, "v": "w"}])
    assert rows("id, twice, shown") == [("b", 8, "bw")]


def test_operations_may_hand_a_unique_value_on(
    mysql: Cursor, mysql_url: str, table: str, rows: Any
) -> None:
    """The row that had it is deleted in the same epoch, though it comes later in it."""
    mysql.execute(
        f"CREATE TABLE {table} (id VARCHAR(9) PRIMARY KEY, v VARCHAR(9) UNIQUE, w CHAR, at INT)"
    )
    query = MySqlQuery(SCHEMA, url=mysql_url, dbtable=table, key="id", opColumn="op")
    query.sink.check()
    query.run(0, [{"id": "a", "op": "I", "v": "mail"}])
    query.run(1, [{"id": "b", "op": "I", "v": "mail"}, {"id": "a", "op": "D"}])
    assert rows("id, v") == [("b", "mail")]


@pytest.mark.parametrize("options", [{"opColumn": "op"}, {"sequenceColumn": "at"}])
def test_long_keys_that_begin_alike_are_told_apart(
    mysql: Cursor, mysql_url: str, mysql_name: str, table: str, rows: Any, options: dict[str, str]
) -> None:
    """By itself MariaDB compares no more than 1024 bytes of a TEXT, which can be a key there."""
    key = "TEXT UNIQUE NOT NULL" if mysql_name == "mariadb" else "VARCHAR(760) PRIMARY KEY"
    mysql.execute(f"CREATE TABLE {table} (id {key}, v INT)")
    columns = {"id": pa.string(), "op": pa.string(), "v": pa.int32(), "at": pa.int32()}
    unused = "at" if "opColumn" in options else "op"
    schema = pa.schema([column for column in columns.items() if column[0] != unused])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", **options)
    query.sink.check()
    made = [{"id": "ü" * 750 + str(n % 7), "op": "u", "v": n, "at": n} for n in range(500)]
    query.run(0, made)
    last = {row["id"][750:]: row["v"] for row in made}
    assert dict(rows("SUBSTR(id, 751), v")) == last


@pytest.mark.parametrize("sequence", [{}, {"sequenceColumn": "at"}])
@pytest.mark.parametrize("hot", [False, True])
def test_repeated_keys_cost_little(
    mysql: Cursor, mysql_url: str, table: str, rows: Any, hot: bool, sequence: dict[str, str]
) -> None:
    """It takes 0.3 to 1 s, and 10 s where a server looks at all rows of a key for each of them."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, v VARCHAR(9), at BIGINT)")
    schema = SCHEMA.set(0, pa.field("id", pa.int64())).remove(3)
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", opColumn="op", **sequence)
    query.sink.check()
    keys = 7 if hot else 20_000
    made = pa.table(
        {
            "id": [n % keys for n in range(40_000)],
            "op": ["d" if n % 5 == 0 else "u" for n in range(40_000)],
            "v": ["x"] * 40_000,
            "at": range(40_000),
        },
        schema,
    )
    receipts = query.stage_batches(0, made.to_batches())
    began = time.monotonic()
    query.commit(0, receipts)
    assert time.monotonic() - began < 6
    kept = sum((40_000 - keys + n) % 5 > 0 for n in range(keys))
    assert rows("COUNT(*)") == [(kept,)]


def test_sequence_alone_needs_no_right_to_delete(
    mysql: Cursor, mysql_url: str, table: str, rows: Any
) -> None:
    mysql.execute(f"CREATE TABLE {table} ({DEFINITION})")
    mysql.execute(f"CREATE USER {table} IDENTIFIED BY 'pw'")
    mysql.execute(f"GRANT CREATE, CREATE TEMPORARY TABLES ON *.* TO {table}")
    mysql.execute(f"GRANT SELECT, INSERT, UPDATE ON {table} TO {table}")
    for name in ("ledger", "log"):
        mysql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON sparkonce_{name} TO {table}")
    schema = pa.schema([field for field in SCHEMA if field.name != "op"])
    url = mysql_url.replace("root", f"{table}:pw", 1)
    try:
        query = MySqlQuery(schema, url=url, dbtable=table, key="id", sequenceColumn="at")
        query.sink.check()
        query.run(0, [{"id": "a", "v": "2", "at": 2}, {"id": "a", "v": "1", "at": 1}])
    finally:
        mysql.execute(f"DROP USER {table}")
    assert rows("id, v") == [("a", "2")]
