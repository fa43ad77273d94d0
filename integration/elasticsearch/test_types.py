"""Every Spark type in a document, as it is found there and as a query finds it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import documents
from integration.support.elasticsearch_round_trips import ROUND_TRIPS
from integration.support.epochs import ElasticsearchQuery

from sparkonce.errors import BadRow

pytestmark = pytest.mark.variants

UTC = timezone.utc
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
