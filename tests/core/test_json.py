"""The JSON text of every value that Spark can hand over; and values back from text and JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkonce.values import from_json, from_text
from sparkonce.values.spark_types import type_name
from sparkonce.values.text import UnsupportedType, to_json, to_text

UTC = timezone.utc
PLACE = pa.struct([("name", pa.string()), ("score", pa.float64())])


def json_of(values, kind):
    """What `to_json` makes of Python values."""
    encoded = to_json(pa.array(values, kind))
    assert encoded.type == pa.string()
    encoded.validate(full=True)
    return encoded.to_pylist()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_floats_are_numbers_that_still_look_like_floats(kind):
    values = [1.0, -0.0, 0.5, 1e22, 1e-7, 100.0, None]
    expected = ["1.0", "-0.0", "0.5", "1e+22", "1e-7", "100.0", None]
    assert json_of(values, kind) == expected
    assert all(isinstance(json.loads(text), float) for text in expected if text)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_what_json_has_no_number_for_is_a_string_as_spark_has_it(kind):
    values = [math.nan, math.inf, None, -math.inf, 2.5]
    assert json_of(values, kind) == ['"NaN"', '"Infinity"', None, '"-Infinity"', "2.5"]


@pytest.mark.parametrize("code", range(0x20))
def test_every_control_character_is_escaped(code):
    value = f"a{chr(code)}b{chr(code)}"
    (text,) = json_of([value], pa.string())
    assert json.loads(text) == value
    assert text == json.dumps(value)


def test_quotes_and_backslashes_are_escaped_once():
    for value in ('"', "\\", '\\"', "\\\\n", '{"a":"\\u0000"}'):
        assert json_of([value], pa.string()) == [json.dumps(value)]


def test_other_characters_are_kept():
    value = "é漢🎈\x7f\u2028/"
    for kind in (pa.string(), pa.large_string()):
        assert json_of([value, "", None], kind) == [f'"{value}"', '""', None]


def test_dates_and_times_are_strings_of_their_text():
    assert json_of([date(2013, 1, 1)], pa.date32()) == ['"2013-01-01"']
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    assert json_of([noon], pa.timestamp("us", "Asia/Tokyo")) == ['"2013-01-01T12:00:00.000000Z"']
    assert json_of([datetime.min], pa.timestamp("us")) == ['"0001-01-01T00:00:00.000000"']
    assert json_of([time(1, 2)], pa.time64("ns")) == ['"01:02:00.000000"']


def test_field_names_are_escaped():
    kind = pa.struct([('a"\n', pa.int8()), ("é", pa.null())])
    assert json_of([{'a"\n': 1, "é": None}], kind) == ['{"a\\"\\n":1,"é":null}']


@pytest.mark.parametrize(
    ("kind", "key", "text"),
    [
        (pa.bool_(), True, "true"),
        (pa.int32(), -7, "-7"),
        (pa.float64(), math.nan, "nan"),
        (pa.float64(), 2.0, "2"),
        (pa.decimal128(9, 2), Decimal("0.10"), "0.10"),
        (pa.date32(), date(2013, 1, 1), "2013-01-01"),
        (pa.timestamp("us", "UTC"), datetime(2013, 1, 1), "2013-01-01T00:00:00.000000Z"),
        (pa.duration("us"), timedelta(microseconds=3), "3"),
        (pa.binary(), b"\xff", "/w=="),
    ],
    ids=str,
)
def test_map_keys_are_the_text_form_of_the_key(kind, key, text):
    assert json_of([[(key, 1)]], pa.map_(kind, pa.int8())) == [f'{{"{text}":1}}']


@pytest.mark.parametrize(
    "rows",
    [[[("a", 1)], [("b", 1), ("a", 2), ("b", 3)]], [None, [("b", 1), ("b", None)], []]],
    ids=str,
)
def test_a_key_may_be_only_once_in_a_map(rows):
    kind = pa.map_(pa.string(), pa.int64())
    for nested, within in ((kind, rows), (pa.list_(kind), [[], rows])):
        with pytest.raises(ValueError, match='a map has the key "b" twice'):
            to_json(pa.array(within, nested))
    assert json_of([[("b", 1)], None, [("a", 1), ("b", 2)], [("b", 3)]], kind) == [
        '{"b":1}',
        None,
        '{"a":1,"b":2}',
        '{"b":3}',
    ]


def test_keys_that_are_equal_as_numbers_and_not_as_texts_are_two():
    rows = [[(0.0, 1), (-0.0, 2)]]
    assert json_of(rows, pa.map_(pa.float64(), pa.int8())) == ['{"0":1,"-0":2}']


def test_a_map_with_nested_keys_has_no_json_form():
    with pytest.raises(UnsupportedType, match="keys of type struct"):
        to_json(pa.nulls(1, pa.map_(PLACE, pa.int8())))


NULL_AMID_TWO = pa.array([False, True, False])


def test_children_behind_a_null_struct_are_not_shown():
    child = pa.array(["a", "b", "c"])
    column = pa.StructArray.from_arrays([child], ["x"], mask=NULL_AMID_TWO)
    assert to_json(column).to_pylist() == ['{"x":"a"}', None, '{"x":"c"}']
    outer = pa.StructArray.from_arrays([column], ["s"])
    assert to_json(outer.slice(1)).to_pylist() == ['{"s":null}', '{"s":{"x":"c"}}']


def test_children_behind_a_null_struct_may_be_anything():
    child = pa.array([0, 2**62, 0]).view(pa.timestamp("us"))
    column = pa.StructArray.from_arrays([child], ["x"], mask=NULL_AMID_TWO)
    assert to_json(column)[1].as_py() is None


def test_elements_behind_a_null_list_are_not_shown():
    offsets = pa.array([0, 1, 3, 4], pa.int32())
    column = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 3, 4]), mask=NULL_AMID_TWO)
    assert to_json(column).to_pylist() == ["[1]", None, "[4]"]
    assert to_json(column.slice(1)).to_pylist() == [None, "[4]"]


def test_entries_behind_a_null_map_are_not_shown():
    kind = pa.map_(pa.string(), pa.int64())
    entries = pa.StructArray.from_arrays(
        [pa.array(["a", "b", "c", "d"]), pa.array([1, 2, 3, 4])],
        fields=[kind.key_field, kind.item_field],
    )
    buffers = [pa.py_buffer(b"\x05"), pa.array([0, 1, 3, 4], pa.int32()).buffers()[1]]
    column = pa.Array.from_buffers(kind, 3, buffers, children=[entries])
    assert to_json(column).to_pylist() == ['{"a":1}', None, '{"d":4}']
    assert to_json(column.slice(1)).to_pylist() == [None, '{"d":4}']


# -- columns from their texts and from JSON: back as they were, or an error; never another value


WIDE = Decimal("-12345678901234567890.123456789012345678")
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    (pa.float32(), [0.1, -0.0, 3.4028234663852886e38, 1e-45]),
    (pa.float64(), [0.1, -0.0, 1e22, 5e-324, -1.7976931348623157e308]),
    (pa.decimal128(38, 18), [WIDE, Decimal("1E-18")]),
    (pa.string(), ["", "null", '"', "\\", "\n", "ü 😀", "0", "[1]"]),
    (pa.binary(), [b"", b"\x00\xff", b"ab"]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(2026, 3, 29, 1, 30, 0, 1, UTC)],
    ),
    (pa.timestamp("us"), [dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    (pa.time64("ns"), [dt.time(0), dt.time(23, 59, 59, 999999)]),
    (pa.duration("us"), [dt.timedelta(days=-1, microseconds=5)]),
    (pa.list_(pa.string()), [[], ["", None, "a"]]),
    (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]), [{"a": None, "b": [0.5]}]),
    (
        pa.struct([("d", pa.date32()), ("b", pa.binary())]),
        [{"d": dt.date(2026, 1, 1), "b": b"\xff"}],
    ),
    (pa.map_(pa.string(), pa.decimal128(10, 2)), [[("k.1", Decimal("1.50"))], []]),
    (pa.list_(pa.map_(pa.string(), pa.int64())), [[[("k", 1)], None]]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_values_come_back_from_their_texts(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, None], kind)
    assert same(from_json.column(to_text(column), kind), column)


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_values_inside_others_come_back_from_json(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([values, None, [*values, None]], pa.list_(kind))
    assert same(from_json.column(to_json(column), column.type), column)


def same(found: pa.Array, column: pa.Array) -> bool:
    """Whether all values are, so that -0.0 is not 0.0."""
    return found.type == column.type and repr(found.to_pylist()) == repr(column.to_pylist())


@given(st.lists(st.floats(allow_nan=False), max_size=5))
def test_doubles_come_back_to_the_bit(values: list[float]) -> None:
    column = pa.array(values, pa.float64())
    assert same(from_text.column(to_text(column), column.type), column)


OTHERS: list[tuple[pa.DataType, str, Any]] = [
    (pa.int64(), "5.0", 5),
    (pa.int64(), "5e3", 5000),
    (pa.bool_(), "1", True),
    (pa.decimal128(10, 2), "1.5000", Decimal("1.50")),
    (pa.date32(), "2026-01-02 00:00:00", dt.date(2026, 1, 2)),
    (pa.timestamp("us", "UTC"), "2026-01-02", dt.datetime(2026, 1, 2, tzinfo=UTC)),
    (pa.timestamp("us", "UTC"), "2026-01-02 03:04", dt.datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
    (
        pa.timestamp("us", "UTC"),
        "2026-01-02T03:04:05+01:00",
        dt.datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
    ),
    (pa.timestamp("us"), "2026-01-02T03:04:05+01:00", dt.datetime(2026, 1, 2, 2, 4, 5)),
]
"""What others write for the same value."""


@pytest.mark.parametrize(("kind", "text", "value"), OTHERS, ids=str)
def test_what_a_plain_client_wrote_is_read(kind: pa.DataType, text: str, value: Any) -> None:
    assert from_text.column(pa.array([text, None]), kind).to_pylist() == [value, None]


WRONG: list[tuple[pa.DataType, list[str]]] = [
    (pa.int64(), ["", " 5", "5 ", "1_000", "0x10", "07", "-07", "+5", "5.5", "\u0665", "x"]),
    (pa.int64(), ["9223372036854775808"]),
    (pa.float64(), ["", "1e400", "-1e400", "0x1p3", "1,5", "x"]),
    (pa.float32(), ["1e39"]),
    (pa.bool_(), ["", "yes", "2", "t"]),
    (pa.decimal128(10, 2), ["", "1.555", "123456789.00", "x", "NaN"]),
    (pa.date32(), ["", "2026-02-30", "2026-01-02T03:04:05", "02.01.2026", "0000-00-00"]),
    (pa.timestamp("us", "UTC"), ["", "x", "2026-01-02T25:00:00Z", "2026-01-02T03:04:05.1234567Z"]),
    (pa.time64("ns"), ["", "24:00:00", "-01:00:00", "x"]),
    (pa.duration("us"), ["", "1.5", "x"]),
    (pa.list_(pa.int64()), ["", "[1", "1", "{}", '["x"]', "[1.5]", "[1] [2]", '[1],"w":2']),
    (pa.list_(pa.int64()), ["[99999999999999999999]", '[1],"v":[2]']),
    (pa.list_(pa.bool_()), ['["yes"]', "[2]"]),
    (pa.list_(pa.decimal128(10, 2)), ["[1.555]"]),
    (pa.list_(pa.binary()), ['["a"]', '["YQ==!"]', "[1234]"]),
    (pa.list_(pa.float64()), ["[1e400]"]),
    (pa.list_(pa.string()), ['"abc"', "123", '{"a":1}']),
    (pa.map_(pa.string(), pa.int64()), ["[]", '""', "5"]),
    (pa.map_(pa.int64(), pa.int64()), ['{"1":1,"01":2}']),
    (pa.struct([("a", pa.int64())]), ["[]", '"x"', "5"]),
]


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in WRONG for text in texts], ids=str
)
def test_a_text_that_is_none_of_the_type_is_an_error(kind: pa.DataType, text: str) -> None:
    named = "bigint|interval" if pa.types.is_duration(kind) else re.escape(type_name(kind))
    with pytest.raises(ValueError, match=named):
        from_json.column(pa.array([text]), kind)


def test_bytes_that_are_no_text_are_no_string() -> None:
    with pytest.raises(ValueError, match="UTF8"):
        from_text.column(pa.array([b"\xff"]), pa.string())
    assert from_text.column(pa.array([b"\xff"]), pa.binary()).to_pylist() == [b"\xff"]
