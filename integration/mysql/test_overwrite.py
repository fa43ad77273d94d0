"""Mode overwrite in MySQL: one transaction empties the table and fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery

from sparkonce.errors import BadRow, OptionError, StoreRefused

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Make = Callable[..., MySqlQuery]
Stored = Callable[..., list[tuple[Any, ...]]]


def rows(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": i} for i in ids]


@pytest.fixture(params=[{}, {"key": "id"}], ids=["append", "upsert"])
def query(request: pytest.FixtureRequest, make: Make) -> MySqlQuery:
    """An overwrite of a table that has rows."""
    made = make(SCHEMA, "id BIGINT PRIMARY KEY, n TINYINT UNSIGNED", **request.param)
    made.run(0, rows(range(100)))
    made.overwrite = True
    made.sink.check()
    return made


def test_rows_take_the_place_of_all_of_the_table(query: MySqlQuery, stored: Stored) -> None:
    query.run(1, rows(range(50, 120)))
    assert sorted(stored()) == [(i, i) for i in range(50, 120)]
    query.run(2)
    assert stored() == [], "no row is written, so none is left"


def test_a_row_that_is_refused_leaves_the_table_as_it_was(
    query: MySqlQuery, stored: Stored
) -> None:
    with pytest.raises(BadRow, match="nothing of epoch 1 took effect"):
        query.run(1, rows(range(200, 300)))
    assert sorted(stored()) == [(i, i) for i in range(100)]


def test_overwriting_chunk_by_chunk_is_refused(make: Make) -> None:
    query = make(SCHEMA, "id BIGINT PRIMARY KEY, n BIGINT", key="id", atomicity="chunk")
    query.overwrite = True
    with pytest.raises(OptionError, match="atomicity=chunk"):
        assert query.sink


def test_a_table_that_a_foreign_key_keeps_from_being_emptied_is_refused_by_name(
    make: Make, stored: Stored, table: str
) -> None:
    itself = f"FOREIGN KEY (n) REFERENCES {table} (id)"
    query = make(SCHEMA, f"id BIGINT PRIMARY KEY, n BIGINT, {itself}", writeMode="append")
    query.run(0, [{"id": 1, "n": None}, {"id": 2, "n": 1}])
    query.overwrite = True
    with pytest.raises(StoreRefused, match=r"can't be emptied, and nothing .* took effect"):
        query.run(1, [{"id": 3, "n": None}])
    assert stored() == [(1, None), (2, 1)]
