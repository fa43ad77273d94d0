"""Changes that are drawn: a stream gives them as they were made, or stops by name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, between, changes, client, feed, rows, run
from integration.support.mysql_drawn_statements import Drawn, draw
from integration.support.servers.mysql import MySqlProcess
from pymysql.cursors import Cursor

from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import SparkonceError, StoreRefused
from sparkonce.reading import Position

Row = dict[str, Any]


Told = tuple[Any, ...]


NAMES = ("a", "b", "c", "t")


KEYS = {"(a)": "a", "(b)": "b", "(c, a)": "ac", "(t(3), b)": "tb", "(t)": "t"}


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
    table: Table, metadata: str, seed: int
) -> None:
    """Whoever reads it again, after each ALTER, is told the same, or that nothing can be told."""
    columns = "a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, t VARCHAR(9) NOT NULL"
    table.create(f"{columns}")
    made = table.feed(pa.schema([(one, pa.string()) for one in (*NAMES, "_op")]))
    history = History(table.client, table, made, random.Random(seed), metadata == "FULL")
    for _ in range(10):
        history.alter()
        history.write()
    for after, end, expected in history.parts:
        try:
            assert changes(table.feed(made.schema), after, end, *NAMES) == expected
        except StoreRefused:
            assert metadata == "LEAST"
            assert end != history.parts[-1][1]
    if metadata == "FULL":
        passing = table.feed(made.schema, skipTransactions=",".join(history.altered))
        all_of_it = [one for _, _, expected in history.parts for one in expected]
        assert changes(passing, history.parts[0][0], passing.latest(), *NAMES) == all_of_it


SETUP = [
    "CREATE DATABASE {db} CHARACTER SET utf8mb4",
    "CREATE DATABASE {db}2",
    "USE {db}",
    "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY k (n)) {how}",
    "CREATE TABLE o (id INT PRIMARY KEY, n INT, s VARCHAR(20), KEY k (n)) {others}",
    "CREATE TABLE {db}2.t (id INT PRIMARY KEY, n INT, s VARCHAR(20))",
    "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 3, NULL)",
    "INSERT INTO o VALUES (1, 1, 'a'), (2, 2, 'b')",
    "CREATE VIEW v AS SELECT * FROM t",
    "CREATE VIEW {db}2.v AS SELECT * FROM t",
    "CREATE TRIGGER into_t AFTER INSERT ON o FOR EACH ROW UPDATE t SET n = n + NEW.n",
    "CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA"
    " BEGIN INSERT INTO t VALUES (a, 3, 'f'); RETURN 1; END",
    "CREATE PROCEDURE change_t() UPDATE t SET n = n - 1 WHERE id = 1",
]


CLEANUP = [
    "SET foreign_key_checks = 0",
    *(f"DROP DATABASE IF EXISTS {{db}}{at}" for at in ("", "2", "3")),
    "DROP USER IF EXISTS {db}@localhost",
]

PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100),"

PARTS += " PARTITION p1 VALUES LESS THAN (1000))"

FORMS = ["", "", PARTS, "ENGINE=MyISAM"]


DEFINITION = """
SELECT column_name, column_type, column_key = 'PRI' FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = 't' ORDER BY ordinal_position
"""


@pytest.fixture(scope="module")
def trusting(server: MySqlProcess) -> MySqlProcess:
    """A server that logs names, and lets functions change tables."""
    trust = "SET GLOBAL log_bin_trust_function_creators = 1"
    run(server, "SET GLOBAL binlog_row_metadata = FULL", trust)
    return server


@contextmanager
def a_database(server: MySqlProcess, seed: int) -> Iterator[tuple[Cursor, str]]:
    """One with a table that may be changed by others, and its name."""
    db, dice = f"d{seed}", random.Random(seed)
    known = {"db": db, "how": dice.choice(FORMS), "others": dice.choice(FORMS)}
    with client(server.url) as mysql:
        try:
            for one in SETUP:
                mysql.execute(one.format(**known))
            yield mysql, db
        finally:
            for one in CLEANUP:
                mysql.execute(one.format(**known))


def outcome(server: MySqlProcess, seed: int, file: Path) -> str:
    """Run a statement that is drawn, between others that change rows, and follow the table.

    Returns:
        What came of it: "followed", "stopped" or "refused by the server".
    """
    with a_database(server, seed) as (mysql, db):
        drawn, url = draw(seed, db, str(file)), server.url.replace("/sparkonce_test", f"/{db}")
        made = feed(url, "t")
        begin, expected, definition = made.begin(), _content(mysql), _definition(mysql)
        mysql.execute("INSERT INTO t VALUES (7, 7, 'before')")
        done = _run(url, drawn)
        with suppress(pymysql.MySQLError):
            mysql.execute("UPDATE t SET s = 'after' WHERE id IN (1, 7)")
        try:
            found = rows(feed(url, "t", made.schema), begin, made.latest())
        except SparkonceError as error:
            if drawn.harmless and done:
                pytest.fail(f"{drawn} stops the stream: {error}")
            return "stopped"
        assert _definition(mysql) == definition, f"{drawn} passes unseen"
        assert _replayed(expected, found) == _content(mysql), f"{drawn} is lost"
        return "followed" if done else "refused by the server"


def _definition(mysql: Cursor) -> tuple[tuple[Any, ...], ...]:
    mysql.execute(DEFINITION)
    return mysql.fetchall()


def _run(url: str, drawn: Drawn) -> bool:
    """Whether the server did it."""
    with client(url) as session:
        session.execute("SET @a = 55")
        for name, value in drawn.settings.items():
            sign = " " if name == "NAMES" else "="
            with suppress(pymysql.MySQLError):
                session.execute(f"SET {name}{sign}'{value}'")
        done = False
        for one in drawn.text.split("|"):
            with suppress(pymysql.MySQLError):
                session.execute(one.encode())
                done = True
        return done


def _content(mysql: Cursor) -> dict[int, Any]:
    mysql.execute("SELECT id, n, s FROM t")
    return {row[0]: row for row in mysql.fetchall()}


def _replayed(content: dict[int, Any], changes: list[dict[str, Any]]) -> dict[int, Any]:
    for change in changes:
        row = (change["id"], change["n"], change["s"])
        if change["_op"] == "d":
            content.pop(row[0])
        else:
            content[row[0]] = row
    return content


@pytest.mark.parametrize("many", [25, *slow_cases(400)])
def test_a_table_is_followed_or_its_stream_stops(
    trusting: MySqlProcess, tmp_path: Path, many: int
) -> None:
    """Whatever statements it is changed by."""
    file = tmp_path / "rows"
    file.write_text("88\t8\tloaded\n")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    seeds = random.sample(range(10**6), many)
    assert "followed" in [outcome(trusting, seed, file) for seed in seeds]
