"""Several tables in one stream: their rows as JSON, in the order of the log."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import each_epoch, feed, read, rows
from pymysql.cursors import Cursor
from pyspark.sql import DataFrame, SparkSession

import sparkonce
from sparkonce.errors import StoreRefused, UnreadLost
from sparkonce.reading import Position

Made = tuple[Any, Position]


@pytest.fixture(autouse=True)
def full(set_global: Callable[[str, object], None]) -> None:
    set_global("binlog_row_metadata", "FULL")


@pytest.fixture
def shop(mysql: Cursor, unique: str) -> str:
    """A database of a test's own."""
    mysql.execute(f"CREATE DATABASE {unique}")
    mysql.execute(f"CREATE TABLE {unique}.orders (id INT PRIMARY KEY, n INT)")
    mysql.execute(f"CREATE TABLE {unique}.customers (id INT PRIMARY KEY, name VARCHAR(20))")
    return unique


def told(made: Any, after: Position, end: Position | None = None) -> list[tuple[Any, ...]]:
    """Table, operation, key and row of each change."""
    return [
        (one["_table"], one["_op"], json.loads(one["_key"]), json.loads(one["_row"]))
        for one in rows(made, after, end)
    ]


def test_changes_of_several_tables_come_in_the_order_of_the_log(
    url: str, mysql: Cursor, shop: str
) -> None:
    made = feed(url, f"{shop}.*")
    begin = made.begin()
    for statement in (
        f"INSERT INTO {shop}.orders VALUES (1, 10)",
        f"INSERT INTO {shop}.customers VALUES (1, 'Zoë')",
        f"UPDATE {shop}.orders SET n = 11",
        f"DELETE FROM {shop}.customers",
        f"UPDATE {shop}.orders SET id = 2",
    ):
        mysql.execute(statement)
    orders, customers = f"{shop}.orders", f"{shop}.customers"
    assert told(made, begin) == [
        (orders, "c", {"id": 1}, {"id": 1, "n": 10}),
        (customers, "c", {"id": 1}, {"id": 1, "name": "Zoë"}),
        (orders, "u", {"id": 1}, {"id": 1, "n": 11}),
        (customers, "d", {"id": 1}, {"id": 1, "name": "Zoë"}),
        (orders, "d", {"id": 1}, {"id": 1, "n": 11}),
        (orders, "c", {"id": 2}, {"id": 2, "n": 11}),
    ]
    (one,) = list(each_epoch(made, begin, None))
    assert one == (begin, made.latest())
    assert [len(read(made, *epoch)) for epoch in each_epoch(made, begin, 1)] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("{}.orders,{}.customers", ["orders", "customers"]),
        ("{}.*", ["orders", "customers", "tmp_1"]),
        ("{}.*,!{}.tmp_*", ["orders", "customers"]),
        ("{}.o*", ["orders"]),
        ("{}.`orders`, {}.tmp_1", ["orders", "tmp_1"]),
        ("*.tmp_1", ["tmp_1"]),
    ],
)
def test_a_stream_has_the_tables_that_match(
    url: str, mysql: Cursor, shop: str, named: str, found: list[str]
) -> None:
    mysql.execute(f"CREATE TABLE {shop}.tmp_1 (id INT)")
    made = feed(url, named.replace("{}", shop))
    begin = made.begin()
    for table in ("orders", "customers", "tmp_1"):
        mysql.execute(f"INSERT INTO {shop}.{table} (id) VALUES (1)")
    assert [one["_table"] for one in rows(made, begin)] == [f"{shop}.{one}" for one in found]


