"""The text form of every value that Spark can hand over."""

import math
import struct
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkonce.values.text import UnsupportedType, check, to_text

UTC = timezone.utc
ZONES = ["UTC", "America/New_York", "Asia/Tokyo", "+05:30", "No/Such_Zone"]
EVERY_TYPE = [
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(38, 18),
    pa.decimal128(10, 2),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.duration("us"),
    pa.null(),
    pa.list_(pa.int64()),
    pa.large_list(pa.string()),
    pa.map_(pa.string(), pa.float64()),
    pa.struct([("a", pa.binary()), ("b", pa.date32())]),
]


def texts(values, kind):
    """What `to_text` makes of Python values, None or str each."""
    encoded = to_text(pa.array(values, kind))
    assert encoded.type == pa.binary()
    encoded.validate(full=True)
    return [None if value is None else value.decode() for value in encoded.to_pylist()]


@pytest.mark.parametrize("kind", EVERY_TYPE, ids=str)
def test_null_stays_null_and_an_empty_column_stays_empty(kind):
    assert texts([None, None], kind) == [None, None]
    assert texts([], kind) == []
    assert to_text(pa.nulls(5, kind).slice(2, 2)).to_pylist() == [None, None]


def test_booleans_are_true_and_false():
    assert texts([True, None, False], pa.bool_()) == ["true", None, "false"]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_are_decimal_to_both_ends_of_their_width(bits):
    ends = [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]
    assert texts(ends, getattr(pa, f"int{bits}")()) == [str(end) for end in ends]


def test_floats_that_are_not_numbers_have_names():
    for kind in (pa.float32(), pa.float64()):
        values = [math.nan, -math.nan, math.inf, -math.inf]
        assert texts(values, kind) == ["nan", "nan", "inf", "-inf"]


def test_floats_are_the_shortest_text():
    values = [0.1, 1e-7, 1e22, 100.0, -0.0]
    assert texts(values, pa.float64()) == ["0.1", "1e-7", "1e+22", "100", "-0"]
    assert texts([0.1, 16777216.0], pa.float32()) == ["0.1", "16777216"]


@given(st.lists(st.floats(allow_nan=False)))
@settings(deadline=None, database=None)
def test_doubles_read_back_as_the_same_double(values):
    back = [float(text) for text in texts(values, pa.float64())]
    assert [struct.pack("d", value) for value in back] == [struct.pack("d", v) for v in values]


@given(st.lists(st.floats(allow_nan=False, width=32)))
@settings(deadline=None, database=None)
def test_floats_read_back_as_the_same_float(values):
    back = [float(text) for text in texts(values, pa.float32())]
    assert [struct.pack("f", value) for value in back] == [struct.pack("f", v) for v in values]


def test_decimals_always_have_their_scale():
    values = [Decimal("-123.45"), Decimal(0), Decimal("-0.0001"), Decimal(7)]
    assert texts(values, pa.decimal128(10, 4)) == ["-123.4500", "0.0000", "-0.0001", "7.0000"]
    assert texts([Decimal(-12), Decimal(0)], pa.decimal128(38, 0)) == ["-12", "0"]


def test_small_decimals_have_no_exponent():
    values = [Decimal("1E-18"), Decimal("-1E-18"), Decimal("1.5E-7"), Decimal(0)]
    assert texts(values, pa.decimal128(38, 18)) == [
        "0.000000000000000001",
        "-0.000000000000000001",
        "0.000000150000000000",
        "0.000000000000000000",
    ]


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 0), (1, 1), (18, 0), (18, 18), (19, 19), (38, 0), (38, 38)]
)
def test_decimals_keep_every_digit_at_both_ends_of_their_precision(precision, scale):
    digits = tuple([9] * precision)
    ends = [Decimal((sign, digits, -scale)) for sign in (0, 1)]
    assert texts(ends, pa.decimal128(precision, scale)) == [f"{end:f}" for end in ends]


def test_strings_and_binary_are_as_they_are():
    values = ['é"\\\n\x00🎈', "", None]
    for kind in (pa.string(), pa.large_string()):
        assert texts(values, kind) == values
    for kind in (pa.binary(), pa.large_binary()):
        assert to_text(pa.array([b"\xff\x00", b""], kind)).to_pylist() == [b"\xff\x00", b""]


def test_dates_are_iso_from_year_1_to_9999():
    days = [date.min, date(1582, 10, 15), date(1969, 12, 31), date(2024, 2, 29), date.max]
    assert texts(days, pa.date32()) == [day.isoformat() for day in days]


INSTANTS = {
    datetime.min: "0001-01-01T00:00:00.000000",
    datetime(1900, 1, 1, 0, 0, 0, 1): "1900-01-01T00:00:00.000001",
    datetime(1969, 12, 31, 23, 59, 59, 999999): "1969-12-31T23:59:59.999999",
    datetime(1970, 1, 1): "1970-01-01T00:00:00.000000",
    datetime(2013, 1, 1, 5): "2013-01-01T05:00:00.000000",
    datetime.max: "9999-12-31T23:59:59.999999",
}


