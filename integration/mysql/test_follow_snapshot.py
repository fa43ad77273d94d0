"""`startingPosition=snapshot`: a table as it was, without a lock, and then each change once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from integration.support.mysql_following import feed, logging_server, planned, purge, rows, told
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect
from pymysql.cursors import Cursor

from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import StoreRefused, StoreUnsafe, UnreadLost
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


@pytest.fixture(scope="module")
def server(mysql_name: str) -> Iterator[MySqlProcess]:
    with or_skip(lambda: logging_server(mysql_name)) as one:
        yield one


@pytest.fixture
def url(server: MySqlProcess) -> str:
    return server.url


@pytest.fixture
def mysql(url: str) -> Iterator[Cursor]:
    with closing(connect(url)) as client, client.cursor() as cursor:
        yield cursor


@pytest.fixture
def table(mysql: Cursor, unique: str) -> str:
    mysql.execute(f"CREATE TABLE {unique} (id INT PRIMARY KEY, n INT, t VARCHAR(20))")
    values = ", ".join(f"({at}, {at}, 'x{at}')" for at in range(100))
    mysql.execute(f"INSERT INTO {unique} VALUES {values}")
    return unique


def snapshot(url: str, table: str, **raw: str) -> MySqlFeed:
    return feed(url, table, startingPosition="snapshot", **raw)


def epochs(
    made: MySqlFeed, begin: Position, most: int | None
) -> Iterator[tuple[Position, Position]]:
    """Where each epoch begins and ends, until all is read that is there at its beginning."""
    goal = made.latest()
    while begin != goal:
        end = made.advance(begin, goal, most)
        yield begin, end
        begin = end


def there(cursor: Cursor, table: str) -> list[Row]:
    cursor.execute(f"SELECT * FROM {table}")
    return sorted(cursor.fetchall())


def test_rows_that_are_there_come_before_what_changes_them(
    mysql: Cursor, url: str, table: str
) -> None:
    made = snapshot(url, table)
    begin = made.begin()
    mysql.execute(f"UPDATE {table} SET n = 7 WHERE id = 1")
    first, second = epochs(made, begin, None)
    found = rows(made, *first)
    assert sorted((row["_op"], row["id"], row["n"]) for row in found) == [
        ("r", at, at) for at in range(100)
    ]
    assert {(row["_gtid"], row["_ts"]) for row in found} == {(None, None)}
    assert told(made, *second, "id", "n") == [("u", 1, 7)]
    assert told(made, begin, second[1], "id", "n")[-1] == ("u", 1, 7)


KEYS = {
    "whole numbers": "ALTER TABLE {table} MODIFY id BIGINT UNSIGNED",
    "two columns": "ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id, t)",
    "texts": "ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (t, id)",
    "decimals": "ALTER TABLE {table} MODIFY id DECIMAL(30,5)",
}


@pytest.mark.parametrize("most", [None, 17])
@pytest.mark.parametrize("key", KEYS)
def test_each_epoch_is_as_the_table_was_whatever_became_of_it(
    mysql: Cursor, url: str, table: str, key: str, most: int | None
) -> None:
    mysql.execute(KEYS[key].format(table=table))
    made = snapshot(url, table)
    begin, before = made.begin(), there(mysql, table)
    changes, found, each = iter(CHANGED), list[Row](), list[Epoch]()
    for epoch in epochs(made, begin, most):
        for change in islice(changes, 4):
            mysql.execute(change.format(table=table))
        each.append(epoch)
        found += [row for row in told(made, *epoch, "id", "n", "t") if row[0] == "r"]
    for change in changes:
        mysql.execute(change.format(table=table))
    assert sorted(row[1:] for row in found) == before
    again = [row for one in each for row in told(made, *one, "id", "n", "t") if row[0] == "r"]
    assert sorted(again) == sorted(found)
    if most and key in ("whole numbers", "two columns"):
        assert len(each) > 5


def test_nothing_is_missed_or_doubled_while_others_write(
    mysql: Cursor, url: str, table: str
) -> None:
    made = feed(
        url, table, columns="id,n,t,_op,_before", startingPosition="snapshot", numPartitions="3"
    )
    with Writers(url, table, 3) as stop:
        begin = made.begin()
        state = dict[int, Row]()
        for number, (after, end) in enumerate(epochs(made, begin, 30)):
            _apply(state, rows(made, after, end))
            if number > 8:
                break
        stop.set()
    for epoch in epochs(made, end, None):
        _apply(state, rows(made, *epoch))
    assert sorted(state.values()) == there(mysql, table)


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
        with closing(connect(url, autocommit=False)) as client, client.cursor() as cursor:
            while not self.stop.wait(0.002):
                try:
                    for _ in range(draw.randrange(1, 4)):
                        cursor.execute(_statement(draw, table))
                    client.commit()
                except Exception as error:
                    client.rollback()
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


def test_a_table_whose_changes_can_t_be_told_apart_is_refused(
    mysql: Cursor, url: str, table: str
) -> None:
    mysql.execute(f"ALTER TABLE {table} DROP PRIMARY KEY")
    with pytest.raises(StoreRefused, match="has no primary key"):
        planned(snapshot(url, table))
    mysql.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (id), ENGINE=MyISAM")
    with pytest.raises(StoreUnsafe, match="has the engine MyISAM"):
        planned(snapshot(url, table))


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_an_invisible_key_is_there(
    mysql: Cursor, url: str, unique: str, set_global: Any, metadata: str
) -> None:
    set_global("binlog_row_metadata", metadata)
    mysql.execute(f"CREATE TABLE {unique} (id INT AUTO_INCREMENT INVISIBLE PRIMARY KEY, n INT)")
    with closing(connect(url)) as client, client.cursor() as writer:
        writer.execute(f"INSERT INTO {unique} (n) VALUES (7), (8)")
        made = snapshot(url, unique)
        begin = made.begin()
        writer.execute(f"UPDATE {unique} SET n = 9 WHERE id = 2")
    found = told(made, begin, made.latest(), "id", "n")
    assert sorted(found[:2]) == [("r", 1, 7), ("r", 2, 8)]
    assert found[2:] == [("u", 2, 9)]


def test_a_schema_may_spell_columns_in_another_case(mysql: Cursor, url: str, table: str) -> None:
    schema = pa.schema([("ID", pa.int32()), ("T", pa.string()), ("_op", pa.string())])
    made = feed(url, table, schema, startingPosition="snapshot")
    begin = made.begin()
    mysql.execute(f"UPDATE {table} SET t = 'new' WHERE id = 3")
    found = told(made, begin, made.latest(), "ID", "T")
    assert sorted(found[:-1]) == sorted(("r", at, f"x{at}") for at in range(100))
    assert found[-1] == ("u", 3, "new")


def test_a_key_of_tinyint_1_may_be_any_number(mysql: Cursor, url: str, unique: str) -> None:
    mysql.execute(f"CREATE TABLE {unique} (id TINYINT(1) PRIMARY KEY, n INT)")
    mysql.execute(f"INSERT INTO {unique} VALUES (-128, 0), (0, 0), (1, 0), (5, 0)")
    schema = pa.schema([("id", pa.int32()), ("n", pa.int32()), ("_op", pa.string())])
    made = feed(url, unique, schema, startingPosition="snapshot")
    begin = made.begin()
    mysql.execute(f"UPDATE {unique} SET n = 1 WHERE id IN (1, 5)")
    found = told(made, begin, {"gtids": begin["gtids"]}, "id", "n")
    assert sorted(found) == [("r", -128, 0), ("r", 0, 0), ("r", 1, 0), ("r", 5, 0)]


def test_rows_that_a_foreign_key_changes_are_in_a_snapshot_or_refused(
    mysql: Cursor, url: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    mysql.execute(f"CREATE TABLE {unique}_p (id INT PRIMARY KEY)")
    mysql.execute(
        f"CREATE TABLE {unique} (id INT PRIMARY KEY, p INT, CONSTRAINT {unique}_k FOREIGN KEY (p)"
        f" REFERENCES {unique}_p (id) ON DELETE CASCADE)"
    )
    mysql.execute(f"INSERT INTO {unique}_p VALUES (1)")
    mysql.execute(f"INSERT INTO {unique} VALUES (5, 1)")
    mysql.execute("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    are_logged = [value for _, value in mysql.fetchall()] == ["OFF"]
    late = feed(url, unique)
    late.between(late.begin(), late.latest())
    assert ("does not have these changes" in caplog.text) is not are_logged
    made = snapshot(url, unique)
    if not are_logged:
        with pytest.raises(StoreRefused, match=f"foreign key {unique}_k changes rows of table"):
            planned(made)
        return
    begin = made.begin()
    mysql.execute(f"DELETE FROM {unique}_p")
    assert told(made, begin, made.latest(), "id") == [("r", 5), ("d", 5)]


def test_a_snapshot_whose_log_was_purged_can_t_go_on(mysql: Cursor, url: str, table: str) -> None:
    made = snapshot(url, table, failOnDataLoss="false")
    begin = made.begin()
    mysql.execute(f"UPDATE {table} SET n = 0")
    mysql.execute("FLUSH BINARY LOGS")
    mysql.execute(f"UPDATE {table} SET n = 1")
    purge(mysql)
    with pytest.raises(UnreadLost, match="were purged before they were read"):
        made.between(begin, {"gtids": begin["gtids"]})


def test_a_table_that_is_emptied_in_mid_snapshot_is_told(
    mysql: Cursor, url: str, table: str
) -> None:
    made = snapshot(url, table)
    begin = made.begin()
    (part,) = made.between(begin, {"gtids": begin["gtids"]})
    mysql.execute(f"TRUNCATE {table}")
    with pytest.raises(StoreRefused, match="changes the table by a statement: TRUNCATE"):
        list(made.read(part))


def test_parts_of_a_large_table_are_read_side_by_side(mysql: Cursor, url: str, unique: str) -> None:
    mysql.execute(f"CREATE TABLE {unique} (id BIGINT UNSIGNED PRIMARY KEY, t TEXT)")
    for low in range(0, 50_000, 10_000):
        values = ", ".join(f"({at * at}, 'x')" for at in range(low, low + 10_000))
        mysql.execute(f"INSERT INTO {unique} VALUES {values}")
    mysql.execute(f"ANALYZE TABLE {unique}")
    made = snapshot(url, unique, numPartitions="4")
    begin = made.begin()
    end = {"gtids": begin["gtids"]}
    parts = [pa.Table.from_batches(made.read(one)) for one in made.between(begin, end)]
    assert [int(one) for part in parts for one in part["id"].to_pylist()] == [
        at * at for at in range(50_000)
    ]
    assert len(parts) == 4
    assert max(map(len, parts)) < 25_000
