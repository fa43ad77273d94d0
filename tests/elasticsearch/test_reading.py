"""Pages of hits as rows: as Arrow reads them, and value by value, which must be the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyspark_elasticsearch.read import documents
from pyspark_elasticsearch.read.documents import FieldTraits, ReadAsNull
from pyspark_elasticsearch.read.fields import natural
from pyspark_elasticsearch.read.pages import PageReader
from sparkonce.errors import ValueUnreadable

NOON = datetime(2026, 1, 2, 12, 30, tzinfo=timezone.utc)
SHAPE = FieldTraits(
    any_json=("any",),
    kinds={"v": "double", "v.b": "double"},
    vectors={"bytes": {2}, "floats": ()},
    millis=("at", "s.at"),
)


def body(*sources: dict[str, Any]) -> bytes:
    """An answer of the cluster, as 8 and 9 give it."""
    hits = [
        {"_index": "i", "_id": f"d{at}", "_score": None, "_source": one, "sort": [at + 7]}
        for at, one in enumerate(sources)
    ]
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    return json.dumps(
        {
            "pit_id": "p",
            "took": 1,
            "timed_out": False,
            "_shards": shards,
            "hits": {"max_score": None, "hits": hits},
        },
        separators=(",", ":"),
    ).encode()


def read(kind: pa.DataType, *values: Any, name: str = "v") -> list[Any]:
    page = PageReader(pa.schema([(name, kind)]), SHAPE).page(body(*({name: one} for one in values)))
    assert (len(page.places), page.places[-1].as_py(), page.point) == (
        len(values),
        len(values) + 6,
        "p",
    )
    found: list[Any] = page.rows.column(0).to_pylist()
    return found


AS_ARROW = [
    (pa.bool_(), [True, False, None]),
    (pa.int8(), [-128, None, 127]),
    (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    (pa.float64(), [0.1, -0.0, 5e-324, None]),
    (pa.string(), ["", 'a"\\\n', "ünï 😀", None, "a.b"]),
    (pa.list_(pa.int64()), [[1, None], [], None]),
    (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.float64()))]),
        [{"a": "x", "b": [1.5]}, None],
    ),
]
BY_VALUE = [
    (pa.int64(), "5", 5),
    (pa.int64(), 7.0, 7),
    (pa.string(), 5, "5"),
    (pa.string(), 1.10, "1.1"),
    (pa.string(), True, "true"),
    (pa.list_(pa.string()), "one", ["one"]),
    (pa.list_(pa.struct([("a", pa.int64())])), {"a": 1}, [{"a": 1}]),
    (pa.struct([("a", pa.int64())]), {"zz": 3}, {"a": None}),
    (pa.map_(pa.string(), pa.int64()), {"k.1": 1}, [("k.1", 1)]),
]
"""What is no plain value of the type, and what the field's index holds of it."""

AS_TEXT = [
    (pa.binary(), "AP8B", b"\x00\xff\x01"),
    (pa.decimal128(10, 2), "1.50", Decimal("1.50")),
    (pa.decimal128(20, 0), 18446744073709551615, Decimal(18446744073709551615)),
    (pa.date32(), "2026-01-02", date(2026, 1, 2)),
    (pa.timestamp("us", "UTC"), "2026-01-02T12:30:00.000Z", NOON),
    (pa.timestamp("us", "UTC"), "2026-01-02T18:00:00+05:30", NOON),
    (pa.timestamp("us", "UTC"), "2026-01-02T12:30", NOON),
    (pa.timestamp("us", "UTC"), "2026-01-02", NOON.replace(hour=0, minute=0)),
    (pa.timestamp("us"), "2026-01-02T18:00:00+05:30", NOON.replace(tzinfo=None)),
]


@pytest.mark.parametrize(("kind", "values"), AS_ARROW, ids=str)
def test_plain_values_come_back(kind: pa.DataType, values: list[Any]) -> None:
    assert [*map(repr, read(kind, *values))] == [*map(repr, values)]


@pytest.mark.parametrize(("kind", "stored", "value"), [*BY_VALUE, *AS_TEXT], ids=str)
def test_a_value_is_what_the_index_takes_it_for(kind: pa.DataType, stored: Any, value: Any) -> None:
    assert read(kind, stored, None, stored) == [value, None, value]


