"""`snapshotWhere`: a snapshot has the rows for which the server itself finds the condition true."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, changes, each_epoch, feed, planned
from pymysql.cursors import Cursor

from pyspark_mysql.follow.feed import MySqlFeed
from pyspark_mysql.follow.snapshot import SnapshotPiece
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.reading import Position

TEXTS = ("", "a", "A", "ä", "ae", "ss", "ß", "straße", "a ", "ab", "it''s", "100%", "x_y", "é")
NUMBERS = ("0", "1", "-1", "2", "127", "-128", "40", "41")
FRACTIONS = ("0.5", "-0.5", "0.1", "1.25", "-99.99")
DAYS = ("'1970-01-01'", "'2026-01-31'", "'2026-02-01'", "'1999-12-31'")
TIMES = ("'2026-01-31 08:15:00'", "'2026-01-31 08:15:00.5'", "'2026-02-01 00:00:00'")
COLLATIONS = {
    "mysql": ("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_ja_0900_as_cs"),
    "mariadb": ("utf8mb4_nopad_bin", "utf8mb4_unicode_520_ci", "utf8mb4_general_nopad_ci"),
}
SHARED = (
    "utf8mb4_bin",
    "utf8mb4_general_ci",
    "latin1_german2_ci",
    "latin1_bin",
    "ascii_general_ci",
)

OF_KEY = pa.schema([("id", pa.int32()), ("_op", pa.string())])


@dataclass
class Drawn:
    """A drawn column: its definition, and values that it may have and be compared with."""

    name: str
    definition: str
    stored: Sequence[str]
    asked: Sequence[str]
    is_text: bool = False


def number(draw: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    kinds = ("TINYINT", "INT", "BIGINT", "SMALLINT", "BOOLEAN", "MEDIUMINT")
    return draw.choice(kinds), NUMBERS, (*NUMBERS, *FRACTIONS, "TRUE", "false")


def unsigned(_: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    most = "18446744073709551615"
    return "BIGINT UNSIGNED", ("0", "1", most), (*NUMBERS, *FRACTIONS, most)


def fraction(draw: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    kind = draw.choice(("DECIMAL(10,2)", "DECIMAL(45,5)", "DOUBLE"))
    return kind, (*NUMBERS, *FRACTIONS), (*NUMBERS, *FRACTIONS)


def moment(draw: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    kind = draw.choice(("DATETIME", "DATETIME(6)", "TIMESTAMP NULL", "TIMESTAMP(2) NULL"))
    return kind, (*TIMES, *DAYS[1:]), (*TIMES, *DAYS, "TIMESTAMP '2026-01-31 08:15:01'")


def day(_: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    return "DATE", DAYS, (*DAYS, "DATE '2026-02-01'")


def text(draw: random.Random, collation: str) -> tuple[str, Sequence[str], Sequence[str]]:
    charset = collation.partition("_")[0]
    kind = draw.choice(("VARCHAR(20)", "CHAR(20)", "TEXT"))
    fit = [f"'{one}'" for one in TEXTS if charset != "ascii" or one.isascii()]
    return f"{kind} CHARACTER SET {charset} COLLATE {collation}", fit, fit


def member(_: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    members = ("'open'", "'closed'", "'Lost'")
    return f"ENUM({', '.join(members)})", members, (*members, "'lost'", "'OPEN'", "''", "'x'")


def other(draw: random.Random) -> tuple[str, Sequence[str], Sequence[str]]:
    """A type that is only asked for nulls."""
    kinds = {"BLOB": "X'00ff'", "YEAR": "2026", "JSON": "'{}'", "FLOAT": "0.1", "TIME": "'08:15'"}
    kind, value = draw.choice([*kinds.items()])
    return kind, [value], []


def drawn_columns(draw: random.Random, collations: Sequence[str]) -> list[Drawn]:
    found = list[Drawn]()
    for at in range(draw.randrange(1, 5)):
        families = (number, unsigned, fraction, moment, day, member, other, text, text)
        family: Any = draw.choice(families)
        is_text = family in (text, member)
        made = family(draw, draw.choice(collations)) if family is text else family(draw)
        nulls = draw.choice(("NULL", "NOT NULL")) if "NULL" not in made[0] else ""
        stored = [*made[1], *(["NULL"] if nulls != "NOT NULL" else [])]
        found.append(Drawn(f"c{at} `x", f"{made[0]} {nulls}", stored, made[2], is_text))
    return found


def condition(draw: random.Random, columns: Sequence[Drawn], depth: int = 3) -> str:
    """A condition of the forms that the option takes, with their spellings."""
    if depth and draw.random() < 0.6:
        parts = [condition(draw, columns, depth - 1) for _ in range(draw.randrange(1, 4))]
        inner = draw.choice((" AND ", " OR ", " or\n")).join(parts)
        return draw.choice(("{}", "({})", "NOT ({})", "not {} and {}")).replace("{}", inner)
    column = draw.choice(columns)
    name = f"`{column.name.replace('`', '``')}`"
    if not column.asked or draw.random() < 0.15:
        return f"{name} IS {draw.choice(('', 'NOT '))}NULL"
    first, second = (draw.choice(column.asked) for _ in range(2))
    no = draw.choice(("", "NOT "))
    forms = [
        *(f"{name} {one} {first}" for one in ("=", "<>", "!=", "<", "<=", ">", ">=")),
        f"{name} {no}IN ({first}, {second})",
        f"{name} {no}BETWEEN {first} AND {second}",
        *([f"{name} {no}LIKE {first}", f"{name} LIKE '%s%'"] if column.is_text else []),
    ]
    return draw.choice(forms)


@dataclass
class Filtered:
    """A drawn table, and a feed whose snapshot has a condition."""

    table: Table
    draw: random.Random
    columns: list[Drawn]

    def make(self) -> None:
        definitions = [f"{self._quoted(one)} {one.definition}" for one in self.columns]
        fit = [one for one in self.columns if one.asked and "TEXT" not in one.definition]
        indexed = [one for one in fit if self.draw.random() < 0.5]
        indexes = [f"INDEX ({self._quoted(one)})" for one in indexed]
        parted = " PARTITION BY KEY (id) PARTITIONS 3" if self.draw.random() < 0.2 else ""
        self.table.create(", ".join(["id INT PRIMARY KEY", *definitions, *indexes]), parted)
        for low in range(0, 60, 20):
            rows = ", ".join(map(self._row, range(low, low + 20)))
            self.table.run(f"INSERT INTO {self.table} VALUES {rows}")
        self.table.run(f"ANALYZE TABLE {self.table}")

    def change(self, share: float) -> None:
        for at in [one for one in range(60) if self.draw.random() < share]:
            column = self.draw.choice(self.columns)
            value = self.draw.choice(column.stored)
            self.table.run(
                self.draw.choice(
                    (
                        f"UPDATE {self.table} SET {self._quoted(column)} = {value} WHERE id = {at}",
                        f"REPLACE INTO {self.table} VALUES {self._row(at)}",
                        f"DELETE FROM {self.table} WHERE id = {at}",
                        f"UPDATE IGNORE {self.table} SET id = {at + 1000} WHERE id = {at}",
                        f"UPDATE IGNORE {self.table} SET id = {at} WHERE id = {at - 1}",
                    )
                )
            )

    def _row(self, key: int) -> str:
        return f"({key}, {', '.join(self.draw.choice(one.stored) for one in self.columns)})"

    def _quoted(self, column: Drawn) -> str:
        return f"`{column.name.replace('`', '``')}`"


BLANKS = ("'a\tb'", "'a'", "'a '", "'zzz'", "'A'", "'ä'", "'B'", "'_'", "''")


@pytest.mark.parametrize("kind", ["CHAR(20)", "VARCHAR(20)"])
def test_an_index_of_texts_changes_nothing(table: Table, mysql_name: str, kind: str) -> None:
    """It drops blanks, and may take two texts for one by the collation of the connection."""
    collations = ("utf8mb4_bin", "latin1_bin", *COLLATIONS[mysql_name])
    columns = [f"c{at}" for at in range(len(collations))]
    definitions = [
        f"{name} {kind} CHARACTER SET {one.partition('_')[0]} COLLATE {one}, INDEX ({name})"
        for name, one in zip(columns, collations, strict=True)
    ]
    table.create(f"id INT PRIMARY KEY, {', '.join(definitions)}, n INT")
    for at, value in enumerate(BLANKS * 3):
        table.run(f"INSERT INTO {table} VALUES ({at}, {', '.join([value] * len(columns))}, 0)")
    wheres = [
        f"{name} {comparison}"
        for name in columns
        for comparison in (
            *("< 'a '", "<= 'a '", "= 'a '", "> 'a '", "BETWEEN 'a' AND 'a '"),
            *("BETWEEN 'a' AND 'ä'", "BETWEEN 'A' AND 'a'", "IN ('a ', 'ä')", "LIKE 'a%'"),
        )
    ]
    begun = []
    for where in wheres:
        made = table.feed(OF_KEY, startingPosition="snapshot", snapshotWhere=where)
        begin = made.begin()
        begun.append((where, made, begin, snapshot_of(made, begin, None)))
    table.run(f"UPDATE {table} SET n = 1")
    for where, made, begin, before in begun:
        assert snapshot_of(made, begin, None) == before, where


def test_a_statement_is_as_short_as_the_server_takes(
    table: Table, set_global: Callable[[str, object], None]
) -> None:
    set_global("max_allowed_packet", 1024 * 1024)
    table.create("id INT PRIMARY KEY, t TEXT, `row` INT, n INT")
    for low in range(0, 400, 50):
        values = ", ".join(f"({at}, REPEAT('x', 3000), 1, 0)" for at in range(low, low + 50))
        table.run(f"INSERT INTO {table} VALUES {values}")
    where = "t LIKE 'x%' AND `row` = 1"
    made = table.feed(OF_KEY, startingPosition="snapshot", snapshotWhere=where)
    begin = made.begin()
    table.run(f"UPDATE {table} SET n = 1")
    assert len(snapshot_of(made, begin, None)) == 400


def test_a_condition_that_no_longer_fits_the_table_is_named(orders: Table) -> None:
    made = orders.feed(OF_KEY, startingPosition="snapshot", snapshotWhere="status = 'open'")
    begin = made.begin()
    orders.run(f"ALTER TABLE {orders} RENAME COLUMN status TO state")
    with pytest.raises(StoreRefused, match="no longer fits table"):
        orders.feed(OF_KEY, startingPosition="snapshot").between(begin, made.latest())


def test_many_values_are_read_in_one_pass(orders: Table) -> None:
    values = ", ".join(f"'v{at}'" for at in range(20_000))
    made = orders.feed(startingPosition="snapshot", snapshotWhere=f"status IN ({values})")
    began = time.monotonic()
    made.begin()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 12))])
def test_a_snapshot_has_the_rows_that_the_server_finds(
    mysql: Cursor, table: Table, mysql_name: str, seed: int
) -> None:
    draw = random.Random(seed)
    columns = drawn_columns(draw, (*SHARED, *COLLATIONS[mysql_name]))
    drawn = Filtered(table, draw, columns)
    mysql.execute("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES'")
    drawn.make()
    for _ in range(6):
        where = condition(draw, columns)
        made = table.feed(OF_KEY, startingPosition="snapshot", snapshotWhere=where)
        # Without IF an index of MariaDB finds 1 where c = 1.25.
        found = table.run(f"SELECT id FROM {table} WHERE IF({where}, 1, 0)")
        begin, expected = made.begin(), sorted(found)
        most = draw.choice((None, 7))
        for share in (0, 0.3, 0.5):
            drawn.change(share)
            assert snapshot_of(made, begin, most) == expected, where


def snapshot_of(made: MySqlFeed, begin: Position, most: int | None) -> list[tuple[Any, ...]]:
    found, after = list[tuple[Any, ...]](), begin
    while "snapshot" in after:
        end = made.advance(after, made.latest(), most)
        found += [row[1:] for row in changes(made, after, end, "id") if row[0] == "r"]
        after = end
    return sorted(found)


@pytest.fixture
def orders(table: Table) -> Table:
    table.create(
        "id INT PRIMARY KEY, at DATETIME NOT NULL, status VARCHAR(20) CHARACTER SET latin1,"
        " f FLOAT, j JSON, b BLOB, g VARCHAR(9) CHARACTER SET greek,"
        " v INT AS (id + 1) VIRTUAL"
    )
    values = ", ".join(f"({at}, '2026-01-{at:02}', 'open', 0.1, '{{}}')" for at in range(1, 32))
    table.run(f"INSERT INTO {table} (id, at, status, f, j) VALUES {values}")
    return table


REFUSED = {
    "status = 'open": "no known form",
    "status = 'open'; DROP TABLE x": "does not end before ';'",
    "status = open": "'open' is not one of texts",
    'status = "open"': "is not one of texts",
    r"status = 'it\'s'": "without backslashes",
    "status = id": "is not one of texts",
    "id = '1'": "is not one of numbers",
    "id = 1 + 1": "does not end before '\\+'",
    "id = 1e5": "is not one of numbers",
    "id = 0x10": "is not one of numbers",
    "id = NULL": "is not one of numbers",
    "id IN (SELECT id FROM x)": "'SELECT' is not one of numbers",
    "id IN (1, 2": "its end in place of '\\)'",
    "id BETWEEN 1": "BETWEEN has its end in place of AND",
    "id LIKE '1%'": "'LIKE' follows column 'id'",
    "id REGEXP '1'": "'REGEXP' follows column 'id'",
    "id <=> 1": "'>' is not one of numbers",
    "at > '2026-13-01'": "is not one of times",
    "at > NOW()": "'NOW' is not one of times",
    "at > '2026-01-01T00:00:00+02:00'": "is not one of times",
    "missing = 1": "the table has no column 'missing'",
    "_op = 'c'": "the table has no column '_op'",
    "LOWER(status) = 'open'": "the table has no column 'LOWER'",
    "1 = 1": "the table has no column '1'",
    "f = 0.1": "column 'f' is of type FLOAT",
    "b = 'x'": "column 'b' is of type BLOB",
    "v = 2": "virtual",
    "NOT": "a comparison is missing at its end",
    "id = 1 /*!99999 AND id = 2 */": "comments of no known form",
    "status = 'Ω'": "the server rejects it",
    "g = 'a'": "column 'g' is of type VARCHAR in greek",
    "(" * 60 + "id = 1" + ")" * 60: "more than 50 brackets",
}


@pytest.mark.parametrize("where", REFUSED)
def test_other_conditions_are_refused_by_name(orders: Table, where: str) -> None:
    made = orders.feed(startingPosition="snapshot", snapshotWhere=where)
    with pytest.raises(OptionError, match=REFUSED[where]):
        made.begin()


def test_a_condition_needs_the_snapshot_of_one_table(orders: Table) -> None:
    where = {"snapshotWhere": "id = 1"}
    with pytest.raises(OptionError, match="snapshotWhere needs startingPosition=snapshot"):
        orders.feed(startingPosition="latest", **where).begin()
    several = feed(orders.url, f"{orders},{orders}_b", startingPosition="snapshot", **where)
    with pytest.raises(OptionError, match="is for the snapshot of one table"):
        several.begin()
    orders.run(f"ALTER TABLE {orders} DROP PRIMARY KEY")
    with pytest.raises(StoreRefused, match="has no primary key"):
        orders.feed(startingPosition="snapshot", **where).begin()


def test_a_snapshot_keeps_its_condition_and_later_changes_arrive(orders: Table) -> None:
    made = orders.feed(OF_KEY, startingPosition="snapshot", snapshotWhere="id > 10 and id <= 20")
    begin = made.begin()
    orders.run(f"UPDATE {orders} SET f = 2 WHERE id IN (3, 15)")
    other = orders.feed(OF_KEY, startingPosition="snapshot", snapshotWhere="id = 1")
    found = list[tuple[Any, ...]]()
    for at, epoch in enumerate(each_epoch(made, begin, 4)):
        found += changes(other if at else made, *epoch, "id")  # as after a restart
    expected = [*(("r", at) for at in range(11, 21)), ("u", 3), ("u", 15)]
    assert sorted(found) == sorted(expected)


def test_an_index_finds_the_rows_where_it_may(orders: Table) -> None:
    orders.run(f"CREATE INDEX i ON {orders} (at)")
    for where, searched in {
        "at >= '2026-01-30'": True,
        "at >= '2026-01-30 00:00:00.5'": False,
        "status = 'open'": False,
        "id = 1 OR j IS NULL": True,
    }.items():
        made = orders.feed(startingPosition="snapshot", snapshotWhere=where)
        (piece,) = made.between(made.begin(), planned(made))
        assert isinstance(piece, SnapshotPiece)
        assert piece.condition
        assert piece.condition.sql.startswith("IF(") is not searched, where
