"""`onDuplicate=ignore`: an append skips rows of which a unique key exists, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table, twin

from sparkonce.errors import BadRow, OptionError

SCHEMA = pa.schema([("id", pa.int64()), ("u", pa.string()), ("n", pa.int64())])
IGNORE = {"onDuplicate": "ignore", "chunkRows": "7"}


def row(id_: int, u: str | None, n: int = 0) -> dict[str, Any]:
    return {"id": id_, "u": u, "n": n}


def skipping(table: Table, definition: str = "", **options: str) -> MySqlQuery:
    columns = "id BIGINT PRIMARY KEY, u VARCHAR(9) UNIQUE, n TINYINT NOT NULL"
    return table.make(SCHEMA, f"{columns}{definition}", **{**IGNORE, **options})


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 8))])
def test_the_first_row_of_each_unique_key_stays(table: Table, seed: int) -> None:
    draw, query = random.Random(seed), skipping(table)
    stored, names = dict[int, tuple[Any, ...]](), set[str]()
    for epoch in range(4):
        rows = [
            row(draw.randrange(40), draw.choice((None, *"abcdefgh")), draw.randrange(100))
            for _ in range(draw.randrange(1, 30))
        ]
        for one in rows:
            if one["id"] not in stored and one["u"] not in names:
                stored[one["id"]] = tuple(one.values())
                names |= {one["u"]} - {None}
        receipts = query.stage(epoch, rows)
        query.commit(epoch, receipts)
        twin(query).run_until_done(epoch, rows)
    assert table.stored() == sorted(stored.values())


def test_a_value_that_does_not_fit_is_a_bad_row_and_not_stored_otherwise(table: Table) -> None:
    query = skipping(table, onBadRow="deadLetter", deadLetter=f"{table}_bad", maxBadRows="5")
    table.run(f"INSERT INTO {table} VALUES (1, 'a', 1)")
    query.run(0, [row(1, "x"), row(2, "b", 300), row(3, "a"), row(4, "d", 4)])
    assert table.stored() == [(1, "a", 1), (4, "d", 4)]
    assert table.count("_bad") == 1


def test_a_missing_parent_is_no_duplicate(table: Table) -> None:
    table.run(f"CREATE TABLE {table}_p (n TINYINT PRIMARY KEY)")
    table.run(f"INSERT INTO {table}_p VALUES (0)")
    query = skipping(table, f", FOREIGN KEY (n) REFERENCES {table}_p (n)")
    query.run(0, [row(1, "a"), row(1, "b")])
    with pytest.raises(BadRow, match="foreign key"):
        query.run(1, [row(1, "c"), row(2, "d", 5)])
    assert table.stored() == [(1, "a", 0)]


def test_other_modes_and_tables_that_compute_local_times_are_refused(table: Table) -> None:
    with pytest.raises(OptionError, match="onDuplicate=ignore and writeMode=upsert contradict"):
        table.query(SCHEMA, key="id", onDuplicate="ignore").sink.check()
    columns = "id BIGINT PRIMARY KEY, u TIMESTAMP NULL, d DATETIME DEFAULT CURRENT_TIMESTAMP"
    schema = pa.schema([("id", pa.int64()), ("u", pa.timestamp("us", "UTC"))])
    with pytest.raises(OptionError, match="onDuplicate=ignore can't be used with table"):
        table.make(schema, columns, onDuplicate="ignore")
