"""Splits by ranges: of columns, values and bounds that are drawn, and of keys with outliers."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pymysql
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, values
from integration.support.mysql_drawn_columns import SIMPLE

from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.follow import snapshot
from pyspark_mysql.follow.snapshot import SnapshotPiece
from pyspark_mysql.follow.table import followed
from pyspark_mysql.read import ranges
from pyspark_mysql.read.where import PROVEN
from sparkonce import options
from sparkonce.errors import OptionError, ValueUnreadable
from sparkonce.reading import Compare, Filter, Scan
from sparkonce.tck.conditions import holds

DIVIDED = (
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "INT",
    "BIGINT",
    "DATE",
    "DECIMAL",
    "TIMESTAMP",
    "DATETIME",
    "CHAR",
    "VARCHAR",
    "BINARY",
    "VARBINARY",
)
ROWS = 300
FAR = ("'0001-01-01'", "'9999-12-31'")
FARTHEST = (str(-(2**70)), str(2**70))
"""Bounds beyond what a column can hold."""


def _fill(table: Table, column: str, values: list[str]) -> list[int]:
    """A table whose key begins with column v; the ids of its rows."""
    kind = column.replace(" NULL", "")
    table.run("SET SESSION sql_mode='', time_zone='+00:00'", f"DROP TABLE IF EXISTS {table}")
    table.create(f"v {kind} NOT NULL, id INT, PRIMARY KEY (v, id)")
    rows = ", ".join(f"({v}, {at})" for at, v in enumerate(values))
    table.run(f"INSERT IGNORE INTO {table} VALUES {rows}", f"ANALYZE TABLE {table}")
    return sorted(one for (one,) in table.rows("id"))


def _sizes(made: Any) -> list[int]:
    """The number of rows in each split."""
    return [sum(batch.num_rows for batch in made.read(split)) for split in made.splits()]


def _ids(made: Any) -> list[int]:
    """The ids of all rows, without a look at column v: of that some values can't be read."""
    name = made.relation
    found = [
        made.session.run(f"SELECT id FROM {name} WHERE {split.condition or 'TRUE'}")
        for split in made.splits()
    ]
    return sorted(one for rows in found for (one,) in rows)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of few rows are divided."""
    monkeypatch.setattr(ranges, "FEW", 10)
    monkeypatch.setattr(ranges, "PROBES", 4)


@pytest.mark.parametrize("seed", [1, *slow_cases(2, 3, 4, 5)])
def test_each_row_lies_in_one_split_whatever_the_key(table: Table, seed: int) -> None:
    """As a read by its key, by bounds of a column, and as the snapshot of a stream."""
    random = Random(seed)
    for column, some in SIMPLE.items():
        if column in ("JSON", "TINYINT(1)"):
            continue
        drawn = random.choices([*some, "0"], k=ROWS)
        stored = _fill(table, column, drawn)
        made = table.source(numPartitions="5")
        assert _ids(made) == stored, column
        assert len(made.splits()) == 1 or column.startswith(DIVIDED), column
        if column.startswith(("BINARY", "VARBINARY")):
            continue
        edges = FAR if some[0].startswith("'") else FARTHEST
        low, high = (one.strip("'") or "0" for one in random.choices([*some, *edges], k=2))
        bounds = {"partitionColumn": "v", "lowerBound": low, "upperBound": high}
        ranged = table.source(numPartitions="5", **bounds)
        if column.startswith(DIVIDED) and column != "DECIMAL(50,3)":
            assert _ids(ranged) == stored, (column, low, high)
        else:
            with pytest.raises(OptionError, match="has no ranges"):
                ranged.splits()
        _check_pieces(made, table, stored, column)


def _check_pieces(made: Any, table: str, stored: list[int], column: str) -> None:
    """All pieces of a snapshot, and each next one up to so many rows, have each row once."""
    at = followed(made.session, (made.session.database, table))
    pieces = [*snapshot.pieces(made.session, at, SnapshotPiece(""), 5)]
    low: int | None = None
    steps = list[SnapshotPiece]()
    while (high := snapshot.next_border(made.session, at, low, 40)) is not None and high != low:
        steps.append(SnapshotPiece("", low, high))
        low = high
    steps.append(SnapshotPiece("", low))
    for each in (pieces, steps):
        found = list[int]()
        for piece in each:
            where = snapshot._where(snapshot._divided(at), piece)
            found += [one for (one,) in made.session.run(f"SELECT id FROM {at.relation}{where}")]
        assert sorted(found) == stored, (column, each)


LETTERS = "aAbBzZ09 _-.~\u00e9\u00c9\u00df\u00f1\u00fe"
WIDE = "\u0131\u0434\u0416\u05d0\u0628\u0e01\u3042\u6f22\uac00\u0301\u200d\ud7ff\ue000\ufb01"


def _texts(random: Random, letters: str) -> list[str]:
    """Texts with common beginnings, of which some equal others in most collations."""
    begins = ["", "".join(random.choices(letters, k=random.randrange(12)))]
    drawn = ("".join(random.choices(letters, k=random.randrange(7))) for _ in range(150))
    return [random.choice(begins) + one for one in drawn]


def _is_there(table: Table, collation: str) -> bool:
    with suppress(pymysql.MySQLError):
        charset = collation.partition("_")[0]
        return bool(table.run(f"SELECT CONVERT('a' USING {charset}) COLLATE {collation}"))
    return False


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 8))])
def test_each_text_lies_in_one_split_in_each_proven_collation(table: Table, seed: int) -> None:
    random = Random(seed)
    for collation in sorted(filter(partial(_is_there, table), PROVEN)):
        charset = collation.partition("_")[0]
        narrow = {"latin1": LETTERS, "ascii": LETTERS[:-5]}
        beyond = "\U0001f600\U00020000" if charset == "utf8mb4" else ""
        letters = narrow.get(charset, LETTERS + WIDE + beyond)
        kind = random.choice(("VARCHAR(40)", "CHAR(40)"))
        found = [f"_utf8mb4 X'{one.encode().hex()}'" for one in _texts(random, letters)]
        stored = _fill(table, f"{kind} CHARACTER SET {charset} COLLATE {collation}", found)
        by_key = table.source(numPartitions="6")
        assert _ids(by_key) == stored, collation
        assert len(by_key.splits()) > 1, collation
        low, high = _texts(random, letters)[:2]
        low, high = low.strip() or "a", high.strip() or "z"
        bounds = {"partitionColumn": "v", "lowerBound": low, "upperBound": high}
        assert _ids(table.source(numPartitions="6", **bounds)) == stored, (collation, low, high)


@pytest.mark.parametrize("bound", ["\u0416a", "\U0001f600"])
def test_a_bound_that_the_column_can_not_hold_is_refused(table: Table, bound: str) -> None:
    table.create("v VARCHAR(9) CHARACTER SET latin1, id INT PRIMARY KEY")
    given = {"partitionColumn": "v", "lowerBound": "a", "upperBound": bound}
    with pytest.raises(OptionError, match="latin1 of the column lacks"):
        table.source(**given).splits()


KEYS = {
    "VARCHAR(40)": lambda at: f"'customer-{at:08}'",
    "CHAR(36) CHARACTER SET ascii": lambda at: f"'{UUID(int=Random(at).getrandbits(128))}'",
    "VARCHAR(40) COLLATE utf8mb4_bin": lambda at: f"'{LETTERS[at % 5]}{at % 97}-{at}'",
    "BINARY(16)": lambda at: f"X'{Random(at).randbytes(16).hex()}'",
}


@pytest.mark.parametrize("kind", KEYS)
def test_usual_keys_of_text_and_bytes_make_equal_splits(table: Table, kind: str) -> None:
    rows = ", ".join(f"({KEYS[kind](at)}, {at})" for at in range(5000))
    table.create(f"k {kind} PRIMARY KEY, id INT")
    table.run(f"INSERT INTO {table} VALUES {rows}", f"ANALYZE TABLE {table}")
    sizes = _sizes(table.source(numPartitions="4"))
    assert sum(sizes) == 5000
    assert len(sizes) == 4
    assert max(sizes) < 2500


PARTS = {
    "INT": lambda draw: str(draw.randrange(-3, 4)),
    "BIGINT UNSIGNED": lambda draw: str(draw.choice((0, 7, 2**64 - 1))),
    "DECIMAL(30,12)": lambda draw: f"{draw.randrange(-(10**29), 10**29) / 10**12:.12f}",
    "DECIMAL(6,3)": lambda draw: f"{draw.randrange(-4, 4) / 1000}",
    "DATETIME(6)": lambda draw: f"'2026-01-0{draw.randrange(1, 4)} 00:00:00.{draw.randrange(3)}'",
    "DATE": lambda draw: f"'2026-01-{draw.randrange(1, 30):02}'",
    "VARCHAR(20) COLLATE utf8mb4_general_ci": lambda draw: (
        f"'{draw.choice(('acme', 'Globex', 'x'))}'"
    ),
    "VARBINARY(16)": lambda draw: f"X'{draw.randbytes(draw.randrange(1, 3)).hex()}'",
    "ENUM('a','b')": lambda draw: f"'{draw.choice('ab')}'",
}


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 12))])
def test_each_row_of_a_composite_key_lies_in_one_split(table: Table, seed: int) -> None:
    draw = Random(seed)
    kinds = draw.sample([*PARTS], 3)
    columns = ", ".join(f"k{at} {kind} NOT NULL" for at, kind in enumerate(kinds))
    table.create(f"{columns}, id INT, PRIMARY KEY (k0, k1, k2, id)")
    rows = (", ".join(PARTS[kind](draw) for kind in kinds) for _ in range(600))
    table.run("SET SESSION sql_mode=''")
    table.run(
        f"INSERT INTO {table} VALUES " + ", ".join(f"({one}, {at})" for at, one in enumerate(rows))
    )
    table.run(f"ANALYZE TABLE {table}")
    made = table.source(numPartitions="7")
    found = [
        len(made.session.run(f"SELECT id FROM {table} WHERE {split.condition or 'TRUE'}"))
        for split in made.splits()
    ]
    assert _ids(made) == [*range(600)]
    assert kinds[0].startswith("ENUM") or (len(found) > 1 and max(found) < 400), (kinds, found)


@pytest.mark.parametrize("outlier", [2**62, -(2**62)])
def test_an_outlier_costs_no_split(table: Table, outlier: int) -> None:
    """All but one row lie close together, far from it."""
    table.create("id BIGINT PRIMARY KEY, v CHAR(20), KEY (v)")
    rows = ", ".join(f"({at}, 'x')" for at in range(20_000))
    table.run(f"INSERT INTO {table} VALUES {rows}, ({outlier}, 'y')", f"ANALYZE TABLE {table}")
    sizes = _sizes(table.source(numPartitions="4"))
    assert sum(sizes) == 20_001
    assert len(sizes) == 4
    assert max(sizes) < 8000


def test_a_date_that_is_none_at_the_head_of_a_key(table: Table) -> None:
    stored = _fill(table, "DATE", ["'0000-00-00'", *["'2026-01-01'", "'2026-01-09'"] * 100])
    made = table.source()
    assert len(made.splits()) == 1
    assert _ids(made) == stored
    with pytest.raises(ValueUnreadable, match="zero date"):
        [*made.read(made.splits()[0])]


TABLES = {
    "the index of a virtual column": (
        "(id INT, at TIMESTAMP, v DATE AS (DATE(at)) VIRTUAL, KEY (v))",
        "(id, at) VALUES (1, '2020-01-01 05:00:00')",
        Compare("v", "=", dt.date(2019, 12, 31)),
    ),
    "two zeros in memory": (
        "(id INT, v DOUBLE, KEY (v) USING HASH) ENGINE=MEMORY",
        "VALUES (1, 0e0), (2, -0e0)",
        Compare("v", "=", 0.0),
    ),
    "two zeros in partitions": (
        "(id INT, v DOUBLE) PARTITION BY KEY (v) PARTITIONS 7",
        "VALUES (1, 0e0), (2, -0e0)",
        Compare("v", "=", 0.0),
    ),
    "a fraction of a second in partitions": (
        "(id INT, v DATETIME(6)) PARTITION BY RANGE (TO_SECONDS(v)) (PARTITION a VALUES LESS THAN"
        " (TO_SECONDS('2000-01-01')), PARTITION b VALUES LESS THAN MAXVALUE)",
        "VALUES (1, '2000-01-01 00:00:00')",
        Compare("v", "<", dt.datetime(2000, 1, 1, microsecond=500_000)),
    ),
}


QUERIES = {
    "digits of a double": ("SELECT a + b AS v FROM {}", Compare("v", "<=", 0.3)),
    "digits of a mean": ("SELECT AVG(c) AS v FROM {}", Compare("v", "=", Decimal("1.333333"))),
}


def _found(url: str, asked: Filter | None, **raw: str) -> list[object]:
    """The values of v that match, of a read with a condition, or all of one without."""
    parsed = options.parse(MySqlConnector.reads, {"url": url, **raw})
    scan = Scan(MySqlConnector().infer(parsed), (asked,) if asked else ())
    return values(MySqlConnector().source(parsed, scan))["v"].to_pylist()


@pytest.mark.parametrize("case", TABLES)
def test_a_condition_loses_no_row_of_a_table(table: Table, case: str) -> None:
    definition, rows, condition = TABLES[case]
    table.run("SET SESSION time_zone='+10:00'", f"CREATE TABLE {table} {definition}")
    table.run(f"INSERT INTO {table} {rows}")
    plain = [one for one in _found(table.url, None, dbtable=table) if holds(one, condition)]
    pushed = [one for one in _found(table.url, condition, dbtable=table) if holds(one, condition)]
    assert len(plain) == len(pushed) > 0


@pytest.mark.parametrize("how", ["query", "view"])
@pytest.mark.parametrize("case", QUERIES)
def test_no_condition_goes_into_a_query_or_a_view(table: Table, case: str, how: str) -> None:
    query, condition = QUERIES[case]
    table.create("a DOUBLE(10,2), b DOUBLE(10,2), c DECIMAL(10,2)")
    table.run(f"INSERT INTO {table} VALUES (0.1, 0.2, 1), (0.2, 0.2, 1), (1, 0.2, 2)")
    sql = query.format(table)
    if how == "view":
        table.run(f"CREATE VIEW {table}_view AS {sql}")
    raw = {"query": sql} if how == "query" else {"dbtable": f"{table}_view"}
    assert len(_found(table.url, condition, **raw)) == len(_found(table.url, None, **raw))


def test_a_virtual_column_makes_no_ranges(table: Table) -> None:
    """A split that reads the index would have other rows than one that reads the table."""
    table.create("at TIMESTAMP, v DATE AS (DATE(at)) VIRTUAL, KEY (v)")
    ranged = {"partitionColumn": "V", "lowerBound": "2020-01-01", "upperBound": "2021-01-01"}
    with pytest.raises(OptionError, match="virtual columns"):
        table.source(**ranged).splits()
