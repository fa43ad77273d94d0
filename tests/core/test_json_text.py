"""The JSON text of every value that Spark can hand over."""

import base64
import json
import math
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkonce.values.text import UnsupportedType, to_json

UTC = timezone.utc
PLACE = pa.struct([("name", pa.string()), ("score", pa.float64())])


def json_of(values, kind):
    """What `to_json` makes of Python values."""
    encoded = to_json(pa.array(values, kind))
    assert encoded.type == pa.string()
    encoded.validate(full=True)
    return encoded.to_pylist()


def test_literals_and_integers():
    assert json_of([True, None, False], pa.bool_()) == ["true", None, "false"]
    assert json_of([-(2**63), 2**63 - 1], pa.int64()) == [str(-(2**63)), str(2**63 - 1)]
    assert json_of([timedelta(seconds=-1)], pa.duration("us")) == ["-1000000"]


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


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
@settings(deadline=None, database=None)
def test_doubles_read_back_as_the_same_double(values):
    back = [json.loads(text) for text in json_of(values, pa.float64())]
    assert [struct.pack("d", value) for value in back] == [struct.pack("d", v) for v in values]


def test_decimals_are_numbers_in_plain_notation():
    values = [Decimal("1E-18"), Decimal("-2.5")]
    texts = ["0.000000000000000001", "-2.500000000000000000"]
    assert json_of(values, pa.decimal128(38, 18)) == texts


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


def test_a_slice_is_escaped_as_the_whole_column_is():
    column = pa.array(['"first"', "plain", None, "la\nst"])
    assert to_json(column.slice(1, 2)).to_pylist() == ['"plain"', None]
    assert to_json(column.slice(2)).to_pylist() == [None, '"la\\nst"']


@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(0, 5))
@settings(deadline=None, database=None)
def test_binary_is_base64(values, start):
    for kind in (pa.binary(), pa.large_binary()):
        expected = [v if v is None else f'"{base64.b64encode(v).decode()}"' for v in values]
        assert to_json(pa.array(values, kind).slice(start)).to_pylist() == expected[start:]


def test_dates_and_times_are_strings_of_their_text():
    assert json_of([date(2013, 1, 1)], pa.date32()) == ['"2013-01-01"']
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    assert json_of([noon], pa.timestamp("us", "Asia/Tokyo")) == ['"2013-01-01T12:00:00.000000Z"']
    assert json_of([datetime.min], pa.timestamp("us")) == ['"0001-01-01T00:00:00.000000"']
    assert json_of([time(1, 2)], pa.time64("ns")) == ['"01:02:00.000000"']


def test_a_struct_is_an_object_with_all_fields_in_order():
    rows = [{"name": "x", "score": None}, None, {"name": None, "score": 2.0}]
    texts = ['{"name":"x","score":null}', None, '{"name":null,"score":2.0}']
    assert json_of(rows, PLACE) == texts


def test_field_names_are_escaped():
    kind = pa.struct([('a"\n', pa.int8()), ("é", pa.null())])
    assert json_of([{'a"\n': 1, "é": None}], kind) == ['{"a\\"\\n":1,"é":null}']


def test_a_struct_without_fields_is_an_empty_object():
    assert json_of([{}, None], pa.struct([])) == ["{}", None]
    assert json_of([], pa.struct([])) == []


def test_lists_may_be_empty_and_hold_nulls():
    rows = [[], [None], None, ["a", None, "b"], [None, None]]
    for kind in (pa.list_(pa.string()), pa.large_list(pa.string())):
        assert json_of(rows, kind) == ["[]", "[null]", None, '["a",null,"b"]', "[null,null]"]
    assert json_of([[None], []], pa.list_(pa.null())) == ["[null]", "[]"]


def test_maps_may_be_empty_and_hold_nulls():
    rows = [[], [("a", None), ('b"', 1)], None]
    assert json_of(rows, pa.map_(pa.string(), pa.int64())) == ["{}", '{"a":null,"b\\"":1}', None]


def test_a_map_may_hold_lists_of_nothing_but_nulls():
    rows = [[("a", [None, None]), ("b", [])], None, [("c", [None])]]
    column = pa.array(rows, pa.map_(pa.string(), pa.list_(pa.null())))
    assert to_json(column).to_pylist() == ['{"a":[null,null],"b":[]}', None, '{"c":[null]}']
    assert to_json(column.slice(1)).to_pylist() == [None, '{"c":[null]}']


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
    [
        [[("a", 1)], [("b", 1), ("a", 2), ("b", 3)]],
        [None, [("b", 1), ("b", None)], []],
    ],
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


def test_nulls_at_any_depth():
    kind = pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int8())))]))
    rows = [[None, {"m": None}, {"m": [("k", None), ("l", [None])]}], None, []]
    assert json_of(rows, kind) == ['[null,{"m":null},{"m":{"k":null,"l":[null]}}]', None, "[]"]


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
