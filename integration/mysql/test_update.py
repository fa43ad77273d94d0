"""`writeMode=update`: the last row of a key sets its columns in the stored rows, and adds none."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table, client, twin

from sparkonce.errors import BadRow, OptionError, SparkonceError

KINDS = {
    "id": pa.int64(),
    "name": pa.string(),
    "n": pa.int32(),
    "at": pa.timestamp("us", "UTC"),
    "d": pa.decimal128(9, 2),
}
DDL = (
    "id BIGINT PRIMARY KEY, name VARCHAR(9) COLLATE utf8mb4_general_ci, n TINYINT NOT NULL,"
    " at TIMESTAMP(6) NULL, d DECIMAL(9,2), own INT NOT NULL DEFAULT 7, INDEX (name)"
)
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32())])
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)


def updating(table: Table, key: str = "id", **options: str) -> Any:
    names = [*key.split(","), "n", *(("at", "d") if options.pop("all", "") else ())]
    schema = pa.schema([(name, KINDS[name]) for name in names])
    table.create(DDL)
    values = ", ".join(f"({at}, '{'aBc'[at % 3]}', {at}, NULL, NULL, {at})" for at in range(12))
    table.run(f"INSERT INTO {table} VALUES {values}")
    return table.checked(schema, key=key, writeMode="update", chunkRows="3", **options)


def stored(table: Table) -> list[tuple[Any, ...]]:
    with client(table.url) as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT id, name, n, at, d, own FROM {table} ORDER BY id")
        return list(cursor.fetchall())


@pytest.mark.parametrize("atomicity", ["epoch", "chunk"])
@pytest.mark.parametrize("key", ["id", "name", "name,id"])
@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 6))])
def test_drawn_rows_set_what_is_stored(table: Table, key: str, atomicity: str, seed: int) -> None:
    draw, query = random.Random(seed), updating(table, key, atomicity=atomicity, all="yes")
    wanted = [dict(zip((*KINDS, "own"), row, strict=True)) for row in stored(table)]

    def drawn() -> dict[str, Any]:
        at = BEGIN + timedelta(microseconds=draw.randrange(10**13))
        values = {"id": draw.randrange(16), "name": draw.choice("abCx"), "n": draw.randrange(99)}
        values |= {"at": draw.choice((None, at)), "d": draw.choice((None, Decimal("1.50")))}
        return {name: values[name] for name in query.schema.names}

    for epoch in range(4):
        rows = [drawn() for _ in range(draw.randrange(1, 12))]
        for one in rows:
            for row in wanted:
                if all(str(row[name]).lower() == str(one[name]).lower() for name in key.split(",")):
                    at = one["at"] and one["at"].replace(tzinfo=None)
                    row |= {"n": one["n"], "at": at, "d": one["d"]}
        query.run(epoch, rows)
        twin(query).run_until_done(epoch, [drawn()])
        shown = [tuple(row.values()) for row in wanted]
        assert stored(table) == shown


def test_a_row_that_the_table_rejects_is_a_bad_row(table: Table) -> None:
    query = updating(table)
    with pytest.raises(BadRow, match="column 'n'"):
        query.run(0, [{"id": 1, "n": 50}, {"id": 2, "n": 500}])
    assert [row[2] for row in stored(table)] == [*range(12)]
    with pytest.raises(BadRow, match="'n' cannot be null"):
        query.run(0, [{"id": 1, "n": 50}, {"id": 2, "n": None}])
    query.run(0, [{"id": 1, "n": None}, {"id": 1, "n": 50}])
    assert stored(table)[1][2] == 50


def test_bad_rows_are_put_aside_and_the_others_are_set(table: Table) -> None:
    letters = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad", "maxBadRows": "9"}
    query = updating(table, **letters)
    table.run(f"ALTER TABLE {table} ADD CHECK (n <> 66)")
    rows = [{"id": 1, "n": 50}, {"id": 2, "n": 500}, {"id": 3, "n": 66}, {"id": 99, "n": 66}]
    query.run(0, [*rows, {"id": 4, "n": 40}])
    assert [row[2] for row in stored(table)] == [0, 50, 2, 3, 40, *range(5, 12)]
    assert table.count("_bad") == 2


def test_what_can_not_be_updated_is_refused(table: Table) -> None:
    table.create("id BIGINT, n INT, INDEX (n)")
    given = {"key": "id", "writeMode": "update"}
    with pytest.raises(OptionError, match=r"No index .* begins with a column of option key='id'"):
        table.query(SCHEMA, **given).sink.check()
    with_op = SCHEMA.append(pa.field("op", pa.string()))
    for schema, more, what in (
        (SCHEMA, {"nulls": "keep"}, "writeMode=update and nulls=keep contradict"),
        (SCHEMA, {"createTable": "true"}, "writeMode=update and createTable contradict"),
        (with_op, {"opColumn": "op"}, "writeMode=update and opColumn contradict"),
        (SCHEMA, {"sequenceColumn": "n"}, "sequenceColumn and writeMode=update contradict"),
        (SCHEMA, {"key": "id,n"}, "no column besides those of option key"),
    ):
        with pytest.raises(OptionError, match=what):
            table.query(schema, **{**given, **more}).sink.check()


def test_added_columns_are_set(table: Table) -> None:
    query = updating(table, "id")
    more = pa.schema([*query.schema, ("extra", pa.string())])
    adding = table.checked(more, key="id", writeMode="update", addColumns="true")
    adding.run(0, [{"id": 3, "n": 1, "extra": "x"}, {"id": 33, "n": 1, "extra": "y"}])
    assert table.rows("id", "id") == tuple((at,) for at in range(12))
    assert table.run(f"SELECT id, n, extra FROM {table} WHERE extra IS NOT NULL") == ((3, 1, "x"),)


def test_a_time_in_the_key_stays_as_it_is(table: Table) -> None:
    now = "ON UPDATE CURRENT_TIMESTAMP"
    table.create(
        f"id BIGINT, at DATETIME NOT NULL {now}, ts TIMESTAMP NOT NULL DEFAULT '2020-01-01' {now},"
        " n INT, PRIMARY KEY (id, at, ts)"
    )
    table.run("SET time_zone = '+00:00'")
    table.run(f"INSERT INTO {table} VALUES (1, '2020-01-01', '2020-01-02', 1)")
    moments = [("at", pa.timestamp("us")), ("ts", pa.timestamp("us", "UTC"))]
    schema = pa.schema([("id", pa.int64()), *moments, ("n", pa.int32())])
    query = table.checked(schema, key="id,at,ts", writeMode="update")
    day = BEGIN.replace(year=2020)
    for epoch, n in enumerate((5, 6)):
        row = {"id": 1, "at": day.replace(tzinfo=None), "ts": day.replace(day=2), "n": n}
        query.run(epoch, [row])
        assert table.rows("n, at = '2020-01-01', ts = '2020-01-02'") == ((n, 1, 1),)


def test_a_table_that_lacks_all_columns_to_set_is_refused(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    schema = pa.schema([("id", pa.int64()), ("which", pa.string())])
    query = MySqlQuery(schema, url=table.url, dbtable="{which}", key="id", writeMode="update")
    query.sink.check()
    with pytest.raises(SparkonceError, match=r"no column of table .* besides"):
        query.run(0, [{"id": 1, "which": str(table)}])


def test_an_index_of_words_finds_no_key(table: Table) -> None:
    table.create("k VARCHAR(9), n INT, FULLTEXT INDEX (k)")
    schema = pa.schema([("k", pa.string()), ("n", pa.int32())])
    with pytest.raises(OptionError, match="No index"):
        table.query(schema, key="k", writeMode="update").sink.check()


def test_advice_for_a_value_that_another_row_has_does_not_name_upsert(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY, n INT UNIQUE")
    table.run(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    query = table.checked(SCHEMA, key="id", writeMode="update")
    with pytest.raises(BadRow, match="correct the row, or change the stored one"):
        query.run(0, [{"id": 1, "n": 2}])
