"""Followed tables that are altered: rows are told as the table was when they were logged."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, changes, feed, read, rows, source, values
from pymysql import MySQLError
from pymysql.cursors import Cursor

from sparkonce.errors import StoreRefused, ValueUnreadable
from sparkonce.reading import Position

Set = Callable[[str, object], None]


MONITOR = "REPLICATION CLIENT"


def test_parts_that_were_planned_are_told_by_the_key_of_then(table: Table, metadata: str) -> None:
    table.create("a INT PRIMARY KEY, b INT NOT NULL")
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, 1)", f"UPDATE {table} SET a = 2")
    end = made.latest()
    assert made.advance(begin, end, None) == end
    parts = made.between(begin, end)
    table.run(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (b)")
    later = table.feed()
    found = [row for part in parts for one in later.read(part) for row in one.to_pylist()]
    assert [(row["_op"], row["a"]) for row in found] == [("c", 1), ("d", 1), ("c", 2)], metadata


SPELLINGS = {
    "CHAR(9)": (r"'a'", r"'a\0'", r"'a\0\0'", r"'A'", r"'á'", r"'a\t'", r"''"),
    "CHAR(9) COLLATE utf8mb4_bin": (r"'a'", r"'a\0'", r"'A'", r"'a'"),
    "VARCHAR(300)": (r"'a'", r"'a '", r"'a\0'", r"'A'", r"'ǆ'", r"'ǅ'"),
    "BINARY(4)": ("x'61'", "x'6100'", "x'61000000'", "x'6120'", "x'0061'"),
    "VARBINARY(300)": ("x'61'", "x'6100'", "x'61'", "x''"),
    "DOUBLE": ("0.0", "-0.0", "1e-300"),
    "FLOAT": ("0.0", "-0.0", "0.1"),
    "DECIMAL(30,3)": ("0", "-0.001", "0.001", "0"),
    "DATE": ("'2024-01-01'", "'0000-00-00'"),
    "TIMESTAMP(3)": ("'2024-01-01 00:00:00.5'", "'0000-00-00'"),
    "ENUM('a', '\U0001f600')": ("1", "2", "1"),
    "BIT(9)": ("1", "257", "1"),
    "TIME(2)": ("'-00:00:00.01'", "'00:00:00'"),
    "YEAR": ("0", "2000"),
}


@pytest.mark.parametrize("kind", SPELLINGS)
def test_a_key_changes_where_the_server_shows_another_one(
    table: Table, metadata: str, kind: str
) -> None:
    """Also where both are equal for the server, as a sink may tell them apart."""
    table.run("SET SESSION sql_mode = ''")
    table.run(f"CREATE TABLE {table} (k {kind} PRIMARY KEY, n INT) CHARACTER SET utf8mb4")
    first, *others = SPELLINGS[kind]
    table.run(f"INSERT INTO {table} VALUES ({first}, 0)")
    made = table.feed(pa.schema([("n", pa.int32()), ("_op", pa.string())]))
    begin, expected, shown = made.begin(), list[tuple[Any, ...]](), [_shown(table)]
    for number, one in enumerate(others):
        table.run(f"UPDATE {table} SET k = {one}, n = {number + 1}")
        shown.append(_shown(table))
        moved = shown[-1] != shown[-2]
        expected += [("d", number), ("c", number + 1)] if moved else [("u", number + 1)]
    assert changes(made, begin, None, "n") == expected, (metadata, shown)


def _shown(table: Table) -> Any:
    return table.rows("CAST(k AS BINARY)")[0]


TYPES = {
    "SMALLINT": "-300",
    "BIGINT UNSIGNED": "18446744073709551615",
    "TINYINT(1)": "1",
    "DOUBLE": "0.125",
    "FLOAT": "0.1",
    "DECIMAL(10,3)": "0.125",
    "DECIMAL(20,1)": "7.5",
    "BIT(9)": "257",
    "YEAR": "2024",
    "DATE": "'2024-02-29'",
    "DATETIME(6)": "'2024-02-29 23:59:59.999999'",
    "TIMESTAMP(3) NULL": "'2024-02-29 23:59:59.5'",
    "TIME(3)": "'12:34:56.789'",
    "VARCHAR(30)": "'2024-02-29'",
    "VARCHAR(20)": "'12.5'",
    "CHAR(20) CHARACTER SET latin1": "'é'",
    "VARBINARY(20)": "x'31'",
    "ENUM('7', 'x')": "'7'",
    "JSON": "'[1, 2]'",
}


@pytest.mark.parametrize("was", ["DOUBLE", *slow_cases(*TYPES)])
def test_a_value_from_before_is_as_a_read_had_it_or_refused(
    table: Table, set_global: Set, was: str
) -> None:
    """A table has columns of one type, and then each gets another one."""
    set_global("binlog_row_metadata", "FULL")
    table.run("SET time_zone = '+00:00'")
    names = {f"v{at}": kind for at, kind in enumerate(TYPES)}
    columns = (f"{name} {was}" for name in names)
    table.run(f"CREATE TABLE {table} ({', '.join(columns)}) CHARACTER SET utf8mb4")
    begin = table.feed().begin()
    table.run(f"INSERT INTO {table} VALUES ({', '.join([TYPES[was]] * len(TYPES))})")
    end = table.feed().latest()
    table.run(f"CREATE TABLE {table}_n SELECT * FROM {table}", f"DELETE FROM {table}")
    modified = (f"MODIFY {name} {kind}" for name, kind in names.items())
    table.run(f"ALTER TABLE {table} {', '.join(modified)}")
    known = table.feed().schema
    for name, kind in names.items():
        schema = pa.schema([known.field(name)])
        try:
            found = read(table.feed(schema), begin, end)[name].to_pylist()
        except (StoreRefused, ValueUnreadable):
            continue
        there = values(source(table.url, schema, dbtable=f"{table}_n")[1])[name].to_pylist()
        assert found == there, kind


CHARACTERS = "ax?'\\\"`,;\0\n\r\x1a\x01\t%_é€日\U0001f600\U0001f601 "
SETS = ("utf8mb4", "utf8mb3", "latin1", "cp1251", "utf16", "utf32", "ascii", "binary")


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 6))])
def test_words_of_an_enum_or_a_set_are_those_of_a_read_or_refused(
    mysql: Cursor, url: str, unique: str, metadata: str, seed: int
) -> None:
    draw = random.Random(seed)
    made = list[str]()
    for at in range(20):
        kind, charset = draw.choice(("ENUM", "SET")), draw.choice(SETS)
        words = {_word(draw, kind, charset) for _ in range(3)}
        column = f"v {kind}({', '.join(sorted(words))}) CHARACTER SET {charset}"
        try:
            mysql.execute(f"CREATE TABLE {unique}_{at} (id INT, {column})")
        except (MySQLError, UnicodeError):
            continue  # the server has no such words, or takes two of them for one
        made.append(f"{unique}_{at}")
    assert len(made) > 5
    refused = list[str]()
    for table in made:
        begin = feed(url, table).begin()
        for number in range(4):
            mysql.execute(f"INSERT IGNORE INTO {table} VALUES ({number}, {number})")
        followed, read_ = feed(url, table), source(url, None, dbtable=table)[1]
        try:
            found = read(followed, begin, followed.latest())["v"].to_pylist()
        except StoreRefused as error:
            refused.append(str(error))
            continue
        assert found == values(read_).sort_by("id")["v"].to_pylist()
    assert all("Not all members of column 'v' are known" in one for one in refused)
    assert metadata == "LEAST" or not refused


def _word(draw: random.Random, kind: str, charset: str) -> str:
    """As a literal; of bytes any."""
    if charset == "binary" and draw.random() < 0.5:
        return f"0x{bytes(draw.choices(range(256), k=draw.randrange(1, 4))).hex()}"
    letters = CHARACTERS.replace(",", "") if kind == "SET" else CHARACTERS
    word = "".join(draw.choices(letters, k=draw.randrange(1, 4)))
    return _quoted(word)


def _quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def test_words_that_are_not_known_are_told_at_the_start(table: Table, metadata: str) -> None:
    columns = "id INT PRIMARY KEY, v ENUM('😀', 'x')"
    table.run(f"CREATE TABLE {table} ({columns}) CHARACTER SET utf8mb4")
    made = table.feed()
    some = table.feed(pa.schema([("id", pa.int32()), ("_op", pa.string())]))
    at = made.latest()
    if metadata == "FULL":
        made.between(at, at)
        return
    with pytest.raises(StoreRefused, match="Not all members of column 'v' are known"):
        made.between(at, at)
    table.run(f"INSERT INTO {table} VALUES (1, 'x')")
    assert changes(some, at, None, "id") == [("c", 1)]


def test_unique_keys_of_long_texts_may_come_and_go(
    table: Table, metadata: str, mysql_name: str
) -> None:
    """Each has a column in the log of which the server does not tell."""
    if mysql_name == "mysql":
        pytest.skip("MySQL has no such keys")
    table.create("id INT PRIMARY KEY, t TEXT, n BIGINT UNSIGNED")
    made, fixed = table.feed(), table.feed(startingPosition="snapshot")
    begin, snapshot, ends = made.begin(), fixed.begin(), list[Position]()
    for number, change in enumerate(
        ("ADD UNIQUE (t)", "ADD UNIQUE u (n, t), ADD UNIQUE (t, n)", "DROP INDEX u", "DROP KEY t")
    ):
        table.run(f"INSERT INTO {table} VALUES ({number}, '{number}', {number})")
        ends.append(made.latest())
        table.run(f"ALTER TABLE {table} {change}")
    table.run(f"INSERT INTO {table} VALUES (4, '4', 4)")
    expected = [("c", one, str(one), one) for one in range(5)]
    for reader in (made, table.feed(), fixed):
        assert changes(reader, begin, None, "id", "t", "n") == expected, metadata
        for end in ends:
            assert reader.advance(begin, end, 10) == end
    assert changes(fixed, snapshot, {"gtids": snapshot["gtids"]}, "id") == []


def test_who_may_not_see_all_columns_needs_their_names(table: Table, metadata: str) -> None:
    """By their place they would be taken for each other."""
    table.create("a BIGINT UNSIGNED PRIMARY KEY, b BIGINT UNSIGNED")
    table.run(f"CREATE USER {table}@'127.0.0.1' IDENTIFIED BY 'secret'")
    table.run(f"GRANT SELECT (b) ON {table} TO {table}@'127.0.0.1'")
    table.run(f"GRANT REPLICATION SLAVE, {MONITOR} ON *.* TO {table}@'127.0.0.1'")
    login = {"user": table, "password": "secret"}
    made = feed(table.url.replace("root@", ""), table, **login)
    begin = made.begin()
    table.run(f"INSERT INTO {table} VALUES (1, 2)")
    if metadata == "FULL":
        assert changes(made, begin, None, "b") == [("c", 2)]
        return
    with pytest.raises(StoreRefused, match="may not see all columns"):
        changes(made, begin, None, "b")


def test_what_a_stream_can_t_tell_is_said_at_the_start(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    table.create("id INT UNIQUE, n INT")
    made = table.feed(pa.schema([("n", pa.int32())]))
    made.between(made.begin(), made.latest())
    first, second = (one.message for one in caplog.records)
    assert f"{table} has no primary key" in first
    assert f"{table} has no column _op" in second
    table.run(f"ALTER TABLE {table} ADD PRIMARY KEY (id)")
    caplog.clear()
    made = table.feed()
    made.between(made.begin(), made.latest())
    assert not caplog.records


def test_a_key_that_the_server_has_made_and_hides_is_the_key(
    table: Table, metadata: str, mysql_name: str, set_global: Set
) -> None:
    if mysql_name == "mariadb":
        pytest.skip("MariaDB makes none")
    set_global("show_gipk_in_create_table_and_information_schema", "OFF")
    table.run("SET SESSION sql_generate_invisible_primary_key = ON")
    table.create("n INT")
    table.run(f"INSERT INTO {table} VALUES (7)")
    made, begin = table.follow(startingPosition="snapshot")
    table.run(f"UPDATE {table} SET n = 8", f"UPDATE {table} SET my_row_id = 2")
    expected = [("r", 1, 7), ("u", 1, 8), ("d", 1, 8), ("c", 2, 8)]
    assert changes(made, begin, None, "my_row_id", "n") == expected, metadata


PERIODS = {
    "ADD SYSTEM VERSIONING": "DROP SYSTEM VERSIONING",
    "DROP PRIMARY KEY, ADD SYSTEM VERSIONING": "DROP SYSTEM VERSIONING",
    "ADD s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, ADD e TIMESTAMP(6) GENERATED ALWAYS AS ROW"
    " END, ADD PERIOD FOR SYSTEM_TIME (s, e), ADD SYSTEM VERSIONING": "DROP SYSTEM VERSIONING,"
    " DROP COLUMN s, DROP COLUMN e",
}
"""How a table gets a history, and loses it."""


@pytest.mark.parametrize("begins", PERIODS)
def test_rows_from_when_a_table_had_a_history_are_refused(
    table: Table, metadata: str, mysql_name: str, begins: str
) -> None:
    if mysql_name == "mysql":
        pytest.skip("MySQL has no such tables")
    table.create("id INT PRIMARY KEY, n INT")
    made = table.feed()
    table.run(f"ALTER TABLE {table} {begins}")
    begin = made.latest()
    table.run(f"INSERT INTO {table} (id, n) VALUES (1, 1)", f"UPDATE {table} SET n = 2")
    end = made.latest()
    table.run("SET SESSION system_versioning_alter_history = KEEP")
    table.run(f"ALTER TABLE {table} {PERIODS[begins]}")
    why = "system versioned" if metadata == "FULL" else "are unreadable if they were logged before"
    with pytest.raises(StoreRefused, match=why):
        rows(table.feed(), begin, end)


ALIKE = {
    "VARCHAR(9)": "VARCHAR(10)",
    "VARCHAR(8) CHARACTER SET latin1": "VARCHAR(2) CHARACTER SET utf8mb4",
    "CHAR(8) CHARACTER SET ascii": "BINARY(8)",
    "INT": "INT UNSIGNED",
    "FLOAT": "FLOAT NOT NULL",
    "DECIMAL(10,2)": "DECIMAL(10,3)",
    "DATETIME(1)": "DATETIME(2)",
    "BIT(9)": "BIT(10)",
}


@pytest.mark.parametrize("metadata", ["MINIMAL"], indirect=True)
def test_without_names_a_column_must_be_all_that_it_was(
    mysql: Cursor, url: str, unique: str, metadata: str
) -> None:
    """Where an ALTER is not in the log, its outcome tells of it."""
    for at, (was, became) in enumerate(ALIKE.items()):
        table = f"{unique}_{at}"
        mysql.execute(f"CREATE TABLE {table} (v {was})")
        made = feed(url, table)
        begin = made.begin()
        mysql.execute(f"INSERT INTO {table} VALUES (NULL)")
        mysql.execute(f"DELETE FROM {table}")
        end = made.latest()
        assert changes(feed(url, table), begin, end, "v") == [("c", None), ("d", None)], metadata
        mysql.execute("SET SESSION sql_log_bin = 0")
        mysql.execute(f"ALTER TABLE {table} MODIFY v {became}")
        mysql.execute("SET SESSION sql_log_bin = 1")
        with pytest.raises(StoreRefused, match="have other columns than the table"):
            changes(feed(url, table), begin, end, "v")
