"""Columns that a query has and its table lacks, by option addColumns."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table, twin

from sparkonce.errors import BadRow, OptionError, StoreRefused, StoreUnsafe

pytestmark = pytest.mark.variants
INT, STR = pa.int64(), pa.string()
KINDS = {
    **{f"n{kind}": kind for kind in (pa.int8(), pa.int64(), pa.float32(), pa.float64())},
    "text": STR,
    "bytes": pa.binary(),
    "yes": pa.bool_(),
    "decimal": pa.decimal128(20, 3),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "odd `name.€": pa.list_(INT),
}


def into(table: Table, columns: dict[str, pa.DataType], **options: str) -> MySqlQuery:
    schema = pa.schema([("id", INT), *columns.items()])
    return table.query(schema, **{"key": "id", "addColumns": "true", **options})


def names(table: Table, suffix: str = "") -> list[str]:
    return [row[0] for row in table.run(f"SHOW COLUMNS FROM `{table}{suffix}`")]


@pytest.mark.parametrize("seed", [1, *slow_cases(2, 3, 4)])
def test_query_that_restarts_with_new_columns_adds_them(table: Table, seed: int) -> None:
    chance = random.Random(seed)
    table.create("id BIGINT PRIMARY KEY, old INT DEFAULT 5")
    wanted, columns = ["id", "old"], dict[str, pa.DataType]()
    query = into(table, columns)
    for epoch in range(4):
        query.run(epoch, [{"id": epoch}])
        for name in chance.sample([*KINDS], 3):
            columns[name] = KINDS[name]
            wanted += [name] if name not in wanted else []
        former, query = query, into(table, columns)
        query.query_id = former.query_id
    query.run(4, [{"id": 4}])
    assert names(table) == wanted
    assert table.rows("id, old", "id") == tuple((epoch, 5) for epoch in range(5))


def test_without_the_option_nothing_is_added(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    with pytest.raises(OptionError, match="'v' of the query is not in the table"):
        into(table, {"v": INT}, addColumns="false").sink.check()
    assert names(table) == ["id"]


def test_columns_are_added_before_the_decision(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    query = into(table, {"v": INT})
    query.stage(0, [{"id": 1, "v": 2}])
    assert names(table) == ["id", "v"]
    query.run(0, [{"id": 1, "v": 2}])
    assert table.rows() == ((1, 2),)


def test_column_that_is_dropped_meanwhile_comes_back_for_the_next_epoch(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    query = into(table, {"v": INT})
    query.run(0, [{"id": 1, "v": 2}])
    receipts = query.stage(1, [{"id": 2, "v": 3}])
    table.run(f"ALTER TABLE {table} DROP COLUMN v")
    with pytest.raises(StoreRefused, match="'v' of the query is not in the table"):
        query.commit(1, receipts)
    query.restart()
    query.run(1, [{"id": 2, "v": 3}])
    assert table.rows("*", "id") == ((1, None), (2, 3))


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ({"v": pa.null()}, {}, "can't create column 'v' of type void"),
        ({"n" * 65: INT}, {}, "can't create a column named"),
        ({"k": INT}, {"key": "id,k"}, "'k' of the query is not in the table"),
        ({"ID": INT}, {}, "'ID'"),
        ({"v": INT, "V": INT}, {}, "'v' of the query is not in the table"),
        ({"v": INT}, {"writeMode": "delete", "key": "v"}, "'v' of the query is not in the table"),
    ],
)
def test_what_can_not_be_added_is_refused(
    table: Table, columns: dict[str, Any], options: dict[str, str], said: str
) -> None:
    table.create("id BIGINT PRIMARY KEY")
    with pytest.raises(OptionError, match=said):
        into(table, columns, **options).sink.check()
    assert names(table) == ["id"]


def test_table_without_room_is_refused(table: Table) -> None:
    table.create(f"id BIGINT PRIMARY KEY, {', '.join(f'c{at} BIT' for at in range(1010))}")
    with pytest.raises(OptionError, match=r"addColumns can't add .*room"):
        into(table, {f"d{at}": INT for at in range(16)}).sink.check()


@pytest.mark.parametrize(
    "form", ["VIEW {} AS SELECT 1 AS id", "TABLE {} (id BIGINT) ENGINE=MyISAM"]
)
def test_target_that_is_refused_is_not_altered(table: Table, form: str) -> None:
    table.run(f"CREATE {form.format(table)}")
    with pytest.raises((OptionError, StoreUnsafe), match=r"is a view|MyISAM"):
        into(table, {"v": INT}).sink.check()
    assert names(table) == ["id"]


def test_sequence_and_operation_are_not_added(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    query = into(table, {"op": STR, "s": INT, "v": INT}, opColumn="op", sequenceColumn="s")
    query.run(0, [{"id": 1, "op": "u", "s": 1, "v": 2}])
    assert names(table) == ["id", "v"]


def test_each_table_that_rows_name_gets_the_columns(table: Table) -> None:
    for name in "ab":
        table.run(f"CREATE TABLE {table}_{name} (id BIGINT PRIMARY KEY)")
    given = {"dbtable": f"{table}_{{t}}"}
    into(table, {"t": STR, "v": INT}, **given).run(
        0, [{"id": 1, "t": "a", "v": 1}], [{"id": 1, "t": "b", "v": 1}, {"id": 2, "t": "a", "v": 1}]
    )
    assert names(table, "_a") == names(table, "_b") == ["id", "v"]


def test_two_queries_add_columns_of_one_table(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    one, other = into(table, {"v": INT, "x": INT}), into(table, {"v": INT, "y": INT}, sinkId="s")
    one.run(0, [{"id": 1, "v": 1, "x": 1}])
    other.run(0, [{"id": 2, "v": 2, "y": 2}])
    assert table.rows("*", "id") == ((1, 1, 1, None), (2, 2, None, 2))
    late = twin(one)
    late.run(0, [{"id": 1, "v": 9, "x": 9}])
    assert table.rows("v", "id") == ((1,), (2,))


def test_bad_row_leaves_the_new_column(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY")
    query = into(table, {"v": pa.float64()})
    with pytest.raises(BadRow):
        query.run(0, [{"id": 1, "v": float("nan")}])
    assert (names(table), table.rows()) == (["id", "v"], ())
