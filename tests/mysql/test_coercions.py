"""Values that a column of MySQL would change are found in the task, and no others."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysql.target.columns import TableColumn
from pyspark_mysql.write.chunks import ChunkEncoder, decode
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.preflight import checked_columns, require_kept
from sparkonce import codec
from sparkonce.change import Append, Upsert
from sparkonce.errors import StoreRefused
from sparkonce.values.rows import Unfit, naming_rows, separate_bad_rows

STR, INT = pa.string(), pa.int64()
DETAIL = TableRows(
    ("d", "t"), Append(), (), ("id", "v"), {"id": "int", "v": "string"}, aside=False, schema=""
)
LETTERS = st.text(st.sampled_from("aé€\U0001f600 \t\n\0'\\"), max_size=7)


def unfit(
    column: TableColumn, values: list[Any], kind: pa.DataType = STR, **more: Any
) -> list[int]:
    """The places of the values that the column can't hold as they are."""
    detail = replace(DETAIL, **more)
    encoder = ChunkEncoder(replace(detail, checked=checked_columns(detail, [column])))
    columns = [pa.array(range(len(values)), pa.int32()), pa.array(values, kind)]
    rows = pa.record_batch(columns, ["id", "v"])
    bad = separate_bad_rows(rows, encoder._texts)[1]
    return sorted(one.row.column("id")[0].as_py() for one in bad)


def text(kind: str, room: int, charset: str = "utf8mb4", width: int = 4) -> TableColumn:
    return TableColumn("V", kind, kind, 0, charset=charset, width=width, room=room)


@given(st.lists(st.none() | LETTERS, min_size=1), st.integers(1, 5))
def test_room_is_counted_in_characters_or_in_bytes(values: list[str | None], room: int) -> None:
    def longer(size: Any) -> list[int]:
        return [at for at, value in enumerate(values) if value and size(value) > room]

    assert unfit(text("varchar", room), values) == longer(len)
    assert unfit(text("tinytext", room, "latin1", 1), values) == longer(len)
    for charset, encoding in (
        ("utf8mb4", "utf-8"),
        ("utf16", "utf-16-be"),
        ("utf16le", "utf-16-be"),
        ("utf32", "utf-32-be"),
        ("euckr", "euc-kr"),
    ):
        if charset == "euckr":
            values = [value and re.sub("[é€\U0001f600]", "中", value) for value in values]
        by_bytes = longer(lambda value, encoding=encoding: len(value.encode(encoding)))
        width = 2 if charset == "euckr" else 4
        assert unfit(text("tinytext", room, charset, width), values) == by_bytes


def test_a_char_keeps_no_space_at_the_end() -> None:
    assert unfit(text("char", 4), ["abc ", "abc\t", " abc", None, "abcde", ""]) == [0, 4]


def test_a_longtext_has_room_for_all() -> None:
    assert unfit(text("longtext", 2**32 - 1), ["abc "]) == []


ENUM = TableColumn("v", "enum", "enum('a','+7','it''s','?')", 0, charset="latin1", width=1)


@pytest.mark.parametrize(
    ("declared", "values", "places"),
    [
        (("enum", "latin1"), ["a", "A", "+7", "7", " +8", "it's", "é", "1x", "", None], [3, 4, 6]),
        (("enum", "utf8mb4"), ["é", "7"], [1]),
        (("set", "latin1"), ["a,+7", "+7,a", "it's,?", "", "3", "a,é"], [4, 5]),
    ],
)
def test_a_text_that_is_no_member_is_no_number_of_one(
    declared: tuple[str, str], values: list[str], places: list[int]
) -> None:
    kind, charset = declared
    shown = ENUM.sql_type.replace("enum", kind)
    assert unfit(replace(ENUM, kind=kind, sql_type=shown, charset=charset), values) == places


@pytest.mark.parametrize(
    ("column", "values", "places"),
    [
        (TableColumn("v", "year", "year", 0), [0, 99, 100, 1999, -1, None], [1]),
        (TableColumn("v", "bit", "bit(64)", 0), [-1, 0, 1], [0]),
        (TableColumn("v", "bit", "bit(63)", 0), [-1], []),
        (TableColumn("v", "bigint", "bigint", 0, nullable=False, numbered=True), [0, None], [1]),
        (TableColumn("v", "bigint", "bigint", 0, nullable=False), [0, None], []),
    ],
)
def test_numbers_and_nulls_that_the_server_would_change(
    column: TableColumn, values: list[int], places: list[int]
) -> None:
    assert unfit(column, values, INT, kinds={"id": "int", "v": "bigint"}) == places


def test_a_key_has_one_spelling() -> None:
    upsert = {"change": Upsert(("v",)), "key": ("v",)}
    uuid = TableColumn("v", "uuid", "uuid", 0)
    spelled = "123e4567-e89b-12d3-a456-426614174000"
    assert unfit(uuid, [spelled, spelled.upper()], **upsert) == [1]
    assert unfit(uuid, [spelled.upper()]) == []
    four = TableColumn("v", "inet4", "inet4", 0)
    assert unfit(four, ["10.0.0.1", "010.0.0.1"], **upsert) == [1]
    filled = TableColumn("v", "binary", "binary(2)", 0, room=2)
    binary = {"kinds": {"id": "int", "v": "binary"}, **upsert}
    assert unfit(filled, [b"ab", b"a"], pa.binary(), **binary) == [1]


