"""Followed tables that are altered: rows are told as the table was when they were logged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql_following import between, feed, logging_server, read, rows, told
from integration.support.mysql_reading import source, values
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect
from pymysql import MySQLError
from pymysql.cursors import Cursor

from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import StoreRefused, ValueUnreadable
from sparkonce.reading import Position

Row = dict[str, Any]
Told = tuple[Any, ...]
Set = Callable[[str, object], None]


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


LEAST = {"mysql": "MINIMAL", "mariadb": "NO_LOG"}
"""What each server has by default."""


@pytest.fixture(params=["FULL", "LEAST"])
def metadata(request: pytest.FixtureRequest, set_global: Set, mysql_name: str) -> str:
    wanted = LEAST[mysql_name] if request.param == "LEAST" else request.param
    set_global("binlog_row_metadata", wanted)
    return str(request.param)


MONITOR = "REPLICATION CLIENT"

NAMES = ("a", "b", "c", "t")
KEYS = {
    "(a)": "a",
    "(b)": "b",
    "(c, a)": "ac",
    "(t(3), b)": "tb",
    "(t)": "t",
}


DROPS = (
    "ALTER TABLE {table} DROP PRIMARY KEY",
    "ALTER TABLE {table} DROP INDEX `PRIMARY`",
    "DROP INDEX `PRIMARY` ON {table}",
)
NUMBERS = ("INT", "BIGINT", "BIGINT UNSIGNED", "DECIMAL(12,0)")
TEXTS = (
    "VARCHAR(9)",
    "CHAR(9) CHARACTER SET latin1",
    "VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
)


@dataclass
class History:
    """A table whose key and columns change between its rows, and what a stream must say of these.

    Attributes:
        named: whether the log has their key.
        parts: where the rows between two changes begin and end, and how they must be told.
        altered: transactions that changed the table.
    """

    mysql: Cursor
    table: str
    made: MySqlFeed
    draw: random.Random
    named: bool
    key: str = ""
    unique: str = ""
    rows: list[Row] = field(default_factory=list)
    parts: list[tuple[Position, Position, list[Told]]] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)

    def write(self) -> None:
        """Insert, update and delete some rows."""
        begin, expected = self.made.latest(), list[Told]()
        for _ in range(self.draw.randrange(3, 7)):
            what = self.draw.choice("cuuuud") if self.rows else "c"
            changes = {"c": self._insert, "u": self._update, "d": self._delete}[what]()
            expected += [(op, *(str(row[one]) for one in NAMES)) for op, row in changes]
        self.parts.append((begin, self.made.latest(), expected))

    def _insert(self) -> list[tuple[str, Row]]:
        row = {one: self._value(one) for one in NAMES}
        self._run(f"INSERT INTO {self.table} (a, b, c, t) VALUES (%s, %s, %s, %s)", *row.values())
        self.rows.append(row)
        return [("c", row.copy())]

    def _update(self) -> list[tuple[str, Row]]:
        row, changed = self.draw.choice(self.rows), self.draw.sample(NAMES, 2)
        old, new = row.copy(), {one: self._value(one) for one in changed}
        values = ", ".join(f"{one} = '{value}'" for one, value in new.items())
        self._run(f"UPDATE {self.table} SET {values} WHERE a = {row['a']} AND b = {row['b']}")
        row |= new
        moved = {*changed} & {*(self.key or (self.unique if self.named else ""))}
        return [("d", old), ("c", row.copy())] if moved else [("u", row.copy())]

    def _delete(self) -> list[tuple[str, Row]]:
        row = self.rows.pop()
        self._run(f"DELETE FROM {self.table} WHERE a = {row['a']} AND b = {row['b']}")
        return [("d", row)]

    def alter(self) -> None:
        """Change the key or the columns, by one of the ways there are."""
        keys = (self._other_key, self._no_key, self._unique)
        columns = (self._swap_names, self._move, self._retype)
        tables = (self._anew, self._copy)
        self.draw.choice(keys + columns + tables)()

    def _other_key(self) -> None:
        shown, key = self.draw.choice([*KEYS.items()])
        drop = "DROP PRIMARY KEY, " if self.key else ""
        self._alter(f"ALTER TABLE {self.table} {drop}ADD PRIMARY KEY {shown}")
        self.key = key

    def _no_key(self) -> None:
        if self.key:
            self._alter(self.draw.choice(DROPS).format(table=self.table))
            self.key = ""

    def _unique(self) -> None:
        """The server takes it for the key where there is none."""
        if self.unique:
            self._run(f"DROP INDEX u ON {self.table}")
        self.unique = self.draw.choice(("", *NAMES))
        if self.unique:
            self._run(f"CREATE UNIQUE INDEX u ON {self.table} ({self.unique})")

    def _swap_names(self) -> None:
        one, other = self.draw.sample("abc", 2)
        renamed = f"RENAME COLUMN {one} TO {other}, RENAME COLUMN {other} TO {one}"
        self._alter(f"ALTER TABLE {self.table} {renamed}")
        swapped = {ord(one): other, ord(other): one}
        self.key, self.unique = (each.translate(swapped) for each in (self.key, self.unique))
        for row in self.rows:
            row[one], row[other] = row[other], row[one]

    def _move(self) -> None:
        column = self.draw.choice("abc")
        self._alter(f"ALTER TABLE {self.table} MODIFY {column} INT NOT NULL FIRST")

    def _retype(self) -> None:
        column = self.draw.choice(NAMES)
        kind = self.draw.choice(TEXTS if column == "t" else NUMBERS)
        self._alter(f"ALTER TABLE {self.table} MODIFY {column} {kind} NOT NULL")

    def _anew(self) -> None:
        self._alter(f"DROP TABLE {self.table}")
        self._create(self.table)
        self.rows = []

    def _copy(self) -> None:
        """As gh-ost and pt-online-schema-change do."""
        new, old = (f"{self.table}_{len(self.altered)}{one}" for one in ("new", "old"))
        self._create(new)
        self._run(f"INSERT INTO {new} (a, b, c, t) SELECT a, b, c, t FROM {self.table}")
        self._alter(f"RENAME TABLE {self.table} TO {old}, {new} TO {self.table}")

    def _create(self, table: str) -> None:
        self.unique, (shown, self.key) = "", self.draw.choice([*KEYS.items()])
        ints = ", ".join(f"{one} INT NOT NULL" for one in self.draw.sample("abc", 3))
        self._run(f"CREATE TABLE {table} ({ints}, t VARCHAR(9) NOT NULL, PRIMARY KEY {shown})")

    def _value(self, name: str) -> int | str:
        number = self.draw.randrange(10**8)
        return f"{number:08d}" if name == "t" else number

    def _alter(self, sql: str) -> None:
        before = self.made.latest()
        self._run(sql)
        self.altered.append(between(self.made, before, self.made.latest()))

    def _run(self, sql: str, *args: Any) -> None:
        self.mysql.execute(sql, args or None)


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 20))])
def test_the_key_of_a_row_is_the_one_that_it_was_logged_with(
    mysql: Cursor, url: str, unique: str, metadata: str, seed: int
) -> None:
    """Whoever reads it again, after each ALTER, is told the same, or that nothing can be told."""
    columns = "a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, t VARCHAR(9) NOT NULL"
    mysql.execute(f"CREATE TABLE {unique} ({columns})")
    made = feed(url, unique, pa.schema([(one, pa.string()) for one in (*NAMES, "_op")]))
    history = History(mysql, unique, made, random.Random(seed), metadata == "FULL")
    for _ in range(10):
        history.alter()
        history.write()
    for after, end, expected in history.parts:
        try:
            assert told(feed(url, unique, made.schema), after, end, *NAMES) == expected
        except StoreRefused:
            assert metadata == "LEAST"
            assert end != history.parts[-1][1]
    if metadata == "FULL":
        passing = feed(url, unique, made.schema, skipTransactions=",".join(history.altered))
        all_of_it = [one for _, _, expected in history.parts for one in expected]
        assert told(passing, history.parts[0][0], passing.latest(), *NAMES) == all_of_it


def test_parts_that_were_planned_are_told_by_the_key_of_then(
    mysql: Cursor, url: str, unique: str, metadata: str
) -> None:
    mysql.execute(f"CREATE TABLE {unique} (a INT PRIMARY KEY, b INT NOT NULL)")
    made = feed(url, unique)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {unique} VALUES (1, 1)")
    mysql.execute(f"UPDATE {unique} SET a = 2")
    end = made.latest()
    assert made.advance(begin, end, None) == end
    parts = made.between(begin, end)
    mysql.execute(f"ALTER TABLE {unique} DROP PRIMARY KEY, ADD PRIMARY KEY (b)")
    later = feed(url, unique)
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
    mysql: Cursor, url: str, unique: str, metadata: str, kind: str
) -> None:
    """Also where both are equal for the server, as a sink may tell them apart."""
    mysql.execute("SET SESSION sql_mode = ''")
    mysql.execute(f"CREATE TABLE {unique} (k {kind} PRIMARY KEY, n INT) CHARACTER SET utf8mb4")
    first, *others = SPELLINGS[kind]
    mysql.execute(f"INSERT INTO {unique} VALUES ({first}, 0)")
    made = feed(url, unique, pa.schema([("n", pa.int32()), ("_op", pa.string())]))
    begin, expected, shown = made.begin(), list[Told](), [_shown(mysql, unique)]
    for number, one in enumerate(others):
        mysql.execute(f"UPDATE {unique} SET k = {one}, n = {number + 1}")
        shown.append(_shown(mysql, unique))
        moved = shown[-1] != shown[-2]
        expected += [("d", number), ("c", number + 1)] if moved else [("u", number + 1)]
    assert told(made, begin, made.latest(), "n") == expected, (metadata, shown)


def _shown(mysql: Cursor, table: str) -> Any:
    mysql.execute(f"SELECT CAST(k AS BINARY) FROM {table}")
    return mysql.fetchone()


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
    mysql: Cursor, url: str, unique: str, set_global: Set, was: str
) -> None:
    """A table has columns of one type, and then each gets another one."""
    set_global("binlog_row_metadata", "FULL")
    mysql.execute("SET time_zone = '+00:00'")
    names = {f"v{at}": kind for at, kind in enumerate(TYPES)}
    columns = (f"{name} {was}" for name in names)
    mysql.execute(f"CREATE TABLE {unique} ({', '.join(columns)}) CHARACTER SET utf8mb4")
    begin = feed(url, unique).begin()
    mysql.execute(f"INSERT INTO {unique} VALUES ({', '.join([TYPES[was]] * len(TYPES))})")
    end = feed(url, unique).latest()
    mysql.execute(f"CREATE TABLE {unique}_n SELECT * FROM {unique}")
    mysql.execute(f"DELETE FROM {unique}")
    modified = (f"MODIFY {name} {kind}" for name, kind in names.items())
    mysql.execute(f"ALTER TABLE {unique} {', '.join(modified)}")
    known = feed(url, unique).schema
    for name, kind in names.items():
        schema = pa.schema([known.field(name)])
        try:
            found = read(feed(url, unique, schema), begin, end)[name].to_pylist()
        except (StoreRefused, ValueUnreadable):
            continue
        there = values(source(url, schema, dbtable=f"{unique}_n")[1])[name].to_pylist()
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
    assert all("Not all words of column 'v' are known" in one for one in refused)
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


def test_words_that_are_not_known_are_told_at_the_start(
    mysql: Cursor, url: str, unique: str, metadata: str
) -> None:
    columns = "id INT PRIMARY KEY, v ENUM('😀', 'x')"
    mysql.execute(f"CREATE TABLE {unique} ({columns}) CHARACTER SET utf8mb4")
    made = feed(url, unique)
    some = feed(url, unique, pa.schema([("id", pa.int32()), ("_op", pa.string())]))
    at = made.latest()
    if metadata == "FULL":
        made.between(at, at)
        return
    with pytest.raises(StoreRefused, match="Not all words of column 'v' are known"):
        made.between(at, at)
    mysql.execute(f"INSERT INTO {unique} VALUES (1, 'x')")
    assert told(some, at, some.latest(), "id") == [("c", 1)]


def test_unique_keys_of_long_texts_may_come_and_go(
    mysql: Cursor, url: str, unique: str, metadata: str, mysql_name: str
) -> None:
    """Each has a column in the log of which the server does not tell."""
    if mysql_name == "mysql":
        pytest.skip("MySQL has no such keys")
    mysql.execute(f"CREATE TABLE {unique} (id INT PRIMARY KEY, t TEXT, n BIGINT UNSIGNED)")
    made, fixed = feed(url, unique), feed(url, unique, startingPosition="snapshot")
    begin, snapshot, ends = made.begin(), fixed.begin(), list[Position]()
    for number, change in enumerate(
        ("ADD UNIQUE (t)", "ADD UNIQUE u (n, t), ADD UNIQUE (t, n)", "DROP INDEX u", "DROP KEY t")
    ):
        mysql.execute(f"INSERT INTO {unique} VALUES ({number}, '{number}', {number})")
        ends.append(made.latest())
        mysql.execute(f"ALTER TABLE {unique} {change}")
    mysql.execute(f"INSERT INTO {unique} VALUES (4, '4', 4)")
    expected = [("c", one, str(one), one) for one in range(5)]
    for reader in (made, feed(url, unique), fixed):
        assert told(reader, begin, reader.latest(), "id", "t", "n") == expected, metadata
        for end in ends:
            assert reader.advance(begin, end, 10) == end
    assert told(fixed, snapshot, {"gtids": snapshot["gtids"]}, "id") == []


def test_who_may_not_see_all_columns_needs_their_names(
    mysql: Cursor, url: str, unique: str, metadata: str
) -> None:
    """By their place they would be taken for each other."""
    mysql.execute(f"CREATE TABLE {unique} (a BIGINT UNSIGNED PRIMARY KEY, b BIGINT UNSIGNED)")
    mysql.execute(f"CREATE USER {unique}@'127.0.0.1' IDENTIFIED BY 'secret'")
    mysql.execute(f"GRANT SELECT (b) ON {unique} TO {unique}@'127.0.0.1'")
    mysql.execute(f"GRANT REPLICATION SLAVE, {MONITOR} ON *.* TO {unique}@'127.0.0.1'")
    login = {"user": unique, "password": "secret"}
    made = feed(url.replace("root@", ""), unique, **login)
    begin = made.begin()
    mysql.execute(f"INSERT INTO {unique} VALUES (1, 2)")
    if metadata == "FULL":
        assert told(made, begin, made.latest(), "b") == [("c", 2)]
        return
    with pytest.raises(StoreRefused, match="may not see all columns"):
        told(made, begin, made.latest(), "b")


def test_what_a_stream_can_t_tell_is_said_at_the_start(
    mysql: Cursor, url: str, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    mysql.execute(f"CREATE TABLE {unique} (id INT UNIQUE, n INT)")
    made = feed(url, unique, pa.schema([("n", pa.int32())]))
    made.between(made.begin(), made.latest())
    first, second = (one.message for one in caplog.records)
    assert f"{unique} has no primary key" in first
    assert f"{unique} has no column _op" in second
    mysql.execute(f"ALTER TABLE {unique} ADD PRIMARY KEY (id)")
    caplog.clear()
    made = feed(url, unique)
    made.between(made.begin(), made.latest())
    assert not caplog.records


def test_a_key_that_the_server_has_made_and_hides_is_the_key(
    mysql: Cursor, url: str, unique: str, metadata: str, mysql_name: str, set_global: Set
) -> None:
    if mysql_name == "mariadb":
        pytest.skip("MariaDB makes none")
    set_global("show_gipk_in_create_table_and_information_schema", "OFF")
    mysql.execute("SET SESSION sql_generate_invisible_primary_key = ON")
    mysql.execute(f"CREATE TABLE {unique} (n INT)")
    mysql.execute(f"INSERT INTO {unique} VALUES (7)")
    made = feed(url, unique, startingPosition="snapshot")
    begin = made.begin()
    mysql.execute(f"UPDATE {unique} SET n = 8")
    mysql.execute(f"UPDATE {unique} SET my_row_id = 2")
    expected = [("r", 1, 7), ("u", 1, 8), ("d", 1, 8), ("c", 2, 8)]
    assert told(made, begin, made.latest(), "my_row_id", "n") == expected, metadata


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
    mysql: Cursor, url: str, unique: str, metadata: str, mysql_name: str, begins: str
) -> None:
    if mysql_name == "mysql":
        pytest.skip("MySQL has no such tables")
    mysql.execute(f"CREATE TABLE {unique} (id INT PRIMARY KEY, n INT)")
    made = feed(url, unique)
    mysql.execute(f"ALTER TABLE {unique} {begins}")
    begin = made.latest()
    mysql.execute(f"INSERT INTO {unique} (id, n) VALUES (1, 1)")
    mysql.execute(f"UPDATE {unique} SET n = 2")
    end = made.latest()
    mysql.execute("SET SESSION system_versioning_alter_history = KEEP")
    mysql.execute(f"ALTER TABLE {unique} {PERIODS[begins]}")
    why = "system versioned" if metadata == "FULL" else "can't be told that were logged before"
    with pytest.raises(StoreRefused, match=why):
        rows(feed(url, unique), begin, end)


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
        assert told(feed(url, table), begin, end, "v") == [("c", None), ("d", None)], metadata
        mysql.execute("SET SESSION sql_log_bin = 0")
        mysql.execute(f"ALTER TABLE {table} MODIFY v {became}")
        mysql.execute("SET SESSION sql_log_bin = 1")
        with pytest.raises(StoreRefused, match="were logged with other columns than it has"):
            told(feed(url, table), begin, end, "v")
