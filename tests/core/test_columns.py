"""Columns and types: what can't be stored, and what Spark hands over otherwise."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)
from tests.scenarios import assert_refused

from sparkonce.errors import OptionError, UnsupportedQuery
from sparkonce.spark.types import arrow_schema
from sparkonce.values.spark_types import as_announced, parse

CONTROLS = ["\0", "\n", "\x1b", "\x7f", "\x85"]


def struct(name: str, kind: DataType | None = None) -> StructType:
    return StructType([StructField(name, kind or LongType())])


@pytest.mark.parametrize("sign", CONTROLS)
def test_a_name_with_a_control_character_is_refused(sign: str) -> None:
    assert_refused(lambda: arrow_schema(struct(f"a{sign}b")), f"Column {f'a{sign}b'!r} has a con")
    assert_refused(lambda: parse(f"id bigint, `a{sign}b` int"), f"Column {f'a{sign}b'!r} has a con")


@pytest.mark.parametrize(
    "kind",
    [
        struct("a\0b"),
        struct("in", struct("a\0b")),
        ArrayType(struct("a\0b")),
        MapType(StringType(), ArrayType(struct("a\0b"))),
        MapType(struct("a\0b"), StringType()),
    ],
)
def test_so_is_one_at_any_depth(kind: DataType) -> None:
    assert_refused(lambda: arrow_schema(struct("st", kind)), r"a\x00b' has a control character")


def test_other_names_are_as_good_as_before() -> None:
    names = ["naïve", "a b", "a.b", "`", "日本", "\U0001f600"]
    assert arrow_schema(StructType([StructField(n, LongType()) for n in names])).names == names


ANNOUNCED = parse(
    "id bigint, s string, at timestamp, st struct<a:int,b:struct<c:binary>>, m map<string,int>,"
    " l array<struct<x:int>>"
)
AS_SESSIONS_HAVE_IT = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("s", pa.large_string()),
        ("at", pa.timestamp("us", "Europe/Berlin")),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.large_binary())]))])),
        ("m", pa.map_(pa.large_string(), pa.int32())),
        ("l", pa.list_(pa.field("element", pa.struct([("x", pa.int32())])))),
    ]
)


def handed(schema: pa.Schema) -> list[pa.RecordBatch]:
    return [*as_announced([pa.RecordBatch.from_pylist([], schema)], ANNOUNCED)]


def test_sizes_of_texts_and_zones_of_times_may_be_those_of_the_session() -> None:
    assert len(handed(AS_SESSIONS_HAVE_IT)) == 1
    assert len(handed(ANNOUNCED)) == 1


@pytest.mark.parametrize(
    ("place", "field"),
    [
        (0, pa.field("i", pa.int64())),
        (0, pa.field("id", pa.int32())),
        (2, pa.field("at", pa.timestamp("us"))),
        (
            3,
            pa.field(
                "st", pa.struct([("a", pa.int32()), ("", ANNOUNCED.field("st").type[1].type)])
            ),
        ),
        (5, pa.field("l", pa.list_(pa.struct([("y", pa.int32())])))),
    ],
)
def test_columns_that_are_not_those_announced_are_refused(place: int, field: pa.Field) -> None:
    name = ANNOUNCED.field(place).name
    with pytest.raises(UnsupportedQuery, match=f"difference is '{name}'"):
        handed(AS_SESSIONS_HAVE_IT.set(place, field))


# -- types of Spark that Arrow has no equal of: written, or refused by the column's name


NOTHING = ArrayType(NullType(), containsNull=False)
"""What ``array()`` is."""


def made(kind: object) -> pa.DataType:
    return arrow_schema(StructType([StructField("tags", kind, nullable=False)])).field("tags").type


def test_an_array_without_elements_is_one() -> None:
    assert made(NOTHING) == pa.list_(pa.null())
    assert made(ArrayType(NOTHING)) == pa.list_(pa.list_(pa.null()))
    assert made(NullType()) == pa.null()
    nested = StructType([StructField("inner", NOTHING, nullable=False)])
    assert made(nested).field("inner").type == pa.list_(pa.null())


@pytest.mark.parametrize("value", [NullType(), LongType()])
def test_a_map_without_entries_is_refused_by_its_name(value: object) -> None:
    with pytest.raises(OptionError, match=r"Column 'tags' has type map<void,\w+>"):
        made(MapType(NullType(), value))