@pytest.mark.parametrize("existed", [True, False])
def test_a_table_that_comes_to_match_joins_with_its_rows(
    url: str, mysql: Cursor, shop: str, existed: bool
) -> None:
    """The option names it later, or it is created later."""
    made = feed(url, f"{shop}.orders,{shop}.customers" if existed else f"{shop}.*")
    begin = made.begin()
    mysql.execute(f"CREATE TABLE {shop}.items (id INT PRIMARY KEY, at DATETIME(3))")
    mysql.execute(f"INSERT INTO {shop}.items VALUES (1, '2026-11-29 01:02:03.004')")
    mysql.execute(f"INSERT INTO {shop}.orders VALUES (1, 1)")
    made = feed(url, f"{shop}.*")
    end = made.advance(begin, made.latest(), None)
    assert end == made.latest()
    mysql.execute(f"UPDATE {shop}.items SET at = NULL")
    items, orders = f"{shop}.items", f"{shop}.orders"
    assert sorted(told(made, begin, end)) == [
        (items, "r", {"id": 1}, {"id": 1, "at": "2026-11-29T01:02:03.004000"}),
        (orders, "c", {"id": 1}, {"id": 1, "n": 1}),
    ]
    assert told(made, end) == [(items, "u", {"id": 1}, {"id": 1, "at": None})]


def test_a_table_that_is_left_out_continues_where_it_stopped(
    url: str, mysql: Cursor, shop: str
) -> None:
    every, few = (feed(url, one) for one in (f"{shop}.*", f"{shop}.orders,{shop}.none"))
    mysql.execute(f"INSERT INTO {shop}.customers VALUES (1, 'a')")
    begin = every.begin()
    mysql.execute(f"DELETE FROM {shop}.customers")
    mysql.execute(f"INSERT INTO {shop}.orders VALUES (1, 1)")
    end = few.advance(begin, few.latest(), None)
    assert [*end["excluded"]] == [f"{shop}.customers"]
    assert [one[0] for one in told(few, begin, end)] == [f"{shop}.orders"]
    mysql.execute(f"INSERT INTO {shop}.customers VALUES (2, 'b')")
    mysql.execute(f"INSERT INTO {shop}.orders VALUES (2, 2)")
    after = every.advance(end, every.latest(), None)
    assert after == every.latest()
    assert sorted((one[0], one[1], *one[2].values()) for one in told(every, end, after)) == [
        (f"{shop}.customers", "c", 2),
        (f"{shop}.customers", "d", 1),
        (f"{shop}.orders", "c", 2),
    ]


def test_a_table_that_is_left_out_during_its_snapshot_does_not_return_in_silence(
    url: str, mysql: Cursor, shop: str
) -> None:
    mysql.execute(f"INSERT INTO {shop}.customers VALUES (1, 'a')")
    every, few = (
        feed(url, one, startingPosition="snapshot") for one in (f"{shop}.*", f"{shop}.orders,none")
    )
    end = few.advance(every.begin(), few.latest(), None)
    assert end["excluded"] == {f"{shop}.customers": None}
    with pytest.raises(UnreadLost, match=f"{shop}.customers again"):
        every.advance(end, every.latest(), None)
    lenient = feed(url, f"{shop}.*", failOnDataLoss="false")
    after = lenient.advance(end, lenient.latest(), None)
    assert [(one[0], one[1]) for one in told(lenient, end, after)] == [(f"{shop}.customers", "r")]


STATEMENTS = (
    "INSERT IGNORE INTO {t} VALUES ({a}, {b})",
    "INSERT IGNORE INTO {t} VALUES ({a}, {b}), ({b}, {a})",
    "UPDATE {t} SET n = n + 1 WHERE id BETWEEN {a} AND {a} + 9",
    "UPDATE IGNORE {t} SET id = {b} WHERE id = {a}",
    "DELETE FROM {t} WHERE id BETWEEN {a} AND {a} + 3",
    "REPLACE INTO {t} VALUES ({a}, NULL)",
)


