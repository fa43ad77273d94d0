"""Rows that the target refuses of what an epoch comes to: named by key, or put aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery, cut_each
from integration.support.mysql import Table, is_query
from integration.support.proxy import CUTS, Proxy

from sparkonce.errors import BadRow

SCHEMA = pa.schema(
    {
        **dict.fromkeys(("a", "v", "at"), pa.int64()),
        **dict.fromkeys(("b", "op"), pa.string()),
        "x": pa.binary(),
    }
)
DEFINITION = (
    "a BIGINT, b VARCHAR(5) COLLATE utf8mb4_bin, v BIGINT NOT NULL CHECK (v <> 13), x VARBINARY(9),"
    " u INT AS (CASE WHEN v > 99 THEN v END) VIRTUAL UNIQUE, PRIMARY KEY (a, b)"
)
Found = Callable[[], tuple[Any, Any]]


@pytest.fixture
def tables(table: Table) -> Table:
    """A target that refuses nulls and 13 in `v`, and values above 99 that another row has."""
    table.create(f"{DEFINITION}")
    return table


@pytest.fixture
def found(tables: Table) -> Found:
    """What is stored, and what was put aside."""

    def found() -> tuple[Any, Any]:
        stored = dict(tables.rows("a, v", "a"))
        return stored, list(
            tables.run(f"SELECT epoch, reason, row_data FROM {tables}_bad ORDER BY id")
        )

    return found


def query(table: Table, **options: str) -> MySqlQuery:
    given = {"opColumn": "op", "sequenceColumn": "at", "chunkRows": "4", **options}
    return table.checked(SCHEMA, key="a,b", **given)


def forgiving(table: Table, **options: str) -> MySqlQuery:
    return query(table, onBadRow="deadLetter", deadLetter=f"{table}_bad", **options)


def row(a: int | None, v: int | None = 1, op: str = "I", b: str = "it's") -> dict[str, Any]:
    return {"a": a, "b": b, "op": op, "v": v, "x": b"\xff", "at": 1}


def test_refused_row_is_named_by_its_key(tables: Table) -> None:
    strict = query(tables)
    strict.run(0, [row(50, 500)])
    for bad, said in (
        (row(31, None), "Column 'v' cannot be null"),
        (row(31, 13), "a CHECK constraint rejected the row"),
        (row(31, 500), "another stored row has its value in another unique key"),
    ):
        rows = [row(a) for a in range(40)]
        rows[31] = bad
        with pytest.raises(BadRow, match="row with a=31, b='it''s': ") as refused:
            strict.run(1, rows)
        assert said in str(refused.value)
        assert "no row of epoch 1 took effect" in str(refused.value)
        assert tables.rows("a, v") == ((50, 500),)


def test_bad_rows_of_an_epoch_are_put_aside(tables: Table, found: Found) -> None:
    bad = forgiving(tables)
    rows = [row(a) for a in range(20)]
    rows[3], rows[7], rows[11] = row(3, None), row(None), row(11, op="?")
    rows[12], rows[17] = row(12, b="too long"), row(17, 13)
    for _ in range(2):
        bad.run(0, rows, [row(17, 14, b="i")])
    stored, letters = found()
    assert stored == {**dict.fromkeys({*range(20)} - {3, 7, 11, 12, 17}, 1), 17: 14}
    assert [epoch for epoch, _, _ in letters] == [0] * 5
    reasons = [reason for _, reason, _ in letters]
    for reason, said in zip(
        reasons,
        ("'a' is null", "not an operation", "'too long'", "a=3, b=", "a=17, b="),
        strict=True,
    ):
        assert said in reason
    assert json.loads(letters[-1][2]) == {
        "a": 17,
        "b": "it's",
        "v": 13,
        "x": "/w==",
        "at": 1,
        "op": "u",
    }


def test_row_that_others_point_to_is_named_or_put_aside(tables: Table, found: Found) -> None:
    tables.run(
        f"CREATE TABLE {tables}_child (a BIGINT, b VARCHAR(5) COLLATE utf8mb4_bin,"
        f" FOREIGN KEY (a, b) REFERENCES {tables} (a, b))"
    )
    strict = query(tables)
    strict.run(0, [row(a) for a in range(9)])
    tables.run(f"INSERT INTO {tables}_child VALUES (5, 'it''s')")
    gone = [row(a, op="D") for a in range(9)]
    with pytest.raises(BadRow, match=r"row with a=5, .*foreign key"):
        strict.run(1, gone)
    strict.restart(onBadRow="deadLetter", deadLetter=f"{tables}_bad")
    strict.sink.check()
    strict.run(1, gone)
    stored, letters = found()
    assert stored == {5: 1}
    assert ["a=5" in reason for _, reason, _ in letters] == [True]
    strict.run(2, [row(5, op="D"), row(5, 2), row(6)])
    stored, letters = found()
    assert (stored, len(letters)) == ({5: 1, 6: 1}, 2), "put aside, and not written as well"


def test_change_before_one_that_is_put_aside_by_its_type_stays(tables: Table, found: Found) -> None:
    """It is as if the bad row were not there; but of a key's rows only the last one is tried."""
    bad = forgiving(tables)
    bad.run(0, [row(1, 5), row(1, 6, b="it's x"), row(2, 5), row(2, None), row(3, 13), row(3, 7)])
    stored, letters = found()
    assert stored == {1: 5, 3: 7}
    assert ["a=1" in letters[0][1], "a=2" in letters[1][1], len(letters)] == [True, True, 2]