@pytest.mark.parametrize(
    ("kind", "values"),
    [*AS_ARROW, *((kind, [stored, None]) for kind, stored, _ in AS_TEXT)],
    ids=str,
)
def test_both_ways_of_reading_give_the_same(kind: pa.DataType, values: list[Any]) -> None:
    """Where Arrow alone reads a page, and where the values are looked at one by one."""
    schema = pa.schema([("v", kind)])
    page = body(*({"v": one} for one in values))
    reader = PageReader(schema, SHAPE)
    one_by_one = documents.page(page, schema, SHAPE)
    assert reader._page(page, reader._plans[0]).rows.equals(one_by_one.rows)


def test_a_number_in_a_date_is_milliseconds_where_the_format_says_so() -> None:
    kind = pa.timestamp("us", "UTC")
    millis = int(NOON.timestamp() * 1000)
    assert read(kind, millis, None, name="at") == [NOON, None]
    assert read(kind, millis, "2026-01-02T12:30Z", name="at") == [NOON, NOON]
    inside = pa.struct([("at", kind)])
    assert read(inside, {"at": millis}, name="s") == [{"at": NOON}]
    with pytest.raises(ValueUnreadable, match="format does not say"):
        read(kind, millis)


def test_a_dot_in_a_name_leads_into_an_object() -> None:
    inner = pa.struct([("b", pa.int64()), ("c", pa.struct([("d", pa.int64())]))])
    schema = pa.schema([("a", inner), ("m.n", pa.int64())])
    page = body(
        {"a.b": 1, "a.c.d": 2, "m.n": 3},
        {"a": {"b": 1, "c.d": 2}, "m": {"n": 3}},
        {"a": {"b": 1}, "a.c": {"d": 2}, "m.n": 3},
    )
    found = PageReader(schema, SHAPE).page(page).rows.to_pylist()
    assert found == [{"a": {"b": 1, "c": {"d": 2}}, "m.n": 3}] * 3


def test_a_field_that_may_hold_anything_is_its_json() -> None:
    values = [{"a": [1.10, 123456789012345678901]}, "x", 5, None, [True]]
    told = [one and json.dumps(one, separators=(",", ":")) for one in values]
    assert read(pa.string(), *values, name="any") == told


def test_the_id_and_the_index_are_columns_too() -> None:
    schema = pa.schema([("_id", pa.string()), ("v", pa.int64()), ("_index", pa.string())])
    page = PageReader(schema, SHAPE).page(body({"v": 1}, {"v": "2"}))
    assert page.rows.to_pylist()[1] == {"_id": "d1", "v": 2, "_index": "i"}


@pytest.mark.parametrize(
    ("kind", "stored", "said"),
    [
        (pa.int64(), [1, 2], "arrayFields"),
        (pa.string(), ["a"], "arrayFields"),
        (pa.int64(), 1.5, "1.5"),
        (pa.int64(), "0x10", "0x10"),
        (pa.int8(), 128, "128"),
        (pa.int64(), {"a": 1}, "object"),
        (pa.int64(), True, "boolean"),
        (pa.bool_(), 2, "boolean"),
        (pa.float64(), 2**53 + 1, "digits"),
        (pa.float32(), 2**24 + 1, "digits"),
        (pa.int64(), "07", "07"),
        (pa.decimal128(10, 2), "1.555", "1.555"),
        (pa.date32(), "2026-01-02T12:30:00Z", "date"),
        (pa.timestamp("us", "UTC"), "2026-01-02T00:00:00.123456789Z", "timestamp"),
        (pa.timestamp("us", "UTC"), "02.01.2026", "timestamp"),
        (pa.struct([("a", pa.int64())]), [{"a": 1}], "arrayFields"),
        (pa.struct([("a", pa.int64())]), "x", "can't be read"),
        (pa.list_(pa.int8()), [1, 1000], "1000"),
        (pa.binary(), "a", "can't be read"),
    ],
    ids=str,
)
def test_what_is_none_of_its_type_is_told_with_its_document(
    kind: pa.DataType, stored: Any, said: str
) -> None:
    name = "mixed" if pa.types.is_floating(kind) else "v"
    with pytest.raises(ValueUnreadable, match="document 'd1' in index i") as told:
        read(kind, None, stored, name=name)
    assert said in str(told.value)


