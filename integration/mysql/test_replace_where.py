"""`replaceWhere`: an overwrite replaces the rows for which a condition holds, and no others."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table, twin

from sparkonce.errors import BadRow, OptionError

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("n", pa.int32())])
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", None)
CONDITIONS = {
    "day = '2026-01-02'": lambda row: row["day"] == "2026-01-02",
    "day >= '2026-01-02' -- from then on": lambda row: (row["day"] or "") >= "2026-01-02",
    "n > 3 OR day IS NULL": lambda row: row["n"] > 3 or row["day"] is None,
    "id % 2 = 1 AND (n / 2 < 3)": lambda row: row["id"] % 2 == 1 and row["n"] < 6,
}


def replacing(table: Table, condition: str, **options: str) -> MySqlQuery:
    made = table.query(SCHEMA, replaceWhere=condition, chunkRows="3", **options)
    made.overwrite = True
    return made


def create(table: Table) -> None:
    table.create("id BIGINT, day CHAR(10), n TINYINT, INDEX (day)")


def drawn(draw: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"id": draw.randrange(99), "day": draw.choice(DAYS), "n": draw.randrange(8)}
        for _ in range(count)
    ]


def stored(table: Table) -> Counter[tuple[Any, ...]]:
    return Counter(table.rows("id, day, n"))


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("seed", [0, *slow_cases(1, 2, 3)])
def test_the_rows_of_a_condition_are_replaced(table: Table, condition: str, seed: int) -> None:
    create(table)
    draw, holds = random.Random(seed), CONDITIONS[condition]
    before = drawn(draw, 30)
    table.query(SCHEMA).run(0, before)
    query, kept = replacing(table, condition), [row for row in before if not holds(row)]
    for epoch in range(3):
        rows = [row for row in drawn(draw, 20) if holds(row)]
        query.run(epoch, rows)
        other = twin(query)
        other.overwrite = True
        other.run_until_done(epoch, [])
        assert stored(table) == Counter(tuple(row.values()) for row in (*kept, *rows))


def test_a_row_beside_the_condition_is_a_bad_row(table: Table) -> None:
    create(table)
    table.run(f"INSERT INTO {table} VALUES (1, '2026-01-02', 1), (2, '2026-01-03', 2)")
    before, query = stored(table), replacing(table, "day = '2026-01-02'")
    for day in ("2026-01-03", None):
        rows = [{"id": 5, "day": "2026-01-02", "n": 5}, {"id": 6, "day": day, "n": 6}]
        with pytest.raises(BadRow, match=r"row with id=6.*replaceWhere does not hold for it"):
            query.run(0, rows)
        assert stored(table) == before
    letters = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad", "maxBadRows": "9"}
    lenient = replacing(table, "day = '2026-01-02'", **letters)
    rows = [
        {"id": 5, "day": "2026-01-02", "n": 5},
        {"id": 6, "day": None, "n": 6},
        {"id": 7, "day": "2026-01-01", "n": 7},
        {"id": 8, "day": "2026-01-02", "n": 800},
    ]
    lenient.run(0, rows)
    assert stored(table) == Counter([(5, "2026-01-02", 5), (2, "2026-01-03", 2)])
    assert table.count("_bad") == 3


def test_a_table_whose_rows_a_delete_changes_is_refused(table: Table) -> None:
    for does in ("CASCADE", "SET NULL"):
        table.run(f"DROP TABLE IF EXISTS {table}")
        table.create(
            "id BIGINT PRIMARY KEY, day CHAR(10), n BIGINT,"
            f" FOREIGN KEY (n) REFERENCES {table} (id) ON DELETE {does}"
        )
        schema = SCHEMA.set(2, pa.field("n", pa.int64()))
        query = table.query(schema, replaceWhere="day = 'd1'", writeMode="append")
        query.overwrite = True
        with pytest.raises(OptionError, match=r"replaceWhere: .* foreign key that leads back"):
            query.sink.check()


def test_the_condition_names_columns_of_the_query(table: Table) -> None:
    table.create("id BIGINT, day CHAR(10), n TINYINT, own INT DEFAULT 5")
    for condition, what in (("own = 5", "own"), (f"{table}.n = 5", "without the name")):
        with pytest.raises(OptionError, match=f"replaceWhere.*{what}"):
            replacing(table, condition).sink.check()


@pytest.mark.parametrize(
    "condition",
    [
        *("n = 1) OR (1 = 1", "n = 1; DELETE FROM t", "", "n = 'x", "(n = 1", "n = 1 /*! OR 1 */"),
        *("--", "n = (SELECT MAX(n) FROM t)", "@a := 1", "n IN (select 1)"),
    ],
)
def test_a_text_that_is_no_condition_is_refused(table: Table, condition: str) -> None:
    create(table)
    with pytest.raises(OptionError, match="replaceWhere"):
        replacing(table, condition).sink.check()


def test_what_it_can_not_be_combined_with_is_refused(table: Table) -> None:
    create(table)
    for more, what in (
        ({"key": "id"}, "replaceWhere and writeMode=upsert contradict"),
        ({"onDuplicate": "ignore"}, "replaceWhere and onDuplicate=ignore contradict"),
        ({"atomicity": "chunk"}, "Mode overwrite and option atomicity=chunk contradict"),
    ):
        with pytest.raises(OptionError, match=what):
            replacing(table, "n = 1", **more).sink.check()
    with pytest.raises(OptionError, match=r"rejects option replaceWhere.*nonsense"):
        replacing(table, "nonsense = 1").sink.check()
    with pytest.raises(OptionError, match="needs a batch in mode overwrite"):
        table.query(SCHEMA, replaceWhere="n = 1").sink.check()
