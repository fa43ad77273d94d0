"""Every Spark type in a document, as it is found there and as a query finds it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.documents import documents
from integration.epochs import ElasticsearchQuery

from sparkonce.errors import BadRow

pytestmark = pytest.mark.variants

UTC = timezone.utc
ROUND_TRIPS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.bool_(), [True, False], [True, False]),
    (pa.int8(), [-128, 127], [-128, 127]),
    (pa.int16(), [-32768, 32767], [-32768, 32767]),
    (pa.int32(), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1], [-(2**63), 2**63 - 1, 2**53 + 1]),
    (pa.float32(), [0.5, -3.0, 1e30], [0.5, -3.0, 1e30]),
    (pa.float64(), [0.1, -0.0, 1e308, 5e-324], [0.1, -0.0, 1e308, 5e-324]),
    (
        pa.decimal128(38, 18),
        [Decimal("0.000000000000000001"), Decimal("-12345678901234567890.123456789012345678")],
        ["0.000000000000000001", "-12345678901234567890.123456789012345678"],
    ),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.05")], ["1.50", "-0.05"]),
    (
        pa.string(),
        ["", "a\\b\"c'\n\r\t\x00\x01\x02\x03\x1f", "\N{PARTY POPPER} ä \u2028"],
        ["", "a\\b\"c'\n\r\t\x00\x01\x02\x03\x1f", "\N{PARTY POPPER} ä \u2028"],
    ),
    (
        pa.binary(),
        [b"", b"\x00\xff\x01"],
        ["", base64.b64encode(b"\x00\xff\x01").decode()],
    ),
    (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], ["0001-01-01", "9999-12-31"]),
    (
        pa.timestamp("us", "UTC"),
        [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(9999, 12, 31, tzinfo=UTC)],
        ["1969-12-31T23:59:59.999999Z", "9999-12-31T00:00:00.000000Z"],
    ),
    (pa.timestamp("us"), [datetime(2020, 2, 29, 1, 2, 3)], ["2020-02-29T01:02:03.000000"]),
    (pa.time64("ns"), [time(10, 11, 12, 123000)], ["10:11:12.123000"]),
    (pa.duration("us"), [timedelta(days=1, microseconds=5)], [86_400_000_005]),
    (pa.list_(pa.int64()), [[1, 2], []], [[1, 2], []]),
    (
        pa.struct([("lat", pa.float64()), ("lon", pa.float64())]),
        [{"lat": 40.5, "lon": -73.25}],
        [{"lat": 40.5, "lon": -73.25}],
    ),
    (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.struct([("c", pa.int32())])))]),
        [{"a": 'x"', "b": [{"c": 1}, {"c": None}]}],
        [{"a": 'x"', "b": [{"c": 1}, {"c": None}]}],
    ),
    (pa.map_(pa.string(), pa.string()), [[("k.1", "v"), ("k 2", "w")]], [{"k.1": "v", "k 2": "w"}]),
]
Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def make(into_index: Make) -> Make:
    def make(kind: pa.DataType, **options: str) -> ElasticsearchQuery:
        schema = pa.schema([("id", pa.int64()), ("v", kind)])
        return into_index(schema, **{"key": "id", **options})

    return make


@pytest.mark.parametrize(
    ("kind", "values", "stored"), ROUND_TRIPS, ids=[str(kind) for kind, _, _ in ROUND_TRIPS]
)
def test_values_come_back_as_the_docs_say(
    make: Make,
    elastic: Elasticsearch,
    index: str,
    kind: pa.DataType,
    values: list[Any],
    stored: list[Any],
) -> None:
    query = make(kind)
    query.run(0, [{"id": at, "v": value} for at, value in enumerate([*values, None])])
    found = documents(elastic, index)
    assert [found[str(at)]["v"] for at in range(len(values) + 1)] == [*stored, None]


def test_new_index_finds_each_type_as_what_it_is(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    kinds = [
        ("s", pa.string(), "blue"),
        ("n", pa.int64(), 2**53 + 1),
        ("t", pa.timestamp("us", "UTC"), datetime(2020, 1, 2, tzinfo=UTC)),
        ("d", pa.decimal128(20, 2), Decimal("7.10")),
        ("g", pa.struct([("lat", pa.float64()), ("lon", pa.float64())]), {"lat": 1.0, "lon": 2.0}),
        ("m", pa.map_(pa.string(), pa.string()), [("k", "v")]),
        ("i", pa.struct([("j", pa.int32())]), {"j": 5}),
    ]
    schema = pa.schema([(name, kind) for name, kind, _ in kinds])
    query = ElasticsearchQuery(schema, url=elasticsearch_url, index=index, createIndex="true")
    query.sink.check()
    query.run(0, [{name: value for name, _, value in kinds}])
    elastic.indices.refresh(index=index)
    for asked in (
        {"term": {"s": "blue"}},
        {"term": {"n": 2**53 + 1}},
        {"range": {"t": {"gte": "2020-01-02", "lt": "2020-01-03"}}},
        {"term": {"d": "7.10"}},
        {"geo_distance": {"distance": "1km", "g": {"lat": 1.001, "lon": 2.0}}},
        {"term": {"m.k": "v"}},
        {"term": {"i.j": 5}},
    ):
        assert elastic.count(index=index, query=asked)["count"] == 1, asked
    mapping = elastic.indices.get_mapping(index=index)[index]["mappings"]
    assert mapping["dynamic"] == "strict"
    assert mapping["properties"]["s"] == {"type": "keyword", "ignore_above": 8191}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "\N{GOTHIC LETTER AHSA}" * 20_000),
        (pa.map_(pa.string(), pa.string()), [("k", "\N{GOTHIC LETTER AHSA}" * 20_000)]),
        (pa.map_(pa.string(), pa.string()), [("key" * 100, "\N{GOTHIC LETTER AHSA}" * 8_000)]),
    ],
    ids=["string", "map", "map with a long key"],
)
def test_text_that_is_too_long_for_an_index_is_stored_all_the_same(
    make: Make, elastic: Elasticsearch, index: str, kind: pa.DataType, value: Any
) -> None:
    make(kind).run(0, [{"id": 1, "v": value}])
    stored = documents(elastic, index)["1"]["v"]
    assert stored == (value if isinstance(value, str) else dict(value))


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.float64(), float("nan"), "column 'v': nan has no place"),
        (pa.float32(), float("-inf"), "column 'v': -inf has no place"),
        (pa.list_(pa.float64()), [1.0, float("inf")], "column 'v': inf has no place"),
        (
            pa.struct([("x", pa.map_(pa.string(), pa.float64()))]),
            {"x": [("k", float("nan"))]},
            "column 'v': nan has no place",
        ),
    ],
    ids=["nan", "infinity", "in a list", "in a map in a struct"],
)
def test_what_json_has_no_number_for_is_refused_by_name(
    make: Make, kind: pa.DataType, value: Any, said: str
) -> None:
    query = make(kind)
    with pytest.raises(BadRow, match=said):
        query.stage(0, [{"id": 1, "v": value}])


def test_text_that_is_not_utf8_is_refused_by_name(make: Make) -> None:
    query = make(pa.string())
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    rows = pa.record_batch([pa.array([1]), bad], schema=query.schema)
    with pytest.raises(BadRow, match="column 'v': a string is not valid UTF-8"):
        query.stage_batches(0, [rows])


def test_texts_are_stored_where_a_geo_point_or_a_number_is_mapped(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    fields = {"p": {"type": "geo_point"}, "d": {"type": "double"}, "n": {"type": "date_nanos"}}
    elastic.indices.create(index=index, mappings={"dynamic": "strict", "properties": fields})
    schema = pa.schema(
        [("p", pa.string()), ("d", pa.decimal128(9, 1)), ("n", pa.timestamp("us", "UTC"))]
    )
    query = ElasticsearchQuery(schema, url=elasticsearch_url, index=index)
    query.sink.check()
    at = datetime(2020, 1, 1, 0, 0, 0, 1, UTC)
    query.run(0, [{"p": "40.5,-73.25", "d": Decimal("1.5"), "n": at}])
    elastic.indices.refresh(index=index)
    near = {"geo_distance": {"distance": "1km", "p": {"lat": 40.5, "lon": -73.25}}}
    for asked in (near, {"term": {"d": 1.5}}, {"term": {"n": "2020-01-01T00:00:00.000001Z"}}):
        assert elastic.count(index=index, query=asked)["count"] == 1
