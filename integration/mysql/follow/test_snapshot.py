"""`startingPosition=snapshot`: a table as it was, without a lock, and then each change once."""

from __future__ import annotations

import random
from itertools import islice
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from integration.support.mysql import Table, changes, client, each_epoch, planned, purge, rows

from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import StoreRefused, StoreUnsafe, UnreadLost, ValueUnreadable
from sparkonce.reading import Position

Row = tuple[Any, ...]
Epoch = tuple[Position, Position]
CHANGED = (
    "UPDATE {table} SET n = n + 100 WHERE id % 3 = 0",
    "UPDATE {table} SET n = n + 100 WHERE id % 9 = 0",
    "DELETE FROM {table} WHERE id = 2",
    "DELETE FROM {table} WHERE id % 5 = 0",
    "INSERT INTO {table} VALUES (5, -5, 'new'), (1000, 1, 'new'), (2, 2, 'new')",
    "UPDATE {table} SET id = id + 2000 WHERE id % 7 = 0",
    "DELETE FROM {table} WHERE id = 1000",
    "UPDATE {table} SET id = 7 WHERE id = 2014",
)


@pytest.fixture
def table(table: Table) -> Table:
    table.create("id INT PRIMARY KEY, n INT, t VARCHAR(20)")
    values = ", ".join(f"({at}, {at}, 'x{at}')" for at in range(100))
    table.run(f"INSERT INTO {table} VALUES {values}")
    return table


@pytest.fixture
def bare(table: Table) -> Table:
    """Another name, for a table of the test's own kind."""
    return Table(f"{table}_b", table.url, table.client)


def snapshot(table: Table, schema: pa.Schema | None = None, **raw: str) -> MySqlFeed:
    return table.feed(schema, startingPosition="snapshot", **raw)


def test_rows_that_are_there_come_before_what_changes_them(table: Table) -> None:
    made = snapshot(table)
    begin = made.begin()
    table.run(f"UPDATE {table} SET n = 7 WHERE id = 1")
    first, second = each_epoch(made, begin, None)
    found = rows(made, *first)
    assert sorted((row["_op"], row["id"], row["n"]) for row in found) == [
        ("r", at, at) for at in range(100)
    ]
    assert {(row["_gtid"], row["_ts"]) for row in found} == {(None, None)}
    assert changes(made, *second, "id", "n") == [("u", 1, 7)]
    assert changes(made, begin, second[1], "id", "n")[-1] == ("u", 1, 7)


KEYS = {
    "whole numbers": "ALTER TABLE {table} MODIFY id BIGINT UNSIGNED",
    "two columns": "ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id, t)",
    "texts": "ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (t, id)",
    "decimals": "ALTER TABLE {table} MODIFY id DECIMAL(30,5)",
}


@pytest.mark.parametrize("most", [None, 17])
@pytest.mark.parametrize("key", KEYS)
def test_each_epoch_is_as_the_table_was_whatever_became_of_it(
    table: Table, key: str, most: int | None
) -> None:
    table.run(KEYS[key].format(table=table))
    made = snapshot(table)
    begin, before = made.begin(), sorted(table.rows())
    steps, found, each = iter(CHANGED), list[Row](), list[Epoch]()
    for epoch in each_epoch(made, begin, most):
        for step in islice(steps, 4):
            table.run(step.format(table=table))
        each.append(epoch)
        found += [row for row in changes(made, *epoch, "id", "n", "t") if row[0] == "r"]
    for step in steps:
        table.run(step.format(table=table))
    assert sorted(row[1:] for row in found) == before
    again = [row for one in each for row in changes(made, *one, "id", "n", "t") if row[0] == "r"]
    assert sorted(again) == sorted(found)
    if most and key in ("whole numbers", "two columns"):
        assert len(each) > 5


def test_nothing_is_missed_or_doubled_while_others_write(table: Table) -> None:
    made = snapshot(table, columns="id,n,t,_op,_before", numPartitions="3")
    with Writers(table.url, table, 3) as stop:
        begin = made.begin()
        state = dict[int, Row]()
        for number, (after, end) in enumerate(each_epoch(made, begin, 30)):
            _apply(state, rows(made, after, end))
            if number > 8:
                break
        stop.set()
    for epoch in each_epoch(made, end, None):
        _apply(state, rows(made, *epoch))
    assert sorted(state.values()) == sorted(table.rows())