@pytest.mark.parametrize("zone", ZONES)
def test_timestamps_are_the_instant_in_utc_whatever_the_zone(zone):
    instants = [instant.replace(tzinfo=UTC) for instant in INSTANTS]
    column = pa.array(instants, pa.timestamp("us", "UTC")).view(pa.timestamp("us", zone))
    assert [t.decode() for t in to_text(column).to_pylist()] == [t + "Z" for t in INSTANTS.values()]


def test_timestamps_without_a_zone_have_no_z():
    assert texts(list(INSTANTS), pa.timestamp("us")) == list(INSTANTS.values())


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_have_six_fraction_digits(unit):
    assert texts([time.min, time(10, 11, 12, 123000), time.max], pa.time64(unit)) == [
        "00:00:00.000000",
        "10:11:12.123000",
        "23:59:59.999999",
    ]


def test_durations_are_whole_microseconds():
    values = [timedelta(days=1, microseconds=1), timedelta(microseconds=-1), timedelta(0)]
    assert texts(values, pa.duration("us")) == ["86400000001", "-1", "0"]


def test_nested_values_are_json():
    assert texts([[1, None], None, []], pa.list_(pa.int64())) == ["[1,null]", None, "[]"]
    assert texts([{"a": "x"}, None], pa.struct([("a", pa.string())])) == ['{"a":"x"}', None]


DAY_US = 86_400_000_000


@pytest.mark.parametrize(
    ("kind", "counts", "wrong", "what"),
    [
        (pa.date32(), pa.int32(), -719163, "0000-12-31"),
        (pa.date32(), pa.int32(), 2932897, "10000-01-01"),
        (pa.timestamp("us"), pa.int64(), -719162 * DAY_US - 1, "0000-12-31 23:59:59.999999"),
        (pa.timestamp("us", "UTC"), pa.int64(), 2932897 * DAY_US, "10000-01-01 00:00:00.000000"),
        (pa.timestamp("us"), pa.int64(), 2**62, f"<value out of range: {2**62}>"),
        (pa.time64("us"), pa.int64(), DAY_US, f"<value out of range: {DAY_US}>"),
        (pa.time64("us"), pa.int64(), -1, "<value out of range: -1>"),
    ],
)
def test_a_value_without_an_iso_form_is_named_and_not_garbled(kind, counts, wrong, what):
    column = pa.array([0, None, wrong], counts).view(kind)
    with pytest.raises(ValueError, match=f" {what} is not within "):
        to_text(column)


def test_a_time_finer_than_a_microsecond_is_not_cut():
    with pytest.raises(ValueError, match="would lose data: 1001"):
        to_text(pa.array([1001], pa.time64("ns")))


@pytest.mark.parametrize("kind", [pa.timestamp("us", "UTC"), pa.time64("us"), pa.time64("ns")])
def test_what_lies_behind_a_null_is_not_looked_at(kind):
    values = pa.py_buffer(struct.pack("qq", 0, 2**62 + 1))
    column = pa.Array.from_buffers(kind, 2, [pa.py_buffer(b"\x01"), values])
    assert to_text(column)[1].as_py() is None


@pytest.mark.parametrize("kind", EVERY_TYPE, ids=str)
def test_every_type_with_a_text_form_passes_the_check(kind):
    assert check(kind) is None
    assert check(pa.list_(pa.struct([("a", kind)]))) is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (pa.month_day_nano_interval(), "month_day_nano_interval has no text form"),
        (pa.uint8(), "uint8 has no text form"),
        (pa.float16(), "halffloat has no text form"),
        (pa.decimal256(50, 2), "decimal256(50, 2) has no text form"),
        (pa.decimal128(5, -2), "decimal128(5, -2) has no text form"),
        (pa.timestamp("ns"), "timestamp[ns] has no text form"),
        (
            pa.dictionary(pa.int32(), pa.string()),
            "dictionary<values=string, indices=int32, ordered=0> has no text form",
        ),
        (
            pa.struct([("a", pa.list_(pa.struct([("b", pa.uint8())])))]),
            "uint8 has no text form at a[].b",
        ),
        (
            pa.list_(pa.struct([("a", pa.int8()), ("b", pa.int8()), ("a", pa.int64())])),
            "a struct with two fields of one name has no JSON form at []",
        ),
        (pa.map_(pa.uint8(), pa.int8()), "uint8 has no text form at {key}"),
        (pa.list_(pa.map_(pa.string(), pa.uint8())), "uint8 has no text form at []{}"),
        (
            pa.struct([("m", pa.map_(pa.list_(pa.int8()), pa.int8()))]),
            "a map with keys of type array<tinyint> has no JSON form at m",
        ),
    ],
    ids=str,
)
def test_the_check_says_what_has_no_text_form_and_where(kind, reason):
    assert check(kind) == reason
    with pytest.raises(UnsupportedType) as error:
        to_text(pa.nulls(1, kind))
    assert str(error.value) == reason


def test_a_spark_variant_has_no_text_form():
    mark = {b"variant": b"true"}
    kind = pa.struct([("value", pa.binary()), pa.field("metadata", pa.binary(), metadata=mark)])
    assert "has no text form at v" in check(pa.struct([("v", kind)]))


def test_unions_and_extensions_have_no_text_form():
    union = pa.sparse_union([pa.field("a", pa.int8())])
    assert "has no text form" in check(union)

    class Money(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.int64(), "money")

        def __arrow_ext_serialize__(self):
            return b""

    assert "has no text form" in check(Money())
