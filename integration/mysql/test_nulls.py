"""A null is stored as NULL or refused; neither the time of day nor a new number takes its place."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery
from integration.support.mysql import Private, Table, client

from sparkonce.errors import BadRow, SparkonceError

EVENTS = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("op", pa.string())])
DAY = dt.datetime(2001, 1, 1)
TIMED = "id INT PRIMARY KEY, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP"
WAYS = {
    "inserted": (False, {"writeMode": "append"}),
    "loaded": (True, {"writeMode": "append"}),
    "loaded in chunks": (True, {"writeMode": "append", "atomicity": "chunk", "chunkRows": "1"}),
    "upserted": (False, {"key": "id"}),
    "kept": (False, {"key": "id", "nulls": "keep"}),
    "winners": (False, {"key": "id", "opColumn": "op"}),
}


@pytest.fixture
def query(table: Table) -> Callable[..., MySqlQuery]:
    def query(definition: str, schema: pa.Schema, **options: str) -> MySqlQuery:
        if "opColumn" not in options:
            schema = pa.schema([field for field in schema if field.name != "op"])
        table.create(f"{definition}")
        return table.checked(schema, **options)

    return query


@pytest.fixture
def stored(table: Table) -> Callable[[], list[tuple[Any, ...]]]:
    def stored() -> list[tuple[Any, ...]]:
        table.run("SET SESSION time_zone = '+00:00'")
        return list(table.rows("*", "1"))

    return stored


def event(id_: int, at: dt.datetime | None, op: str = "u") -> dict[str, Any]:
    return {"id": id_, "at": at, "op": op}


@pytest.mark.parametrize("way", WAYS)
def test_null_for_a_timestamp_that_is_not_null_is_refused_by_name(
    query: Any, stored: Any, local_infile: Any, way: str
) -> None:
    loads, options = WAYS[way]
    local_infile(loads)
    made = query(TIMED, EVENTS, **{**options, "atomicity": "epoch"})
    with pytest.raises(BadRow, match=r"row with id=2.*: column 'at' can't be null.*NOT NULL.*time"):
        made.run(0, [event(1, DAY), event(2, None)])
    assert stored() == []


@pytest.mark.parametrize("way", WAYS)
def test_null_for_a_timestamp_that_is_not_null_goes_aside(
    query: Any, stored: Any, local_infile: Any, table: Table, way: str
) -> None:
    loads, options = WAYS[way]
    local_infile(loads)
    made = query(TIMED, EVENTS, onBadRow="deadLetter", deadLetter=f"{table}_bad", **options)
    made.run(0, [event(1, None), event(2, DAY), event(3, None)], [event(4, DAY), event(5, None)])
    assert stored() == [(2, DAY), (4, DAY)]
    reasons = [reason for (reason,) in table.run(f"SELECT reason FROM {table}_bad ORDER BY id")]
    assert len(reasons) == 3
    for reason, number in zip(reasons, (1, 3, 5), strict=True):
        assert f"id={number}" in reason
        assert "column 'at' can't be null" in reason


def test_what_is_stored_outlives_a_null(query: Any, stored: Any) -> None:
    made = query(TIMED, EVENTS, **WAYS["kept"][1])
    made.run(0, [event(1, DAY)])
    with pytest.raises(BadRow, match="column 'at' can't be null"):
        made.run(1, [event(1, None)])
    assert stored() == [(1, DAY)]


def test_null_that_is_not_written_in_the_end_is_fine(query: Any, stored: Any) -> None:
    made = query(TIMED, EVENTS, key="id", opColumn="op")
    made.run(0, [event(1, None), event(1, DAY), event(2, None), event(2, None, "d")])
    assert stored() == [(1, DAY)]


@pytest.mark.parametrize("way", WAYS)
def test_null_stays_null_where_the_column_takes_it(
    query: Any, stored: Any, local_infile: Any, way: str
) -> None:
    loads, options = WAYS[way]
    local_infile(loads)
    definition = "id INT PRIMARY KEY, at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP"
    query(definition, EVENTS, **options).run(0, [event(1, None)])
    assert stored() == [(1, None)]


def test_null_where_a_timestamp_is_not_null_unless_declared_so(private_mysql: Private) -> None:
    """As with explicit_defaults_for_timestamp=OFF, the default of MariaDB up to 10.9."""
    server = private_mysql("--explicit-defaults-for-timestamp=OFF", "--local-infile=1")
    with client(server.url) as cursor:
        for way, (_, options) in WAYS.items():
            cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP)")
            schema = EVENTS if "opColumn" in options else EVENTS.remove(2)
            made = MySqlQuery(schema, url=server.url, dbtable="t", **options)
            made.sink.check()
            with pytest.raises(SparkonceError, match="column 'at' can't be null"):
                made.run(0, [event(1, None)])
            cursor.execute("SELECT at FROM t")
            assert cursor.fetchall() == (), way
            cursor.execute("DROP TABLE t")


@pytest.mark.parametrize("loads", [False, True])
def test_null_gets_no_number_in_an_auto_increment_column(
    query: Any, stored: Any, local_infile: Any, loads: bool
) -> None:
    local_infile(loads)
    made = query("id INT, n INT AUTO_INCREMENT UNIQUE", COUNTER)
    with pytest.raises(
        BadRow, match=r"id=1, n=null can't be stored: column 'n' can't be null.*auto-increment"
    ):
        made.run(0, [{"id": 1, "n": None}])
    assert stored() == []


@pytest.mark.parametrize("nulls", ["write", "keep"])
def test_null_renumbers_no_stored_row(query: Any, stored: Any, table: Table,
                                      nulls: str) -> None:  # fmt: skip
    made = query("id INT PRIMARY KEY, n INT AUTO_INCREMENT UNIQUE", COUNTER, key="id", nulls=nulls)
    table.run(f"INSERT INTO {table} VALUES (1, 7)")
    with pytest.raises(BadRow, match="id=1 can't be stored: column 'n' can't be null"):
        made.run(0, [{"id": 1, "n": None}])
    assert stored() == [(1, 7)]