class Writers:
    """Threads that insert, update, move and delete rows until they are told to stop."""

    def __init__(self, url: str, table: str, many: int) -> None:
        self.stop, self.errors = Event(), list[Exception]()
        self.threads = [Thread(target=self._write, args=(url, table, at)) for at in range(many)]

    def __enter__(self) -> Event:
        for one in self.threads:
            one.start()
        return self.stop

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for one in self.threads:
            one.join()
        assert self.errors == []

    def _write(self, url: str, table: str, seed: int) -> None:
        draw = random.Random(seed)
        with client(url, autocommit=False) as cursor:
            while not self.stop.wait(0.002):
                try:
                    for _ in range(draw.randrange(1, 4)):
                        cursor.execute(_statement(draw, table))
                    cursor.connection.commit()
                except Exception as error:
                    cursor.connection.rollback()
                    if error.args[0] not in (1062, 1213, 1205):  # a key that is there, a deadlock
                        self.errors.append(error)
                        return


def _statement(draw: random.Random, table: str) -> str:
    one, other = draw.randrange(150), draw.randrange(150)
    return draw.choice(
        [
            f"INSERT INTO {table} VALUES ({one}, {other}, 'new')",
            f"UPDATE {table} SET n = n + 1 WHERE id BETWEEN {one} AND {one + 5}",
            f"UPDATE {table} SET id = {other} WHERE id = {one}",
            f"DELETE FROM {table} WHERE id = {one}",
        ]
    )


def _apply(state: dict[int, Row], found: list[dict[str, Any]]) -> None:
    """Do to a state what rows say; each must find what it changes."""
    for row in found:
        key, former = row["id"], row["_before"]
        assert state.get(key) == (former and tuple(former.values())), row
        if row["_op"] == "d":
            del state[key]
        else:
            state[key] = row["id"], row["n"], row["t"]


def test_a_table_whose_changes_can_t_be_told_apart_is_refused(table: Table) -> None:
    table.run(f"ALTER TABLE {table} DROP PRIMARY KEY")
    with pytest.raises(StoreRefused, match="has no primary key"):
        planned(snapshot(table))
    table.run(f"ALTER TABLE {table} ADD PRIMARY KEY (id), ENGINE=MyISAM")
    with pytest.raises(StoreUnsafe, match="has the engine MyISAM"):
        planned(snapshot(table))


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_an_invisible_key_is_there(bare: Table, set_global: Any, metadata: str) -> None:
    set_global("binlog_row_metadata", metadata)
    bare.create("id INT AUTO_INCREMENT INVISIBLE PRIMARY KEY, n INT")
    with client(bare.url) as writer:
        writer.execute(f"INSERT INTO {bare} (n) VALUES (7), (8)")
        made = snapshot(bare)
        begin = made.begin()
        writer.execute(f"UPDATE {bare} SET n = 9 WHERE id = 2")
    found = changes(made, begin, None, "id", "n")
    assert sorted(found[:2]) == [("r", 1, 7), ("r", 2, 8)]
    assert found[2:] == [("u", 2, 9)]


def test_a_schema_may_spell_columns_in_another_case(table: Table) -> None:
    schema = pa.schema([("ID", pa.int32()), ("T", pa.string()), ("_op", pa.string())])
    made = snapshot(table, schema)
    begin = made.begin()
    table.run(f"UPDATE {table} SET t = 'new' WHERE id = 3")
    found = changes(made, begin, None, "ID", "T")
    assert sorted(found[:-1]) == sorted(("r", at, f"x{at}") for at in range(100))
    assert found[-1] == ("u", 3, "new")


