"""Splits by ranges: of columns, values and bounds that are drawn, and of keys with outliers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from integration.support.marks import slow_cases
from integration.support.mysql_drawn_columns import SIMPLE
from integration.support.mysql_reading import source
from pymysql.cursors import Cursor

from pyspark_mysql.follow import snapshot
from pyspark_mysql.follow.snapshot import SnapshotPiece
from pyspark_mysql.follow.table import followed
from pyspark_mysql.read import ranges
from sparkonce.errors import OptionError, ValueUnreadable

DIVIDED = (
    "TINYINT",
    "SMALLINT",
    "MEDIUMINT",
    "INT",
    "BIGINT",
    "DATE",
    "DECIMAL(20,0)",
    "TIMESTAMP",
)
ROWS = 300
FAR = ("'0001-01-01'", "'9999-12-31'")
FARTHEST = (str(-(2**70)), str(2**70))
"""Bounds beyond what a column can hold."""


def _fill(mysql: Cursor, table: str, column: str, values: list[str]) -> list[int]:
    """A table whose key begins with column v; the ids of its rows."""
    kind = column.replace(" NULL", "")
    mysql.execute("SET SESSION sql_mode='', time_zone='+00:00'")
    mysql.execute(f"DROP TABLE IF EXISTS {table}")
    mysql.execute(f"CREATE TABLE {table} (v {kind} NOT NULL, id INT, PRIMARY KEY (v, id))")
    rows = ", ".join(f"({v}, {at})" for at, v in enumerate(values))
    mysql.execute(f"INSERT IGNORE INTO {table} VALUES {rows}")
    mysql.execute(f"ANALYZE TABLE {table}")
    mysql.execute(f"SELECT id FROM {table}")
    return sorted(one for (one,) in mysql.fetchall())


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


@pytest.mark.parametrize("seed", [1, *slow_cases(2, 3, 4, 5)])
def test_each_row_lies_in_one_split_whatever_the_key(
    mysql: Cursor, mysql_url: str, table: str, seed: int
) -> None:
    """As a read by its key, by bounds of a column, and as the snapshot of a stream."""
    random = Random(seed)
    for column, values in SIMPLE.items():
        if column in ("JSON", "TINYINT(1)"):
            continue
        drawn = random.choices([*values, "0"], k=ROWS)
        stored = _fill(mysql, table, column, drawn)
        _, made = source(mysql_url, None, dbtable=table, numPartitions="5")
        assert _ids(made) == stored, column
        assert len(made.splits()) == 1 or column.startswith(DIVIDED), column
        edges = FAR if values[0].startswith("'") else FARTHEST
        low, high = (one.strip("'") or "0" for one in random.choices([*values, *edges], k=2))
        bounds = {"partitionColumn": "v", "lowerBound": low, "upperBound": high}
        _, ranged = source(mysql_url, None, dbtable=table, numPartitions="5", **bounds)
        if column.startswith(DIVIDED):
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
            where = snapshot._condition(snapshot._divided(at), piece)
            found += [one for (one,) in made.session.run(f"SELECT id FROM {at.relation}{where}")]
        assert sorted(found) == stored, (column, each)


@pytest.mark.parametrize("outlier", [2**62, -(2**62)])
def test_an_outlier_costs_no_split(mysql: Cursor, mysql_url: str, table: str, outlier: int) -> None:
    """All but one row lie close together, far from it."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, v CHAR(20), KEY (v))")
    rows = ", ".join(f"({at}, 'x')" for at in range(20_000))
    mysql.execute(f"INSERT INTO {table} VALUES {rows}, ({outlier}, 'y')")
    mysql.execute(f"ANALYZE TABLE {table}")
    _, made = source(mysql_url, None, dbtable=table, numPartitions="4")
    sizes = [sum(batch.num_rows for batch in made.read(split)) for split in made.splits()]
    assert sum(sizes) == 20_001
    assert len(sizes) == 4
    assert max(sizes) < 8000


def test_a_date_that_is_none_at_the_head_of_a_key(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    stored = _fill(mysql, table, "DATE", ["'0000-00-00'", *["'2026-01-01'", "'2026-01-09'"] * 100])
    _, made = source(mysql_url, None, dbtable=table)
    assert len(made.splits()) == 1
    assert _ids(made) == stored
    with pytest.raises(ValueUnreadable, match="zero date"):
        [*made.read(made.splits()[0])]
