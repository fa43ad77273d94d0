"""The text form of every value that Spark can hand over."""

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

from sparkonce.values.text import UnsupportedType, check, to_json, to_text

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


@pytest.mark.parametrize(
    ("kind", "width", "form"), [(pa.float32(), 32, "f"), (pa.float64(), 64, "d")]
)
@given(data=st.data())
@settings(deadline=None, database=None)
def test_floats_and_doubles_read_back_to_the_bit(data, kind, width, form):
    values = data.draw(st.lists(st.floats(allow_nan=False, width=width)))
    back = [float(text) for text in texts(values, kind)]
    assert [struct.pack(form, value) for value in back] == [struct.pack(form, v) for v in values]


def test_decimals_always_have_their_scale():
    values = [Decimal("-123.45"), Decimal(0), Decimal("-0.0001"), Decimal(7)]
    assert texts(values, pa.decimal128(10, 4)) == ["-123.4500", "0.0000", "-0.0001", "7.0000"]
    assert texts([Decimal(-12), Decimal(0)], pa.decimal128(38, 0)) == ["-12", "0"]


@pytest.mark.parametrize(
    ("precision", "scale"), [(1, 0), (1, 1), (18, 0), (18, 18), (19, 19), (38, 0), (38, 38)]
)
def test_decimals_keep_every_digit_at_both_ends_of_their_precision(precision, scale):
    digits = tuple([9] * precision)
    ends = [Decimal((sign, digits, -scale)) for sign in (0, 1)]
    assert texts(ends, pa.decimal128(precision, scale)) == [f"{end:f}" for end in ends]


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
            "a struct with two fields of the same name has no JSON form at []",
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


# -- any slice of any column has the text that plain Python gives


def loaded(text):
    """A JSON text with nothing lost: decimals exact, the fields of an object in order."""
    return json.loads(text, parse_float=Decimal, object_pairs_hook=lambda pairs: ("object", pairs))


def text_of(instant):
    return instant.replace(tzinfo=None).isoformat(timespec="microseconds")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CENTS = st.integers(-(10**20), 10**20).map(lambda n: Decimal(n).scaleb(-9))
DURATIONS = st.timedeltas(timedelta(days=-(10**8)), timedelta(days=10**8))
QUARTERS = st.integers(-(10**4), 10**4).map(lambda n: n / 4)
# Each scalar type: its values, and what json.loads must make of one.
KEYS = [
    (pa.bool_(), st.booleans(), lambda v: v),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1), lambda v: v),
    (pa.decimal128(38, 9), CENTS, lambda v: v.quantize(Decimal("1E-9"))),
    (pa.string(), TEXT, lambda v: v),
    (pa.large_string(), TEXT, lambda v: v),
    *((kind, st.binary(max_size=8), lambda v: base64.b64encode(v).decode())
      for kind in (pa.binary(), pa.large_binary())),
    (pa.date32(), st.dates(), date.isoformat),
    (pa.timestamp("us", "Asia/Tokyo"), st.datetimes(timezones=st.just(UTC)),
     lambda v: text_of(v) + "Z"),
    (pa.timestamp("us"), st.datetimes(), text_of),
    (pa.time64("ns"), st.times(), lambda v: v.isoformat(timespec="microseconds")),
    (pa.duration("us"), DURATIONS, lambda v: v // timedelta(microseconds=1)),
]  # fmt: skip
PLAIN = [form for form in KEYS if form[0] not in (pa.binary(), pa.large_binary())]
NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
SCALARS = [
    *KEYS,
    (pa.float32(), QUARTERS, Decimal),
    (pa.float64(), st.floats(), lambda v: NAMES.get(repr(v)) or Decimal(repr(v))),
    (pa.null(), st.none(), lambda v: v),
]


def nullable(values, model):
    return st.none() | values, lambda v: None if v is None else model(v)


def listed(form, make):
    kind, values, model = form
    values, model = nullable(values, model)
    return make(kind), st.lists(values, max_size=4), lambda row: [model(v) for v in row]


def as_text(value):
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if isinstance(value, str) else json.dumps(value)


def mapped(key, item):
    values, model = nullable(*item[1:])
    rows = st.dictionaries(key[1], values, max_size=3).map(lambda row: list(row.items()))

    def object_of(row):
        return "object", [(as_text(key[2](k)), model(v)) for k, v in row]

    return pa.map_(key[0], item[0]), rows, object_of


def structured(forms):
    names = [f"f{place}" for place in range(len(forms))]
    children = [nullable(values, model) for _, values, model in forms]
    rows = st.fixed_dictionaries({n: v for n, (v, _) in zip(names, children, strict=True)})
    models = dict(zip(names, (model for _, model in children), strict=True))
    kind = pa.struct([(n, form[0]) for n, form in zip(names, forms, strict=True)])
    return kind, rows, lambda row: ("object", [(n, models[n](row[n])) for n in names])


def nested(forms):
    return st.one_of(
        st.builds(listed, forms, st.sampled_from([pa.list_, pa.large_list])),
        st.builds(mapped, st.sampled_from(KEYS), forms),
        st.lists(forms, max_size=3).map(structured),
    )


FORMS = st.recursive(st.sampled_from(SCALARS), nested, max_leaves=6)


def sliced(data, form, longest=None):
    """A slice of a column, and what its rows are by the model."""
    values, model = nullable(*form[1:])
    rows = data.draw(st.lists(values, max_size=longest))
    start = data.draw(st.integers(0, len(rows)))
    column = pa.array(rows, form[0]).slice(start, data.draw(st.integers(0, len(rows))))
    return column, [model(row) for row in rows[start:][: len(column)]]


@pytest.mark.parametrize("form", PLAIN, ids=lambda form: str(form[0]))
@given(data=st.data())
@settings(deadline=None, database=None, max_examples=60)
def test_plain_values_have_the_text_that_python_gives(form, data):
    column, wanted = sliced(data, form)
    texts = [None if value is None else as_text(value).encode() for value in wanted]
    assert to_text(column).to_pylist() == texts


@given(form=FORMS, data=st.data())
@settings(deadline=None, database=None, max_examples=300)
def test_any_type_reads_back_from_json_as_python_has_it(form, data):
    column, wanted = sliced(data, form, longest=6)
    encoded = to_json(column)
    encoded.validate(full=True)
    assert [None if text is None else loaded(text) for text in encoded.to_pylist()] == wanted
    if pa.types.is_nested(form[0]):
        assert to_text(column).cast(pa.string()).equals(encoded)