WRONG: list[tuple[pa.DataType, Any, str]] = [
    (pa.float32(), 0.123456789, "digits"),
    (pa.float64(), 2**53 + 1, "digits"),
    (pa.bool_(), 1, "boolean"),
    (pa.bool_(), "yes", "boolean"),
    (pa.decimal128(3, 0), 12345, "precision"),
    (pa.decimal128(5, 2), "12345.00", "precision"),
    (pa.timestamp("us", "UTC"), "0000-12-31T23:59:59Z", "0000-12-31"),
    (pa.timestamp("us"), "-0001-05-01T00:00:00Z", "-0001"),
    (pa.timestamp("us", "UTC"), "9999-12-31T23:59:59-01:00", "9999"),
    (pa.date32(), "0000-01-01", "0000-01-01"),
    (pa.int8(), 128, "128"),
]
NESTINGS: dict[str, tuple[Callable[[pa.DataType], pa.Field], Callable[[Any], dict[str, Any]]]] = {
    "plain": (lambda kind: pa.field("u", kind), lambda one: {"u": one}),
    "dotted": (lambda kind: pa.field("u.w", kind), lambda one: {"u": {"w": one}}),
    "struct": (lambda kind: pa.field("u", pa.struct([("w", kind)])), lambda one: {"u": {"w": one}}),
    "list": (lambda kind: pa.field("u", pa.list_(kind)), lambda one: {"u": [one]}),
    "map": (lambda kind: pa.field("u", pa.map_(pa.string(), kind)), lambda one: {"u": {"w": one}}),
    "deep": (
        lambda kind: pa.field("u", pa.list_(pa.struct([("w", pa.map_(pa.string(), kind))]))),
        lambda one: {"u": [{}, {"w.x": one}]},
    ),
}


@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize(("kind", "stored", "said"), WRONG, ids=str)
def test_a_value_is_checked_whatever_it_is_inside_of(
    kind: pa.DataType, stored: Any, said: str, nesting: str
) -> None:
    column, document = NESTINGS[nesting]
    reader = PageReader(pa.schema([column(kind)]), SHAPE)
    with pytest.raises(ValueUnreadable, match="document 'd1' in index i") as told:
        reader.page(body({}, document(stored)))
    assert said in str(told.value)


@pytest.mark.parametrize("year", [-1, 0, 10_000])
def test_milliseconds_of_no_year_that_spark_has_are_told(year: int) -> None:
    days = {-1: -719_529 - 300, 0: -719_528, 10_000: 2_932_897}[year]
    with pytest.raises(ValueUnreadable, match="document 'd0'"):
        read(pa.timestamp("us", "UTC"), days * 86_400_000, name="at")


def test_vectors_are_numbers_or_the_hexadecimal_form_of_their_bytes() -> None:
    kind = pa.list_(pa.float32())
    assert read(kind, "12ff", [1, -2], name="bytes") == [[18.0, -1.0], [1.0, -2.0]]
    for name, text in ("bytes", "1200ff"), ("bytes", "Ev8="), ("floats", "12ff"):
        with pytest.raises(ValueUnreadable, match="unknown form"):
            read(kind, text, name=name)


@pytest.mark.parametrize("other", [{}, {"x.y": 2}])
def test_a_float_is_the_nearest_one_as_in_the_index(other: dict[str, Any]) -> None:
    """Whatever else is in its page."""
    page = body({"v": 2**53 + 1}, {"v": 1, **other})
    found = PageReader(pa.schema([("v", pa.float64())]), SHAPE).page(page).rows
    assert found.column(0).to_pylist() == [2.0**53, 1.0]


def test_a_member_that_is_there_twice_is_an_array() -> None:
    """As in the index."""
    page = body({"a.b": "v", "a": {"b": "w"}})
    with pytest.raises(ValueUnreadable, match="occurs twice"):
        PageReader(pa.schema([("a", pa.struct([("b", pa.string())]))]), SHAPE).page(page)
    many = pa.struct([("b", pa.list_(pa.string()))])
    found = PageReader(pa.schema([("a", many)]), SHAPE).page(page).rows
    assert found.to_pylist() == [{"a": {"b": ["v", "w"]}}]


@pytest.mark.parametrize("name", ["a.b", 'a."q', "a.b\\"])
def test_names_with_dots_are_seen_whatever_else_they_have(name: str) -> None:
    inner = pa.struct([(name[2:], pa.int64())])
    page = body({name: 1, "t": 'a. b", ":'})
    found = PageReader(pa.schema([("a", inner), ("t", pa.string())]), SHAPE).page(page).rows
    assert found.column(0).to_pylist() == [{name[2:]: 1}]


def test_json_that_is_deeper_than_python_reads_is_told() -> None:
    page = body({"any": "@"}).replace(b'"@"', b"[" * 1_000_000 + b"]" * 1_000_000)
    with pytest.raises(ValueUnreadable, match="page of documents"):
        PageReader(pa.schema([("any", pa.string())]), SHAPE).page(page)


def test_json_may_be_as_deep_as_the_cluster_takes_it() -> None:
    deep = '{"a":[' * 400 + "1.10" + "]}" * 400
    page = body({"any": "@"}).replace(b'"@"', deep.encode())
    found = PageReader(pa.schema([("any", pa.string())]), SHAPE).page(page).rows
    assert found.column(0).to_pylist() == [deep]


