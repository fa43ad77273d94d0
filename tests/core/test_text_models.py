"""Any slice of any column has the text that plain Python gives."""

import base64
import json
from datetime import date, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkonce.values.text import to_json, to_text

UTC = timezone.utc


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
    (pa.binary(), st.binary(max_size=8), lambda v: base64.b64encode(v).decode()),
    (pa.date32(), st.dates(), date.isoformat),
    (pa.timestamp("us", "Asia/Tokyo"), st.datetimes(timezones=st.just(UTC)),
     lambda v: text_of(v) + "Z"),
    (pa.timestamp("us"), st.datetimes(), text_of),
    (pa.time64("ns"), st.times(), lambda v: v.isoformat(timespec="microseconds")),
    (pa.duration("us"), DURATIONS, lambda v: v // timedelta(microseconds=1)),
]  # fmt: skip
PLAIN = [form for form in KEYS if form[0] != pa.binary()]
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
