"""Dead letters: rows as JSON that Spark reads back; what Spark makes of it, see integration."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkonce.errors import OptionError
from sparkonce.values import from_json, letters, spark_types, text

FORMS: list[tuple[str, Any, str]] = [
    ("boolean", True, "true"),
    ("bigint", 2**63 - 1, "9223372036854775807"),
    ("decimal(38,18)", Decimal("-1E-18"), "-0.000000000000000001"),
    ("float", 0.1, "0.1"),
    ("double", float("-inf"), '"-Infinity"'),
    ("string", "None", '"None"'),
    ("string", None, "null"),
    ("binary", b"\x00\xff", '"AP8="'),
    ("date", 2_932_897, '"+10000-01-01"'),
    ("date", -719_529, '"-0001-12-31"'),
    ("date", 2**31 - 1, '"+5881580-07-11"'),
    ("timestamp", 2**63 - 1, '"+294247-01-10T04:00:54.775807Z"'),
    ("timestamp_ntz", -(2**63), '"-290308-12-21T19:59:05.224192"'),
    ("time", 86_399_999_999_999, '"23:59:59.999999999"'),
    ("interval day to second", -1, "\"INTERVAL '-0 00:00:00.000001' DAY TO SECOND\""),
    ("interval hour to minute", 93_780_000_000, "\"INTERVAL '26:03' HOUR TO MINUTE\""),
    ("interval day", 86_400_000_000, "\"INTERVAL '1' DAY\""),
    ("interval second", 1_500_000, "\"INTERVAL '1.500000' SECOND\""),
    ("map<string,int>", [("a", 1), ("a", None)], '{"a": 1, "a": null}'),
    ("map<date,int>", [(0, 1)], '[{"key": "1970-01-01", "value": 1}]'),
    ("array<struct<a:int,`b c`:string>>", [{"a": 1}, None], '[{"a": 1, "b c": null}, null]'),
]


def letter(ddl: str, value: Any) -> letters.Letter:
    schema = spark_types.parse(f"k int, v {ddl}")
    columns = [pa.array([7], pa.int32()), pa.array([value], schema.field("v").type)]
    row = pa.record_batch(columns, names=["k", "v"])
    return letters.of_row("why", row, schema, ["k"])


@pytest.mark.parametrize(("ddl", "value", "form"), FORMS, ids=str)
def test_value_has_its_documented_form(ddl: str, value: Any, form: str) -> None:
    assert letter(ddl, value) == ("why", f'{{"k": 7, "v": {form}}}', '{"k": 7}', ())


def test_column_with_a_string_that_is_not_utf8_has_base64_instead_and_is_named() -> None:
    texts = pa.array([[b"\xff", b"a"]]).cast(pa.list_(pa.binary()))
    odd = pa.ListArray.from_arrays([0, 2], texts.flatten().view(pa.string()))
    row = pa.record_batch([odd], names=["v"])
    made = letters.of_row("why", row, spark_types.parse("v array<string>"))
    assert (made.row, made.base64) == ('{"v": ["/w==", "YQ=="]}', ("v",))


@pytest.mark.parametrize(("ddl", "value", "form"), FORMS, ids=str)
def test_what_a_store_has_as_text_becomes_the_same_letter(ddl: str, value: Any, form: str) -> None:
    """Where there is a text: not of years of five digits, nor of a key that is there twice."""
    schema = spark_types.parse(f"v {ddl}")
    column = pa.array([value], schema.field("v").type)
    try:
        (document,) = text.to_json(column).to_pylist()
    except ValueError:
        return
    tree = from_json.parse_tree(document) if document is not None else None
    assert letters.of_trees("", {"v": tree}, schema).row == f'{{"v": {form}}}'


@given(st.floats(width=32, allow_nan=False))
def test_float_comes_back_from_its_text_to_the_bit(value: float) -> None:
    column = pa.array([value], pa.float32())
    (document,) = text.to_json(column).to_pylist()
    assert from_json.array_of_tree(from_json.parse_tree(document), pa.float32()).equals(column)


@given(st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=9))
def test_decimal_comes_back_whatever_scale_a_column_gave_it(value: Decimal) -> None:
    for shown in (f"{value:f}", f"{value:f}000"):
        assert from_json.array_of_tree(shown, pa.decimal128(38, 9)).to_pylist() == [value]


def test_value_that_a_store_bent_is_kept_as_its_text() -> None:
    made = letters.of_trees("", {"v": "0000-00-00"}, spark_types.parse("v date"))
    assert json.loads(made.row) == {"v": "0000-00-00"}


SCHEMAS = [
    "id bigint, name string",
    "`a b` decimal(10,2), `c``d` map<string collate UNICODE_CI,array<interval hour to second>>",
    "s struct<x:int,y:struct<z:binary>>, t timestamp, n timestamp_ntz, d date, u time(9), v void",
]


@pytest.mark.parametrize("ddl", SCHEMAS)
def test_schema_is_shown_as_it_is_read(ddl: str) -> None:
    assert spark_types.to_ddl(spark_types.parse(ddl)) == ddl


def test_schema_is_read_as_spark_writes_it() -> None:
    given = "ID: INT NOT NULL COMMENT 'it''s', n NUMERIC, c CHAR(3), s STRUCT<a: STRING NOT NULL>"
    read = "ID int, n decimal(10,0), c string, s struct<a:string>"
    assert spark_types.to_ddl(spark_types.parse(given)) == read


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("id", "more"),
        ("id bigint,", "more"),
        ("id bignum", "a type that can be written, and not 'bignum'"),
        ("id array<int", "'>', and not ''"),
        ("id interval year", "an interval of days to seconds"),
        ("id bigint;", "no ';'"),
        ("id decimal(x)", "a whole number"),
    ],
)
def test_schema_that_cannot_be_read_says_where(ddl: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        spark_types.parse(ddl)
    assert said in caught.value.why