def test_row_that_deletes_is_not_held_against_what_binds_stored_rows(tables: Table) -> None:
    strict = query(tables)
    strict.run(0, [row(1), row(2)])
    strict.run(1, [row(1, 13, "D"), row(2, None, "D")])
    assert tables.rows() == ()


@pytest.mark.slow
@pytest.mark.parametrize("fault", CUTS)
def test_each_is_put_aside_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, tables: Table, found: Found, fault: str
) -> None:
    bad = forgiving(tables, url=mysql_proxy.url)
    rows = lambda epoch: [row(1, -epoch), row(epoch + 100, None), row(2, -epoch)]  # noqa: E731
    bad.run(0, rows(0))
    run = lambda epoch: bad.run_until_done(epoch, rows(epoch))  # noqa: E731
    last = cut_each(mysql_proxy, fault, run, is_query)
    assert last > 20
    stored, letters = found()
    assert stored == dict.fromkeys((1, 2), -last)
    assert [epoch for epoch, _, _ in letters] == list(range(last + 1))


POINTING = "id INT PRIMARY KEY, x INT, extra INT DEFAULT 7, FOREIGN KEY (x) REFERENCES {0} (id)"
UNIQUE = "id INT PRIMARY KEY, x INT UNIQUE, extra INT DEFAULT 7"
Change = tuple[int, "int | None", str]
Case = tuple[str, str, list[Change], Any]
CHAINS: dict[str, Case] = {
    "a unique value moves on": (
        UNIQUE,
        "(1, 10, 0), (2, 20, 0)",
        [(1, None, "u"), (2, 30, "u"), (1, 20, "u")],
        [(1, 20, 0), (2, 30, 0)],
    ),
    "a unique value of a row that is deleted later": (
        UNIQUE,
        "(1, 10, 0)",
        [(2, 10, "c"), (1, None, "d")],
        [(2, 10, 7)],
    ),
    "parent before child": (
        POINTING,
        "(7, NULL, 0)",
        [(1, None, "c"), (2, None, "c"), (1, 2, "u")],
        [(1, 2, 7), (2, None, 7), (7, None, 0)],
    ),
    "child deleted before parent": (
        POINTING,
        "(1, NULL, 0), (2, 1, 0)",
        [(1, None, "u"), (2, None, "d"), (1, None, "d")],
        [],
    ),
}
REFUSED: dict[str, Case] = {
    "unique values go round": (
        UNIQUE,
        "(1, 10, 0), (2, 20, 0)",
        [(3, 5, "c"), (1, 20, "u"), (2, 10, "u")],
        r"row with id=1: .*Duplicate entry '20'",
    ),
    "a unique value is let go of on the way": (
        UNIQUE,
        "(1, 10, 0), (2, 20, 0)",
        [(2, None, "u"), (1, 20, "u"), (2, 30, "u")],
        r"row with id=1: .*Duplicate entry '20'",
    ),
    "child lets go, parent deleted": (
        POINTING,
        "(5, NULL, 0), (9, 5, 0)",
        [(9, None, "u"), (5, None, "d")],
        r"row with id=5: .*foreign key",
    ),
    "parent stays, and is written anew": (
        POINTING,
        "(5, NULL, 0), (9, 5, 0)",
        [(5, None, "d"), (5, 5, "c")],
        r"row with id=5: .*foreign key",
    ),
}
BY = [{}, {"sequenceColumn": "at"}]


def chained(table: Table, case: Case, **options: str) -> MySqlQuery:
    """A query into a table whose rows depend on each other."""
    definition, before, *_ = case
    table.create(f"{definition.format(table)}")
    table.run(f"INSERT INTO {table} VALUES {before}")
    kinds = {"id": pa.int32(), "x": pa.int32(), "op": pa.string(), "at": pa.int32()}
    made = MySqlQuery(
        pa.schema([one for one in kinds.items() if one[0] != "at" or "sequenceColumn" in options]),
        **{"url": table.url, "dbtable": table, "key": "id", "opColumn": "op", **options},
    )
    made.sink.check()
    return made


def changes(rows: list[Change]) -> list[dict[str, Any]]:
    return [{"id": id_, "x": x, "op": op, "at": at} for at, (id_, x, op) in enumerate(rows)]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("case", CHAINS)
def test_row_may_have_what_an_earlier_one_lets_go_of(
    table: Table, case: str, by: dict[str, str]
) -> None:
    """Earlier by its sequence, wherever it is."""
    rows = changes(CHAINS[case][2])
    chained(table, CHAINS[case], **by).run(0, rows[::-1] if by else rows)
    assert list(table.rows("*", "id")) == CHAINS[case][3]


@pytest.mark.parametrize("case", REFUSED)
def test_row_that_would_have_to_wait_for_a_later_one_is_refused_by_name(
    table: Table, case: str
) -> None:
    query = chained(table, REFUSED[case])
    before = table.rows("*", "id")
    with pytest.raises(BadRow, match=REFUSED[case][3]):
        query.run(0, changes(REFUSED[case][2]))
    assert table.rows("*", "id") == before


def test_parent_that_stays_is_neither_deleted_nor_written_anew(table: Table) -> None:
    bad = f"{table}_bad"
    options = {"onBadRow": "deadLetter", "deadLetter": bad}
    query = chained(table, REFUSED["child lets go, parent deleted"], **options)
    query.run(0, changes([(5, None, "d"), (5, 5, "c"), (3, None, "c")]))
    assert table.rows("*", "id") == ((3, None, 7), (5, None, 0), (9, 5, 0))
    assert [json.loads(row)["id"] for (row,) in table.run(f"SELECT row_data FROM {bad}")] == [5]