def test_of_a_row_that_deletes_the_key_alone_is_looked_at() -> None:
    detail = replace(
        DETAIL, change=Upsert(("id",), op="op"), key=("id",), kinds={"id": "int", "v": "string"}
    )
    shape = checked_columns(detail, [text("varchar", 1)])
    encoder = ChunkEncoder(replace(detail, checked=shape))
    rows = pa.record_batch(
        [pa.array([0, 1, 2, 3], pa.int32()), ["long"] * 4, ["update_preimage", "d", "u", "d"]],
        ["id", "v", "op"],
    )
    with pytest.raises(Unfit) as unfit:
        encoder._texts(rows)
    assert unfit.value.places.to_pylist() == [2], "among all rows, also those that do nothing"


def test_the_error_names_the_first_row_by_its_key() -> None:
    detail = replace(DETAIL, checked=checked_columns(DETAIL, [text("varchar", 2)]))
    rows = pa.record_batch([pa.array([6, 7], pa.int32()), ["ab", "ab "]], ["id", "v"])
    with pytest.raises(
        Exception, match=r"row with id=7 can't be stored: column 'v' can't be 'ab '"
    ):
        naming_rows(ChunkEncoder(detail), ["id"])(rows)


def test_a_chunk_says_which_columns_hold_a_null() -> None:
    rows = pa.record_batch([pa.array([6, None], pa.int32()), ["ab", "c"]], ["id", "v"])
    assert decode(ChunkEncoder(DETAIL)(rows)).rows.nulls == {"id"}


def test_a_table_that_was_altered_is_refused_where_that_matters() -> None:
    there = TableColumn("id", "int", "int", 0), text("varchar", 3)
    detail = replace(DETAIL, checked=checked_columns(DETAIL, there))
    detail = codec.load(TableRows, json.loads(json.dumps(codec.dump(detail))))  # of a manifest
    require_kept(detail, there)
    require_kept(detail, [replace(there[0], kind="bigint", sql_type="bigint"), there[1]])
    with pytest.raises(StoreRefused, match=r"'v' of table d\.t was varchar .* is char .*alter"):
        require_kept(detail, [there[0], text("char", 3)])
    with pytest.raises(StoreRefused, match=r"'id' of table d\.t was of another type.* is year"):
        require_kept(detail, [replace(there[0], kind="year", sql_type="year"), there[1]])


ENUM_OF_UTF8 = replace(ENUM, sql_type="enum('a','b')", charset="utf8mb4", width=4)


@pytest.mark.parametrize(
    ("then", "now", "kept"),
    [
        (text("varchar", 3), text("varchar", 4), True),
        (text("varchar", 3, "latin1", 1), text("varchar", 3), True),
        (text("varchar", 3), text("varchar", 3, "latin1", 1), False),
        (text("varchar", 3, "utf8", 3), text("varchar", 3, "utf8mb3", 3), True),
        (text("varchar", 3), text("longtext", 2**32 - 1), True),
        (text("tinytext", 255, "latin1", 1), text("tinytext", 255), False),
        (text("varchar", 3), text("char", 3), False),
        (text("varchar", 3), replace(text("varchar", 3), nullable=False), True),
        (replace(ENUM, sql_type="enum('a')"), ENUM_OF_UTF8, True),
        (ENUM_OF_UTF8, replace(ENUM_OF_UTF8, sql_type="enum('a')"), False),
        (
            TableColumn("v", "timestamp", "timestamp", 0),
            TableColumn("v", "datetime", "datetime", 0),
            True,
        ),
        (
            TableColumn("v", "timestamp", "timestamp", 0),
            TableColumn("v", "timestamp", "timestamp", 0, nullable=False),
            False,
        ),
    ],
)
def test_a_column_that_holds_all_that_it_did_may_be_altered(
    then: TableColumn, now: TableColumn, kept: bool
) -> None:
    detail = replace(DETAIL, checked=checked_columns(DETAIL, [then]))
    with nullcontext() if kept else pytest.raises(StoreRefused, match=r"'v' .* was .* and is"):
        require_kept(detail, [now])


@pytest.mark.parametrize(("charset", "letter"), [("cp932", "\u6661"), ("tis620", "\U00010061")])
def test_a_letter_that_the_servers_change_is_refused_wherever_it_stands(
    charset: str, letter: str
) -> None:
    values = ["a", letter, f"b{letter}c", None]
    for kind in ("varchar", "text", "longtext"):
        assert unfit(text(kind, 99, charset, 1), values) == [1, 2]
    assert unfit(replace(ENUM, charset=charset), ["a", letter]) == [1]
    lists = [[value] for value in values]
    for kind in ("json", "json(decimal(38,0))"):
        nested = {"kinds": {"id": "int", "v": kind}}
        assert unfit(text("varchar", 99, charset, 1), lists, pa.list_(STR), **nested) == [1, 2]


def test_where_the_bytes_are_not_known_only_white_space_may_be_cut() -> None:
    column = text("tinytext", 255, "gb18030", 4)
    assert unfit(column, ["a" * 62 + " ", "a" * 64 + " ", "a" * 255, "a" * 300]) == [1]