@pytest.mark.parametrize("seed", [0, 1, 2, *slow_cases(*range(3, 40))])
def test_snapshots_go_on_beside_changes_and_end_with_what_the_tables_have(
    url: str, mysql: Cursor, shop: str, seed: int
) -> None:
    """Each epoch is read a second time, at once and at the end, and has the same rows."""
    draw = random.Random(seed)
    kinds = ["INT", "BIGINT UNSIGNED", "VARCHAR(20)", "DECIMAL(12,0)", "SMALLINT"]
    tables = [f"{shop}.t{at}" for at in range(3)]
    made = feed(url, f"{shop}.t*,!{shop}.tx", startingPosition="snapshot", numPartitions="3")

    def create(table: str) -> None:
        mysql.execute(f"CREATE TABLE {table} (id {draw.choice(kinds)} PRIMARY KEY, n INT)")

    def write(times: int) -> None:
        for _ in range(times):
            a, b = draw.randrange(1, 90), draw.randrange(1, 90)
            statement = draw.choice(STATEMENTS)
            mysql.execute(statement.format(t=draw.choice(tables), a=a, b=b))

    for table in tables:
        create(table)
    write(100)
    at, state, epochs = made.begin(), dict[tuple[str, str], Any](), list[Any]()
    for number in range(30):
        write(draw.randrange(6) if number < 20 else 0)
        if number in (4, 9):
            tables.append(f"{shop}.t{number}")
            create(tables[-1])
            write(20)
        end = made.advance(at, made.latest(), draw.choice([None, 5, 20]) if number < 20 else None)
        found = read(made, at, end).to_pylist() if end != at else []
        epochs.append((at, end, sorted(map(str, found))))
        assert sorted(map(str, read(made, at, end).to_pylist())) == epochs[-1][2]
        take(state, found)
        at = end
    assert "snapshot" not in at
    stored = {}
    for table in tables:
        mysql.execute(f"SELECT id, n FROM {table}")
        stored |= {(table, str(one)): n for one, n in mysql.fetchall()}
    assert {key: row["n"] for key, row in state.items()} == stored
    for begin, end, found in epochs:
        assert sorted(map(str, read(made, begin, end).to_pylist())) == found


def take(state: dict[tuple[str, str], Any], found: list[dict[str, Any]]) -> None:
    """Apply changes of one epoch, as a sink with a key does; each row's changes are in order."""
    for one in found:
        row = json.loads(one["_row"])
        at = one["_table"], str(json.loads(one["_key"])["id"])
        if one["_op"] == "d":
            assert state.pop(at) is not None
        else:
            assert (at in state) == (one["_op"] == "u"), one
            state[at] = row


def test_before_is_what_a_row_was(url: str, mysql: Cursor, shop: str) -> None:
    made = feed(url, f"{shop}.*", columns="_op,_row,_before")
    begin = made.begin()
    mysql.execute(f"INSERT INTO {shop}.orders VALUES (1, 1)")
    mysql.execute(f"UPDATE {shop}.orders SET n = NULL")
    befores = [one["_before"] and json.loads(one["_before"]) for one in rows(made, begin)]
    assert befores == [None, {"id": 1, "n": 1}]


@pytest.mark.parametrize(
    ("statement", "stops"),
    [
        ("TRUNCATE TABLE {}.orders", True),
        ("DROP TABLE {}.customers", True),
        ("ALTER TABLE {}.orders ADD COLUMN m INT", True),
        ("CREATE TABLE {}.more (id INT PRIMARY KEY)", False),
        ("CREATE INDEX more ON {}.orders (n)", False),
        ("TRUNCATE TABLE {}.tmp_1", False),
        ("DROP TABLE {}.tmp_1", False),
        ("DROP DATABASE {}", True),
    ],
)
def test_a_statement_that_changes_a_followed_table_stops_the_stream(
    url: str, mysql: Cursor, shop: str, statement: str, stops: bool
) -> None:
    mysql.execute(f"CREATE TABLE {shop}.tmp_1 (id INT)")
    made = feed(url, f"{shop}.*,!{shop}.tmp_*")
    begin = made.begin()
    mysql.execute(statement.replace("{}", shop))
    if stops:
        with pytest.raises(StoreRefused, match="by a statement"):
            rows(made, begin)
    else:
        assert rows(made, begin) == []