def test_an_empty_text_is_false_as_in_the_index() -> None:
    assert read(pa.bool_(), "", True) == [False, True]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_number_out_of_range_is_no_infinity(kind: pa.DataType) -> None:
    page = body({"v": "@"}).replace(b'"@"', b"1e400")
    with pytest.raises(ValueUnreadable, match="1e400"):
        PageReader(pa.schema([("v", kind)]), SHAPE).page(page)


MAPPED: list[tuple[dict[str, Any], pa.DataType]] = [
    ({"type": "unsigned_long"}, pa.decimal128(20, 0)),
    ({"type": "dense_vector"}, pa.list_(pa.float32())),
    ({"type": "constant_keyword"}, pa.string()),
    ({"type": "aggregate_metric_double"}, pa.string()),
    ({"type": "date", "format": "epoch_millis"}, pa.int64()),
    ({"type": "date", "format": "strict_date_optional_time_nanos"}, pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize(("mapping", "kind"), MAPPED, ids=str)
def test_a_field_has_the_type_that_loses_nothing(
    mapping: dict[str, Any], kind: pa.DataType
) -> None:
    assert dict(natural({"f": mapping}, ())) == {"f": kind}
    many = kind if pa.types.is_list(kind) else pa.list_(kind)
    assert dict(natural({"f": mapping}, ("f",))) == {"f": many}


def test_a_page_without_hits_ends_a_slice() -> None:
    page = PageReader(pa.schema([("v", pa.int64())]), SHAPE).page(body())
    assert (len(page.places), page.rows.num_rows) == (0, 0)


# -- values that do not fit, as nulls

KINDS = (
    *(pa.int64(), pa.int8(), pa.float32(), pa.bool_(), pa.string(), pa.binary(), pa.date32()),
    *(pa.timestamp("us", "UTC"), pa.decimal128(5, 2)),
)
VALUES = (
    *(None, 1, -7, 300, 2**63, 1.5, 1e300, 0.1, True, False, "", "x", "5", "1.50", "true"),
    *("2026-01-02", "2026-01-02T12:30:00Z", "yesterday", "AP8B", "é", [], [1, "x"], [[2]]),
    *({}, {"a": 1}, {"a": "", "b": True, "k.1": 2}, {"b": {"a": 4}}, [{"a": "z"}, {"a": 2}]),
)


def drawn_kind(draw: random.Random, deep: int = 2) -> pa.DataType:
    made = draw.choice(("leaf", "leaf", "list", "struct", "map")) if deep else "leaf"
    if made == "leaf":
        return draw.choice(KINDS)
    inner = drawn_kind(draw, deep - 1)
    if made == "list":
        return pa.list_(inner)
    many = pa.struct([("a", inner), ("b", drawn_kind(draw, deep - 1))])
    return many if made == "struct" else pa.map_(pa.string(), inner)


def alone(value: Any, kind: pa.DataType) -> Any:
    """The value by itself, or a null for each part of it that does not fit."""
    try:
        return read(kind, value)[0]
    except ValueUnreadable:
        pass
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {one.name: alone(value.get(one.name), one.type) for one in kind}
    if pa.types.is_map(kind) and isinstance(value, dict):
        return [(key, alone(one, kind.item_type)) for key, one in value.items()]
    if pa.types.is_list(kind):
        return [alone(one, kind.value_type) for one in flattened(value)]
    return None


def flattened(value: Any) -> list[Any]:
    return [inner for one in value for inner in [one]] if isinstance(value, list) else [value]


@pytest.mark.parametrize("seed", range(60))
def test_a_value_that_does_not_fit_is_null_and_no_other(seed: int) -> None:
    draw = random.Random(seed)
    kind = drawn_kind(draw)
    values = [
        one
        for one in draw.choices(VALUES, k=12)
        if not (isinstance(one, dict) and any("." in name for name in one))
        or not pa.types.is_struct(kind)
    ]
    nulls = ReadAsNull()
    page = PageReader(pa.schema([("v", kind)]), SHAPE, nulls).page(
        body(*({"v": one} for one in values))
    )
    wanted = [alone(one, kind) for one in values]
    assert [*map(repr, page.rows.column(0).to_pylist())] == [*map(repr, wanted)], kind
    strict = 0
    for one in values:
        try:
            read(kind, one)
        except ValueUnreadable:
            strict += 1
    assert (nulls.count > 0) == (strict > 0)
    assert nulls.count >= strict
    assert not strict or "field 'v" in nulls.first