def test_a_key_of_tinyint_1_may_be_any_number(bare: Table) -> None:
    bare.create("id TINYINT(1) PRIMARY KEY, n INT")
    bare.run(f"INSERT INTO {bare} VALUES (-128, 0), (0, 0), (1, 0), (5, 0)")
    schema = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("_op", pa.string())])
    made = snapshot(bare, schema)
    begin = made.begin()
    bare.run(f"UPDATE {bare} SET n = 1 WHERE id IN (1, 5)")
    found = changes(made, begin, {"gtids": begin["gtids"]}, "id", "n")
    assert sorted(found) == [("r", -128, 0), ("r", 0, 0), ("r", 1, 0), ("r", 5, 0)]


def test_a_row_that_is_longer_than_the_server_sends_is_told(bare: Table) -> None:
    (most,) = bare.run("SELECT @@GLOBAL.max_allowed_packet")[0]
    bare.create("id INT PRIMARY KEY, a LONGBLOB, b LONGBLOB")
    bare.run(f"INSERT INTO {bare} SELECT 1, REPEAT('x', {most} * 0.4), REPEAT('y', {most} * 0.4)")
    made = snapshot(bare)
    begin = made.begin()
    with pytest.raises(ValueUnreadable, match="longer than the server can send"):
        changes(made, begin, {"gtids": begin["gtids"]}, "id")


def test_rows_that_a_foreign_key_changes_are_in_a_snapshot_or_refused(
    bare: Table, caplog: pytest.LogCaptureFixture
) -> None:
    bare.run(f"CREATE TABLE {bare}_p (id INT PRIMARY KEY)")
    bare.run(
        f"CREATE TABLE {bare} (id INT PRIMARY KEY, p INT, CONSTRAINT {bare}_k FOREIGN KEY (p)"
        f" REFERENCES {bare}_p (id) ON DELETE CASCADE)"
    )
    bare.run(f"INSERT INTO {bare}_p VALUES (1)", f"INSERT INTO {bare} VALUES (5, 1)")
    are_logged = [
        value for _, value in bare.run("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    ] == ["OFF"]
    late = bare.feed()
    late.between(late.begin(), late.latest())
    assert ("lacks these changes" in caplog.text) is not are_logged
    made = snapshot(bare)
    if not are_logged:
        with pytest.raises(StoreRefused, match=f"foreign key {bare}_k changes rows of table"):
            planned(made)
        return
    begin = made.begin()
    bare.run(f"DELETE FROM {bare}_p")
    assert changes(made, begin, None, "id") == [("r", 5), ("d", 5)]


def test_a_snapshot_whose_log_was_purged_can_t_go_on(table: Table) -> None:
    made = snapshot(table, failOnDataLoss="false")
    begin = made.begin()
    table.run(f"UPDATE {table} SET n = 0", "FLUSH BINARY LOGS", f"UPDATE {table} SET n = 1")
    purge(table.client)
    with pytest.raises(UnreadLost, match=r"purged transactions .* before the query read them"):
        made.between(begin, {"gtids": begin["gtids"]})


def test_a_table_that_is_emptied_in_mid_snapshot_is_told(table: Table) -> None:
    made = snapshot(table)
    begin = made.begin()
    (part,) = made.between(begin, {"gtids": begin["gtids"]})
    table.run(f"TRUNCATE {table}")
    with pytest.raises(StoreRefused, match="changes the table by a statement: TRUNCATE"):
        list(made.read(part))


def test_parts_of_a_large_table_are_read_side_by_side(bare: Table) -> None:
    bare.create("id BIGINT UNSIGNED PRIMARY KEY, t TEXT")
    for low in range(0, 50_000, 10_000):
        values = ", ".join(f"({at * at}, 'x')" for at in range(low, low + 10_000))
        bare.run(f"INSERT INTO {bare} VALUES {values}")
    bare.run(f"ANALYZE TABLE {bare}")
    made = snapshot(bare, numPartitions="4")
    begin = made.begin()
    end = {"gtids": begin["gtids"]}
    parts = [pa.Table.from_batches(made.read(one)) for one in made.between(begin, end)]
    assert [int(one) for part in parts for one in part["id"].to_pylist()] == [
        at * at for at in range(50_000)
    ]
    assert len(parts) == 4
    assert max(map(len, parts)) < 25_000