def test_what_no_stream_of_several_tables_can_follow_is_told(
    url: str, mysql: Cursor, shop: str, set_global: Callable[[str, object], None]
) -> None:
    with pytest.raises(StoreRefused, match="No table matches"):
        feed(url, f"{shop}.nothing_*").begin()
    mysql.execute(f"CREATE TABLE {shop}.keyless (id INT)")
    made = feed(url, f"{shop}.*", startingPosition="snapshot")
    at = made.advance(made.begin(), made.latest(), None)
    with pytest.raises(StoreRefused, match=f"{shop}.keyless has no primary key"):
        made.advance(at, made.latest(), None)
    set_global("binlog_row_metadata", "MINIMAL")
    with pytest.raises(StoreRefused, match="binlog_row_metadata=FULL"):
        feed(url, f"{shop}.*").begin()


def test_a_database_through_spark_is_another_one_in_the_end(
    spark: SparkSession, url: str, mysql: Cursor, shop: str, tmp_path: Path
) -> None:
    """Two tables with typed columns, from one stream, into a table each."""
    for table in ("orders", "customers"):
        mysql.execute(f"CREATE TABLE {shop}.{table}_2 LIKE {shop}.{table}")
    schemas = {"orders": "id int, n int", "customers": "id int, name string"}

    def each(batch: DataFrame, _: int) -> None:
        batch.persist()
        for table, schema in schemas.items():
            typed = sparkonce.changes(batch, table, schema)
            sink = typed.drop("_gtid", "_ts").write.format("mysql").mode("append")
            sink = sink.options(url=url, dbtable=f"{shop}.{table}_2", key="id", opColumn="_op")
            sink.option("writeMode", "upsert").save()
        batch.unpersist()

    def run() -> None:
        stream = spark.readStream.format("mysql").options(url=url, startingPosition="snapshot")
        stream = stream.options(dbtable=f"{shop}.*,!{shop}.*_2", maxRowsPerBatch="30").load()
        query = stream.writeStream.queryName(shop).foreachBatch(each)
        query = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()

    def both(table: str) -> list[Any]:
        found = []
        for name in (table, f"{table}_2"):
            mysql.execute(f"SELECT * FROM {shop}.{name} ORDER BY id")
            found.append(mysql.fetchall())
        return found

    values = ", ".join(f"({at}, {at})" for at in range(100))
    mysql.execute(f"INSERT INTO {shop}.orders VALUES {values}")
    mysql.execute(f"INSERT INTO {shop}.customers SELECT id, CONCAT('Zoë ', n) FROM {shop}.orders")
    run()
    mysql.execute(f"UPDATE {shop}.orders SET id = id + 1000 WHERE id < 10")
    mysql.execute(f"DELETE FROM {shop}.customers WHERE id BETWEEN 20 AND 60")
    mysql.execute(f"INSERT INTO {shop}.customers VALUES (20, NULL)")
    run()
    for table in schemas:
        source, target = both(table)
        assert source == target
        assert len(source) in (60, 100)


@pytest.mark.parametrize("other", ["{}.*", "{}.*,!{}.customers"])
def test_a_replay_has_the_tables_of_its_offsets_whatever_the_option_names(
    url: str, mysql: Cursor, shop: str, other: str
) -> None:
    first = feed(url, f"{shop}.*" if "!" in other else f"{shop}.*,!{shop}.customers")
    again = feed(url, other.replace("{}", shop))
    begin = first.begin()
    mysql.execute(f"INSERT INTO {shop}.customers VALUES (1, 'a')")
    mysql.execute(f"INSERT INTO {shop}.orders VALUES (1, 1)")
    end = first.advance(begin, first.latest(), None)
    assert told(again, begin, end) == told(first, begin, end) != []


def test_the_key_has_one_order_in_the_snapshot_and_in_the_log(
    url: str, mysql: Cursor, shop: str
) -> None:
    mysql.execute(f"CREATE TABLE {shop}.two (a INT, b INT, n INT, PRIMARY KEY (b, a))")
    mysql.execute(f"INSERT INTO {shop}.two VALUES (1, 2, 3)")
    made = feed(url, f"{shop}.two,{shop}.none", startingPosition="snapshot")
    begin = made.begin()
    end = made.advance(begin, made.latest(), None)
    (read_,) = rows(made, begin, end)
    mysql.execute(f"UPDATE {shop}.two SET n = 4")
    (changed,) = rows(made, end)
    assert read_["_key"] == changed["_key"] == '{"b":2,"a":1}'


@pytest.mark.parametrize("column", ["_op", "_ts", "_GTID", "_before"])
def test_a_column_that_describes_a_change_is_refused(
    url: str, mysql: Cursor, shop: str, column: str
) -> None:
    mysql.execute(f"CREATE TABLE {shop}.odd (id INT PRIMARY KEY, {column} INT)")
    with pytest.raises(StoreRefused, match=f"{shop}.odd has a column '{column}'"):
        feed(url, f"{shop}.*").begin()
    feed(url, f"{shop}.*,!{shop}.odd").begin()


def test_a_table_is_left_out_during_its_snapshot(url: str, mysql: Cursor, shop: str) -> None:
    mysql.execute(f"INSERT INTO {shop}.orders VALUES (1, 1)")
    every, few = (
        feed(url, one, startingPosition="snapshot") for one in (f"{shop}.*", f"{shop}.orders,none")
    )
    begin = every.begin()
    end = few.advance(begin, few.latest(), None)
    assert [(one[0], one[1]) for one in told(few, begin, end)] == [(f"{shop}.orders", "r")]


@pytest.mark.parametrize("name", ["`index`", "`primary`", "`to`", "`if`"])
def test_a_table_with_the_name_of_a_word_is_followed(
    url: str, mysql: Cursor, shop: str, name: str
) -> None:
    mysql.execute(f"CREATE TABLE {shop}.{name} (id INT PRIMARY KEY)")
    for dbtable in (f"{shop}.*", f"{shop}.{name}"):
        made = feed(url, dbtable)
        begin = made.begin()
        mysql.execute(f"TRUNCATE TABLE {shop}.{name.strip('`')}")
        with pytest.raises(StoreRefused, match="by a statement"):
            rows(made, begin)


def test_a_type_that_looks_like_another_one_is_told_from_it_by_its_table(
    url: str, mysql: Cursor, shop: str, mysql_name: str
) -> None:
    """The log describes both tables alike."""
    if mysql_name != "mariadb":
        pytest.skip("MySQL has no such types")
    uuid = "123e4567-e89b-12d3-a456-426655440000"
    mysql.execute(f"CREATE TABLE {shop}.a (id INT PRIMARY KEY, u BINARY(16))")
    mysql.execute(f"CREATE TABLE {shop}.b (id INT PRIMARY KEY, u UUID)")
    made = feed(url, f"{shop}.*")
    begin = made.begin()
    mysql.execute(f"INSERT INTO {shop}.a VALUES (1, x'{uuid.replace('-', '')}')")
    mysql.execute(f"INSERT INTO {shop}.b VALUES (1, '{uuid}')")
    found = {one[0]: one[3]["u"] for one in told(made, begin)}
    assert found == {f"{shop}.a": "Ej5FZ+ibEtOkVkJmVUQAAA==", f"{shop}.b": uuid}


def test_bytes_of_a_table_that_was_dropped_are_refused(
    url: str, mysql: Cursor, shop: str, mysql_name: str
) -> None:
    """They may have been those of a UUID, whose text its other rows had."""
    mysql.execute(f"CREATE TABLE {shop}.a (id INT PRIMARY KEY, u BINARY(16))")
    made = feed(url, f"{shop}.*", onTruncate="row")
    begin = made.begin()
    mysql.execute(f"INSERT INTO {shop}.a VALUES (1, 'x')")
    mysql.execute(f"DROP TABLE {shop}.a")
    if mysql_name == "mysql":
        assert [one["_op"] for one in rows(made, begin)] == ["c", "t"]
        return
    with pytest.raises(StoreRefused, match=f"{shop}.a was dropped, and has columns of bytes"):
        rows(made, begin)
