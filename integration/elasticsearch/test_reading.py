"""`spark.read.format("elasticsearch")`: mappings, places, conditions, points in time, Spark."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch_reading import LOOP, MANY_SLOW, SLOW, searches, source
from integration.support.elasticsearch_round_trips import ROUND_TRIPS
from integration.support.epochs import ElasticsearchQuery
from integration.support.reading import pushing
from integration.support.servers.elasticsearch import ElasticsearchProcess, connect
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_elasticsearch.read.documents import FieldTraits
from pyspark_elasticsearch.read.pages import Slice
from pyspark_elasticsearch.read.source import ElasticsearchSource
from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import RAW_PAGE
from sparkonce.errors import (
    OptionError,
    SnapshotBroken,
    SparkonceError,
    StoreRefused,
    StoreUnreachable,
    ValueUnreadable,
)
from sparkonce.reading import Compare, Filter, Like, Null, OneOf
from sparkonce.tck.conditions import drawn, holds

Into = Callable[..., ElasticsearchQuery]
UTC = pa.timestamp("us", "UTC")
MANY = 300


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits and pages of few documents."""
    monkeypatch.setattr("pyspark_elasticsearch.read.source.FEW", 100)
    monkeypatch.setattr("pyspark_elasticsearch.read.pages.FIRST", 20)


def rows(made: ElasticsearchSource) -> list[dict[str, Any]]:
    return [
        row for split in made.splits() for batch in made.read(split) for row in batch.to_pylist()
    ]


def filled(
    elastic: Elasticsearch,
    index: str,
    properties: dict[str, Any],
    documents: Iterable[dict[str, Any]],
    **more: Any,
) -> None:
    """An index with documents d0, d1 and so on."""
    mappings = {"properties": properties, **more.pop("mappings", {})}
    elastic.indices.create(index=index, mappings=mappings, **more)
    lines = [
        f'{{"index":{{"_id":"d{at}"}}}}\n{json.dumps(one)}\n' for at, one in enumerate(documents)
    ]
    if lines:
        told = elastic.bulk(index=index, body="".join(lines), refresh=True)
        assert not told["errors"], told


# -- types


@pytest.mark.parametrize(
    ("kind", "values", "stored"), ROUND_TRIPS, ids=[str(kind) for kind, _, _ in ROUND_TRIPS]
)
def test_types_come_back_as_they_went_in(
    into_index: Into,
    elastic: Elasticsearch,
    elasticsearch_url: str,
    index: str,
    kind: pa.DataType,
    values: list[Any],
    stored: list[Any],
) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    query = into_index(schema, key="id")
    written = [{"id": at, "v": one} for at, one in enumerate([*values, None])]
    query.run(0, written)
    elastic.indices.refresh(index=index)
    found = rows(source(elasticsearch_url, index, schema))
    assert sorted(map(repr, found)) == sorted(
        map(repr, pa.Table.from_pylist(written, schema).to_pylist())
    )
    if not pa.types.is_nested(kind):
        assert len(rows(source(elasticsearch_url, index))) == len(written)
    assert stored


MAPPED: list[tuple[dict[str, Any], pa.DataType]] = [
    ({"type": "keyword"}, pa.string()),
    ({"type": "text", "fields": {"raw": {"type": "keyword"}}}, pa.string()),
    ({"type": "ip"}, pa.string()),
    ({"type": "boolean"}, pa.bool_()),
    ({"type": "byte"}, pa.int8()),
    ({"type": "half_float"}, pa.float32()),
    ({"type": "binary"}, pa.binary()),
    ({"type": "date"}, UTC),
    ({"type": "date", "format": "strict_date_optional_time"}, UTC),
    ({"type": "date", "format": "epoch_second"}, pa.int64()),
    ({"type": "date", "format": "dd.MM.yyyy"}, pa.string()),
    ({"type": "date_nanos"}, pa.string()),
    ({"type": "geo_point"}, pa.string()),
    ({"type": "flattened"}, pa.string()),
    ({"type": "integer_range"}, pa.string()),
    ({"type": "object", "enabled": False}, pa.string()),
    ({"properties": {"a": {"type": "long"}}}, pa.struct([("a", pa.int64())])),
    (
        {"type": "nested", "properties": {"a": {"type": "long"}}},
        pa.list_(pa.struct([("a", pa.int64())])),
    ),
]


def test_columns_have_the_types_of_the_mapping(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    properties = {f"f{at}": mapping for at, (mapping, _) in enumerate(MAPPED)}
    properties["other"] = {"type": "alias", "path": "f0"}
    filled(elastic, index, properties, [{}])
    made = source(elasticsearch_url, index)
    assert dict(zip(made.scan.schema.names, made.scan.schema.types, strict=True)) == {
        f"f{at}": kind for at, (_, kind) in enumerate(MAPPED)
    }
    assert rows(made) == [dict.fromkeys(made.scan.schema.names)]


def test_arrays_are_declared(elastic: Elasticsearch, elasticsearch_url: str, index: str) -> None:
    properties = {
        "tags": {"type": "keyword"},
        "items": {"properties": {"codes": {"type": "integer"}, "n": {"type": "long"}}},
    }
    documents = [
        {"tags": ["a", "b"], "items": [{"codes": 1, "n": 2}, {"codes": [3, 4]}]},
        {"tags": "a", "items": {"codes": []}},
        {},
    ]
    filled(elastic, index, properties, documents)
    with pytest.raises(SparkonceError, match="arrayFields"):
        rows(source(elasticsearch_url, index))
    assert rows(source(elasticsearch_url, index, arrayFields="tags,items,items.codes")) == [
        {"tags": ["a", "b"], "items": [{"codes": [1], "n": 2}, {"codes": [3, 4], "n": None}]},
        {"tags": ["a"], "items": [{"codes": [], "n": None}]},
        {"tags": None, "items": None},
    ]
    with pytest.raises(OptionError, match=r"items\.code'.*no index has") as told:
        source(elasticsearch_url, index, arrayFields="items.code")
    assert "items.codes" in str(told.value)


@pytest.mark.parametrize(
    ("mapped", "kind"),
    [
        ("long", pa.float64()),
        ("double", pa.float32()),
        ("keyword", pa.float64()),
        ("keyword", pa.binary()),
        ("keyword", pa.bool_()),
    ],
    ids=str,
)
def test_a_type_that_would_change_values_is_refused(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, mapped: str, kind: pa.DataType
) -> None:
    filled(elastic, index, {"s": {"properties": {"v": {"type": mapped}}}}, [{}])
    inside = (
        pa.struct([("v", kind)]),
        pa.map_(pa.string(), kind),
        pa.list_(pa.struct([("v", kind)])),
    )
    for column in ("s.v", kind), ("s.v", pa.list_(kind)), *(("s", one) for one in inside):
        with pytest.raises(OptionError, match=r"'s\.v' can't be read as"):
            source(elasticsearch_url, index, pa.schema([column])).splits()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_id", pa.binary()),
        ("_id", pa.list_(pa.string())),
        ("_index", pa.struct([("a", pa.string())])),
        ("_id", pa.map_(pa.string(), pa.string())),
        ("_seq_no", pa.timestamp("us")),
        ("_seq_no", pa.float64()),
        ("_ID", pa.string()),
        ("_routing", pa.string()),
        ("_version", pa.int64()),
    ],
    ids=str,
)
def test_what_a_document_has_beside_its_fields_is_read_as_what_it_is(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, name: str, kind: pa.DataType
) -> None:
    filled(elastic, index, {}, [{"n": 1}])
    with pytest.raises(OptionError, match=f"Column '{name}' can't be read"):
        source(elasticsearch_url, index, pa.schema([(name, kind), ("n", pa.int64())])).splits()
    texts = pa.schema([("_seq_no", pa.string()), ("_id", pa.string())])
    assert rows(source(elasticsearch_url, index, texts)) == [{"_seq_no": "0", "_id": "d0"}]


def test_a_column_that_no_index_knows_is_null_and_told(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(elastic, index, {"name": {"type": "keyword"}}, [{"name": "a"}])
    inner = pa.struct([("nam", pa.string())])
    schema = pa.schema([("name", pa.string()), ("nam", pa.string()), ("o", inner)])
    assert rows(source(elasticsearch_url, index, schema)) == [{"name": "a", "nam": None, "o": None}]
    for unknown in ("nam", "o.nam"):
        assert f"Column '{unknown}' is null in each row" in caplog.text


def test_documents_that_are_not_kept_can_not_be_read(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    filled(elastic, index, {"v": {"type": "long"}}, [], mappings={"_source": {"enabled": False}})
    with pytest.raises(StoreRefused, match="_source disabled"):
        source(elasticsearch_url, index)


@pytest.mark.parametrize("odd", [{}, {"x": ["a.b"]}], ids=["by Arrow", "value by value"])
def test_documents_that_are_not_kept_by_a_setting_can_not_be_read(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, odd: dict[str, Any]
) -> None:
    """Nor where no setting says so."""
    mode = {"index.mapping.source.mode": "disabled"}
    kept, lost = f"{index}-kept", f"{index}-lost"
    filled(elastic, kept, {"v": {"type": "long"}}, [{"v": 1, **odd}])
    made = source(elasticsearch_url, kept)
    (split,) = made.splits()
    filled(elastic, lost, {"v": {"type": "long"}}, [{"v": 1, **odd}], settings=mode)
    try:
        with pytest.raises(StoreRefused, match="_source disabled"):
            source(elasticsearch_url, f"{index}-*")
        point = reads.open_point(made.cluster, lost, "1m")
        with pytest.raises(ValueUnreadable, match=f"'d0' in index {lost} has no _source"):
            list(made.read(replace(split, point=point)))
    finally:
        elastic.indices.delete(index=[kept, lost])


def test_objects_and_arrays_come_whole_whatever_is_in_them(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    inner = {"properties": {"x": {"type": "long"}, "y": {"type": "long"}}}
    documents = [
        {"n": [{"x": 1}, {"y": 2}, {}, None, {"x": 3}], "a": {}},
        {"n": [], "a": {"y": 1}},
        {"n": None, "a": None},
    ]
    fields = {"n": {"type": "nested", **inner}, "a": inner, "z": {"type": "long"}}
    filled(elastic, index, fields, documents)
    struct = pa.struct([("x", pa.int64())])
    schema = pa.schema([("n", pa.list_(struct)), ("a", struct)])
    assert rows(source(elasticsearch_url, index, schema)) == [
        {"n": [{"x": 1}, {"x": None}, {"x": None}, None, {"x": 3}], "a": {"x": None}},
        {"n": [], "a": {"x": None}},
        {"n": None, "a": None},
    ]


def test_numbers_keep_their_digits_where_these_count(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    """The cluster writes numbers anew, as doubles, where it leaves something out of a document."""
    line = '{"k":1.10,"d":0.12345678901234567890,"any":{"p":1e3,"q":1.10},"other":1}'
    fields = {
        "k": {"type": "keyword"},
        "d": {"type": "double"},
        "any": {"type": "object", "enabled": False},
        "other": {"type": "long"},
    }
    elastic.indices.create(index=index, mappings={"properties": fields})
    elastic.bulk(index=index, body=f'{{"index":{{"_id":"1"}}}}\n{line}\n', refresh=True)
    exact = pa.schema([("d", pa.decimal128(30, 20)), ("k", pa.string())])
    assert rows(source(elasticsearch_url, index, exact)) == [
        {"d": Decimal("0.12345678901234567890"), "k": "1.10"}
    ]
    anything = pa.schema([("any", pa.string())])
    assert rows(source(elasticsearch_url, index, anything)) == [{"any": '{"p":1e3,"q":1.10}'}]
    text = pa.schema([("k", pa.string())])
    condition = [Compare("k", "=", "1.10")]
    assert rows(source(elasticsearch_url, index, text, condition)) == [{"k": "1.10"}]


def test_a_document_may_have_lines_and_dots_in_it(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    filled(elastic, index, {"a": {"properties": {"b": {"type": "long"}}}}, [])
    for text in ('{\n "a": {\n  "b": 1\n }\n}', '{"a\\u002eb" : 1}', '{"a.b"\n: 1}'):
        elastic.perform_request(
            "POST",
            f"/{index}/_doc?refresh=true",
            headers={"accept": "application/json", "content-type": "application/json"},
            body=text.encode(),
        )
    assert rows(source(elasticsearch_url, index)) == [{"a": {"b": 1}}] * 3


def test_a_number_in_a_date_is_what_the_index_takes_it_for_or_an_error(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    """The index tries the formats of a date on the digits of a number."""
    other = "strict_date_optional_time||epoch_second||epoch_millis"
    fields = {"at": {"type": "date"}, "other": {"type": "date", "format": other}}
    filled(elastic, index, fields, [{"at": 1700000000000}, {"at": "2023-11-14"}])
    found = sorted(row["at"] for row in rows(source(elasticsearch_url, index, columns="at")))
    assert found[1] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    schema = pa.schema([("at", UTC), ("other", UTC)])
    for wrong in ({"at": 2024}, {"other": 1700000000}):
        elastic.index(index=index, id="wrong", document=wrong, refresh=True)
        with pytest.raises(ValueUnreadable, match="does not say of what"):
            rows(source(elasticsearch_url, index, schema))


@pytest.mark.parametrize(
    ("form", "same"),
    [
        (None, True),
        ("yyyy-MM-dd", True),
        ("yyyy-MM-dd[ HH:mm:ss]||epoch_millis", True),
        ("strict_date_optional_time||yyyy-dd-MM", True),
        ("year_month_day||yyyy-dd-MM", False),
        ("yyyy-dd-MM||strict_date_optional_time", False),
    ],
)
@pytest.mark.parametrize("kind", [UTC, pa.timestamp("us"), pa.date32()], ids=str)
def test_a_text_is_the_moment_that_the_index_takes_it_for(
    elastic: Elasticsearch,
    elasticsearch_url: str,
    index: str,
    form: str | None,
    same: bool,
    kind: pa.DataType,
) -> None:
    fields = {"at": {"type": "date", **({"format": form} if form else {})}}
    filled(elastic, index, fields, [{"at": "2020-02-01"}])
    schema = pa.schema([("at", kind)])
    if same:
        (row,) = rows(source(elasticsearch_url, index, schema))
        assert str(row["at"]).startswith("2020-02-01")
    else:
        with pytest.raises(OptionError, match="'at' can't be read as"):
            source(elasticsearch_url, index, schema).splits()


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ([{"type": "binary"}, {"type": "keyword"}], pa.binary()),
        ([{"type": "date"}, {"type": "date", "format": "yyyy-dd-MM"}], UTC),
    ],
    ids=["bytes", "moments"],
)
def test_a_text_must_mean_the_same_in_each_index(
    elastic: Elasticsearch,
    elasticsearch_url: str,
    index: str,
    fields: list[dict[str, Any]],
    kind: pa.DataType,
) -> None:
    names = [f"{index}-{at}" for at in range(2)]
    for name, field in zip(names, fields, strict=True):
        filled(elastic, name, {"v": field}, [])
    try:
        with pytest.raises(OptionError, match="'v' can't be read as"):
            source(elasticsearch_url, f"{index}-*", pa.schema([("v", kind)])).splits()
    finally:
        elastic.indices.delete(index=names)


def test_what_an_object_has_in_some_indices_alone_contradicts_the_others(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    inner = {"properties": {"a": {"type": "long"}}}
    filled(elastic, f"{index}-1", {"m": inner}, [{"m": {"a": 1}}])
    filled(elastic, f"{index}-2", {"m": {"type": "object"}}, [{}])
    try:
        both = source(elasticsearch_url, f"{index}-2,{index}-1").scan.schema
        assert both.field("m").type == pa.struct([("a", pa.int64())])
        off = {"type": "object", "enabled": False}
        filled(elastic, f"{index}-3", {"m": off}, [{"m": {"z": 9}}])
        with pytest.raises(OptionError, match="'m' has different types"):
            source(elasticsearch_url, f"{index}-*")
    finally:
        elastic.indices.delete(index=f"{index}-1,{index}-2,{index}-3", ignore_unavailable=True)


@pytest.mark.parametrize("odd", [{}, {"x.y": 1}], ids=["by Arrow", "value by value"])
def test_what_an_answer_says_of_itself_is_not_taken_from_documents(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, odd: dict[str, Any]
) -> None:
    """Documents whose fields are called as what a hit, or the answer, has."""
    names = ["sort", "fields", "hits", "inner_hits", "pit_id", "timed_out", "_shards", "total"]
    forbidden = ["_id", "_index", "_seq_no", "_source"]  # where anything is parsed of a document
    documents = [
        {**dict.fromkeys(names, at % 7), **dict.fromkeys(forbidden, -1), "n": at, **odd}
        for at in range(MANY)
    ]
    filled(elastic, index, {}, documents, mappings={"enabled": False})
    metas = [("_id", pa.string()), ("_index", pa.string()), ("_seq_no", pa.int64())]
    whole = pa.schema([*((name, pa.int64()) for name in [*names, "_source", "n"]), *metas])
    lists = pa.schema([(name, pa.list_(pa.int64())) for name in ["sort", "n"]])
    found = rows(source(elasticsearch_url, index, whole, numPartitions="2"))
    assert sorted(found, key=lambda row: row["n"]) == [
        {**one, "_id": f"d{at}", "_index": index, "_seq_no": at}
        for at, one in enumerate({name: one[name] for name in whole.names} for one in documents)
    ]
    arrays = rows(source(elasticsearch_url, index, lists))
    assert sorted(row["n"] for row in arrays) == [[at] for at in range(MANY)]


def test_what_indices_have_of_an_object_is_put_together_whatever_its_kind(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    kinds: list[dict[str, Any]] = [
        {"type": "passthrough", "priority": 1},
        {"type": "passthrough", "priority": 2},
        {"type": "object"},
    ]
    try:
        for at, kind in enumerate(kinds):
            inner = {**kind, "properties": {f"x.{at}": {"type": "long"}, "y": {"type": "keyword"}}}
            filled(elastic, f"{index}-{at}", {"o": inner}, [{"o": {"y": "z", f"x.{at}": at}}])
        schema = source(elasticsearch_url, f"{index}-*").scan.schema
        assert [*schema.field("o").type] == [
            *pa.struct([("x.0", pa.int64()), ("y", pa.string()), ("x.1", pa.int64())]),
            pa.field("x", pa.struct([("2", pa.int64())])),
        ]
        found = [row["o"] for row in rows(source(elasticsearch_url, f"{index}-*"))]
        assert sorted((one["x.0"] or one["x.1"] or one["x"]["2"] or 0) for one in found) == [
            *range(3)
        ]
    finally:
        elastic.indices.delete(index=f"{index}-0,{index}-1,{index}-2", ignore_unavailable=True)


VECTORED = {
    "v": {"type": "dense_vector", "dims": 2},
    "o": {"properties": {"v": {"type": "dense_vector", "dims": 2}, "b": {"type": "keyword"}}},
    "n": {"type": "nested", "properties": {"v": {"type": "dense_vector", "dims": 2}}},
    "bytes": {"type": "dense_vector", "dims": 2, "element_type": "byte"},
    "s": {"type": "sparse_vector"},
    "d": {"type": "double"},
    "k": {"type": "keyword"},
}


@pytest.mark.variants
@pytest.mark.parametrize("apart", [True, False], ids=["apart", "in the document"])
def test_vectors_come_wherever_the_index_keeps_them(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, apart: bool
) -> None:
    vector = [0.25, 0.5]
    many = {"v": vector, "o": {"v": vector, "b": "x"}, "n": [{"v": vector}, {}], "s": {"a": 0.5}}
    is_old = elastic.info()["version"]["number"] < "9.2"
    settings = {} if is_old else {"index.mapping.exclude_source_vectors": apart}
    filled(elastic, index, VECTORED, [{**many, "bytes": "12ff"}], settings=settings)
    wanted = {
        **many,
        "n": [{"v": vector}, {"v": None}],
        "s": {"a": 0.5},
        "bytes": [18.0, -1.0],
        "d": None,
        "k": None,
    }
    for names in ("v", "o", "n", "s", "bytes", "o,d", ",".join(VECTORED)):
        (row,) = rows(source(elasticsearch_url, index, columns=names))
        row = {name: json.loads(one) if name == "s" else one for name, one in row.items()}
        assert row == {name: wanted[name] for name in names.split(",")}
    dotted = pa.schema([("o.v", pa.list_(pa.float32()))])
    assert rows(source(elasticsearch_url, index, dotted)) == [{"o.v": vector}]


@pytest.mark.variants
def test_numbers_beside_vectors_keep_their_digits_where_the_index_does(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    is_old = elastic.info()["version"]["number"] < "9.2"
    settings = {} if is_old else {"index.mapping.exclude_source_vectors": False}
    filled(elastic, index, VECTORED, [], settings=settings)
    line = '{"v":[0.5,1],"d":0.12345678901234567890}'
    elastic.bulk(index=index, body=f'{{"index":{{"_id":"1"}}}}\n{line}\n', refresh=True)
    schema = pa.schema([("d", pa.decimal128(30, 20)), ("v", pa.list_(pa.float32()))])
    assert rows(source(elasticsearch_url, index, schema)) == [
        {"d": Decimal("0.12345678901234567890"), "v": [0.5, 1.0]}
    ]


# -- places


@pytest.fixture
def two(elastic: Elasticsearch, index: str) -> Iterable[str]:
    """The beginning of the names of two indices: of hundreds and of 3 documents."""
    for at, (many, kind) in enumerate([(MANY, "integer"), (3, "long")]):
        properties = {"n": {"type": kind}, f"only{at}": {"type": "keyword"}}
        documents = ({"n": number, f"only{at}": str(number)} for number in range(many))
        settings = {"number_of_shards": 2 - at}
        filled(elastic, f"{index}-{at}", properties, documents, settings=settings)
    yield index
    elastic.indices.delete(index=f"{index}-0,{index}-1", ignore_unavailable=True)


@pytest.mark.parametrize("many", ["", "1", "3", "7"])
def test_patterns_lists_and_aliases_are_read_whole(
    elastic: Elasticsearch, elasticsearch_url: str, two: str, many: str
) -> None:
    elastic.indices.put_alias(
        index=f"{two}-0", name=f"{two}-some", filter={"range": {"n": {"lt": 20}}}
    )
    given = {"numPartitions": many} if many else {}
    for index, wanted in (
        (f"{two}-*", [*range(MANY), *range(3)]),
        (f"{two}-0,{two}-1", [*range(MANY), *range(3)]),
        (f"{two}-some", [*range(20)]),
    ):
        made = source(elasticsearch_url, index, **given)
        found = rows(made)
        assert sorted(row["n"] for row in found) == sorted(wanted)
        assert all(
            row["only0"] == str(row["n"]) or row["only1"] == str(row["n"])
            for row in found
            if "only1" in row
        )
    assert made.scan.schema.field("n").type == pa.int32()
    both = source(elasticsearch_url, f"{two}-*").scan.schema
    assert both.names == ["n", "only0", "only1"]
    assert both.field("n").type == pa.int64()


@pytest.mark.variants
@pytest.mark.parametrize("left", ["{0}-1", "{0}-1*", "{0}-old"])
def test_what_a_minus_leaves_out_does_not_come_by_an_alias(
    elastic: Elasticsearch, elasticsearch_url: str, two: str, left: str
) -> None:
    elastic.indices.put_alias(index=f"{two}-*", name=f"{two}-all")
    elastic.indices.put_alias(index=f"{two}-1", name=f"{two}-old")
    for brought in (f"{two}-all", f"{two}-*", f"{two}-0,{two}-1"):
        made = source(elasticsearch_url, f"{brought},-{left.format(two)}")
        assert made.scan.schema.names == ["n", "only0"]
        assert sorted(row["n"] for row in rows(made)) == [*range(MANY)]


def test_fields_that_contradict_each_other_need_a_type(
    elastic: Elasticsearch, elasticsearch_url: str, two: str
) -> None:
    filled(elastic, f"{two}-2", {"n": {"type": "keyword"}}, [{"n": "x"}])
    try:
        with pytest.raises(OptionError, match="'n' has different types"):
            source(elasticsearch_url, f"{two}-*")
        assert source(elasticsearch_url, f"{two}-*", columns="only0").scan.schema.names == ["only0"]
        schema = pa.schema([("n", pa.string())])
        condition = [Compare("n", "=", "x")]
        assert {"n": "x"} in rows(source(elasticsearch_url, f"{two}-*", schema, condition))
        texts = rows(source(elasticsearch_url, f"{two}-*", schema))
        assert sorted(row["n"] for row in texts) == sorted(
            [*map(str, range(MANY)), "0", "1", "2", "x"]
        )
    finally:
        elastic.indices.delete(index=f"{two}-2")


def test_data_streams_are_read(elastic: Elasticsearch, elasticsearch_url: str, unique: str) -> None:
    elastic.indices.put_index_template(
        name=unique,
        index_patterns=[f"{unique}*"],
        data_stream={},
        template={"mappings": {"properties": {"n": {"type": "long"}}}},
        priority=900,
    )
    try:
        for at in range(3):
            elastic.index(
                index=unique, document={"@timestamp": "2026-01-01", "n": at}, refresh=True
            )
            elastic.indices.rollover(alias=unique)
        found = rows(source(elasticsearch_url, unique))
        assert sorted(row["n"] for row in found) == [0, 1, 2]
        assert found[0]["@timestamp"] == datetime(2026, 1, 1, tzinfo=timezone.utc)
    finally:
        elastic.options(ignore_status=(400, 405)).indices.delete_data_stream(name=unique)


def test_an_index_that_is_not_there_is_told(elasticsearch_url: str, unique: str) -> None:
    with pytest.raises(StoreRefused, match="index_not_found"):
        source(elasticsearch_url, unique)
    with pytest.raises(StoreRefused, match="No index is behind"):
        source(elasticsearch_url, f"{unique}*")


@pytest.mark.parametrize(
    "form", ['{"range": {"n": {"lt": 3}}}', '{"query": {"range": {"n": {"lt": 3}}}}']
)
def test_a_query_in_the_clusters_words(elasticsearch_url: str, two: str, form: str) -> None:
    made = source(elasticsearch_url, f"{two}-*", query=form, columns="n,_id")
    assert len(made.splits()) == 1
    assert sorted((row["n"], row["_id"]) for row in rows(made)) == sorted(
        [(at, f"d{at}") for at in range(3)] * 2
    )


@pytest.mark.parametrize("text", ["[]", "{", "name:x"])
def test_a_query_that_is_none_is_refused(elasticsearch_url: str, index: str, text: str) -> None:
    with pytest.raises(OptionError, match="Option query"):
        source(elasticsearch_url, index, query=text)


# -- one point in time


def test_a_read_is_one_state_however_late_a_split_is(
    elastic: Elasticsearch, elasticsearch_url: str, two: str
) -> None:
    made = source(elasticsearch_url, f"{two}-*")
    splits = made.splits()
    assert len(splits) > 1
    elastic.delete_by_query(index=f"{two}-*", query={"range": {"n": {"gte": 5}}}, refresh=True)
    elastic.index(index=f"{two}-1", document={"n": 77}, refresh=True)
    for _ in range(2):
        found = [
            row["n"] for one in splits for batch in made.read(one) for row in batch.to_pylist()
        ]
        assert sorted(found) == sorted([*range(MANY), *range(3)])


def test_indices_that_come_and_go_after_the_plan_change_nothing(
    elastic: Elasticsearch, elasticsearch_url: str, two: str
) -> None:
    made = source(elasticsearch_url, f"{two}-*")
    splits = made.splits()
    off = {"_source": {"enabled": False}}
    filled(elastic, f"{two}-2", {"n": {"type": "keyword"}}, [], mappings=off)
    try:
        again = source(elasticsearch_url, f"{two}-*", made.scan.schema)
        assert sum(batch.num_rows for one in splits for batch in again.read(one)) == MANY + 3
    finally:
        elastic.indices.delete(index=f"{two}-2")


@pytest.mark.parametrize("how", ["closed", "index deleted"])
def test_a_point_in_time_that_is_lost_is_told(
    elastic: Elasticsearch, elasticsearch_url: str, two: str, how: str
) -> None:
    made = source(elasticsearch_url, f"{two}-0")
    first, *_ = made.splits()
    batches = made.read(first)
    next(batches)
    if how == "closed":
        elastic.close_point_in_time(id=first.point)
    else:
        elastic.indices.delete(index=f"{two}-0")
    with pytest.raises(SnapshotBroken, match="point in time"):
        list(batches)
    with pytest.raises(SnapshotBroken, match="point in time"):
        list(made.read(first))


@pytest.mark.slow
def test_a_restart_in_mid_read_is_told_and_a_new_read_is_whole(
    private_elasticsearch: Callable[..., ElasticsearchProcess],
) -> None:
    server = private_elasticsearch()
    with connect(server.url) as client:
        filled(client, "t", {"n": {"type": "long"}}, ({"n": at} for at in range(90)))
    made = source(server.url, "t", timeout="5")
    (split,) = made.splits()
    batches = made.read(split)
    next(batches)
    server.stop()
    with pytest.raises(StoreUnreachable):
        list(batches)
    server.start()
    with pytest.raises(SnapshotBroken):
        list(made.read(split))
    assert sorted(row["n"] for row in rows(source(server.url, "t"))) == [*range(90)]


def test_pages_are_of_about_the_same_bytes(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    """Of large documents few make a page, and no more than a setting of the index allows."""
    filled(
        elastic,
        index,
        {"v": {"type": "binary"}},
        ({"v": "QUJD" * 25_000} for _ in range(90)),
        settings={"max_result_window": 20},
    )
    made = source(elasticsearch_url, index, columns="v")
    sizes = [batch.num_rows for split in made.splits() for batch in made.read(split)]
    assert sum(sizes) == 90
    assert max(sizes) == 20
    elastic.indices.put_settings(index=index, settings={"max_result_window": 10_000})
    made = source(elasticsearch_url, index, columns="v")
    (split,) = made.splits()
    sizes = [batch.num_rows for batch in made.read(split)]
    assert sum(sizes) == 90
    assert max(sizes) < 50


@pytest.mark.variants
def test_a_page_that_takes_too_long_is_ended_and_names_the_option(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    """Whoever is first, the cluster or the reader that goes away."""
    filled(elastic, index, {"n": {"type": "long"}}, ({"n": at} for at in range(MANY_SLOW)))
    made = source(elasticsearch_url, index, timeout="0.3")
    point = reads.open_point(made.cluster, index, "1m")
    with pytest.raises(StoreRefused, match="raise option timeout"):
        [*made.read(Slice(point, 0, 1, {"query": json.loads(SLOW)}, FieldTraits(), 1000))]
    end = time.monotonic() + 10
    while any(LOOP in one for one in searches(elastic)):
        assert time.monotonic() < end, "the search runs on"
        time.sleep(0.1)


@pytest.mark.parametrize("by_arrow", [True, False])
def test_what_was_found_until_the_time_was_over_is_no_page(
    elasticsearch_url: str, index: str, elastic: Elasticsearch, by_arrow: bool
) -> None:
    filled(elastic, index, {}, [{"n": 1} if by_arrow else {"n": 1, "x.y": 2}])
    made = source(elasticsearch_url, index, pa.schema([("n", pa.int64())]))
    (split,) = made.splits()
    ask = made.cluster.ask

    def late(*given: Any, **more: Any) -> Any:
        said = ask(*given, **more)
        body = said.body[RAW_PAGE].replace(b'"timed_out":false', b'"timed_out":true')
        return said._replace(body={RAW_PAGE: body})

    made.cluster.ask = late  # type: ignore[method-assign]
    with pytest.raises(StoreRefused, match="option timeout"):
        list(made.read(split))


@pytest.mark.parametrize("query", ['{"nope": {}}', '{"range": {"at": {"gte": "xx"}}}'])
def test_a_query_that_the_cluster_refuses_is_told_as_such(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, query: str
) -> None:
    filled(elastic, index, {"at": {"type": "date"}}, [{"at": 0}])
    with pytest.raises(StoreRefused, match="mend option query") as told:
        source(elasticsearch_url, index, query=query).splits()
    assert "unknown query [nope]" in str(told.value) or "[xx]" in str(told.value)
    assert not any(of_sink in str(told.value) for of_sink in ("deadLetter", "mapping", "restart"))


def test_columns_that_are_not_there_are_told_with_those_that_are(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    fields = {"name": {"type": "keyword"}, "other": {"type": "alias", "path": "name"}}
    filled(elastic, index, fields, [])
    for wrong in ("nosuch", "nam", "other"):
        with pytest.raises(OptionError, match=f"'{wrong}'.*its columns are name, _id, _index"):
            source(elasticsearch_url, index, columns=wrong)


# -- conditions


ODD = "x" * 40
VALUES = [
    {"k": "a", "low": "Ab", "z": 0.0, "at": "2026-01-01T00:00:00.000999Z", "n": 5, "hid": "h"},
    {"k": ODD, "low": "aB", "z": -0.0, "at": "2025-12-31T23:59:59.999001Z", "n": "5", "hid": None},
    {"k": None, "low": "b", "z": 5e-324, "at": None, "n": 5.0, "hid": "h"},
    {"k": "nothing", "low": None, "z": None, "at": "2026-01-01T01:00:00+01:00", "n": None},
]
FIELDS = {
    "k": {"type": "keyword", "ignore_above": 20, "null_value": "nothing"},
    "low": {"type": "keyword", "normalizer": "lowercase"},
    "z": {"type": "double"},
    "at": {"type": "date"},
    "n": {"type": "long"},
    "bad": {"type": "long", "ignore_malformed": True},
}
MIDNIGHT = datetime(2026, 1, 1, tzinfo=timezone.utc)
ASKED: list[tuple[Filter, list[int]]] = [
    (Compare("k", "=", ODD), [1]),
    (OneOf("k", ("a", ODD)), [0, 1]),
    (Null("k"), [2]),
    (Null("k", inverted=True), [0, 1, 3]),
    (Like("k", "begins", "xx"), [1]),
    (Compare("low", "=", "Ab"), [0]),
    (Like("low", "begins", "A"), [0]),
    (Null("low"), [3]),
    (Compare("z", "=", 0.0), [0, 1]),
    (Compare("z", ">=", 0.0), [0, 1, 2]),
    (Compare("z", "<=", -0.0), [0, 1]),
    (Compare("z", ">", -0.0), [2]),
    (Compare("at", "=", MIDNIGHT.replace(microsecond=999)), [0]),
    (Compare("at", "<", MIDNIGHT), [1]),
    (Compare("at", ">", MIDNIGHT), [0]),
    (Compare("at", ">=", datetime.min.replace(tzinfo=timezone.utc)), [0, 1, 3]),
    (Compare("n", "=", 5), [0, 1, 2]),
    (Null("hid", inverted=True), [0, 2]),
    (Compare("hid", "=", "h"), [0, 2]),
    (Compare("_id", "=", "d2"), [2]),
    (OneOf("_id", ("d1", "d3", "no")), [1, 3]),
]


@pytest.fixture
def asked(elastic: Elasticsearch, index: str) -> str:
    """Documents of which the index knows less, or other values, than they hold."""
    filled(elastic, index, FIELDS, VALUES, mappings={"dynamic": False})
    return index


@pytest.mark.parametrize(("condition", "wanted"), ASKED, ids=[str(one) for one, _ in ASKED])
def test_no_row_that_matches_is_left_out(
    elasticsearch_url: str, asked: str, condition: Filter, wanted: list[int]
) -> None:
    """By what Spark sees in the documents, whatever the index has of them."""
    schema = pa.schema(
        [
            *(("_id", pa.string()), ("k", pa.string()), ("low", pa.string()), ("z", pa.float64())),
            *(("at", UTC), ("n", pa.int64()), ("hid", pa.string())),
        ]
    )
    found = {row["_id"] for row in rows(source(elasticsearch_url, asked, schema, [condition]))}
    assert {f"d{at}" for at in wanted} <= found


OTHERWISE: dict[str, tuple[dict[str, Any], Filter]] = {
    "not mapped": ({"dynamic": False, "properties": {}}, Compare("c", "=", "x")),
    "copied": (
        {"properties": {"c": {"type": "keyword"}, "o": {"type": "keyword", "copy_to": "c"}}},
        Null("c"),
    ),
    "left out": (
        {"_source": {"excludes": ["c"]}, "properties": {"c": {"type": "keyword"}}},
        Null("c"),
    ),
    "hidden": (
        {
            "runtime": {"c": {"type": "keyword", "script": {"source": "emit('z')"}}},
            "properties": {"c": {"type": "keyword"}},
        },
        Compare("c", "=", "x"),
    ),
    "off": ({"enabled": False, "properties": {"c": {"type": "keyword"}}}, Compare("c", "=", "x")),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_an_index_that_has_something_else_than_documents_is_not_asked(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, case: str
) -> None:
    mappings, condition = OTHERWISE[case]
    elastic.indices.create(index=index, mappings=mappings)
    elastic.index(index=index, document={"c": "x", "o": "y"}, refresh=True)
    elastic.index(index=index, document={"o": "y"}, refresh=True)
    if case == "not mapped":
        elastic.indices.put_mapping(index=index, properties={"c": {"type": "keyword"}})
    schema = pa.schema([("c", pa.string())])
    wanted = {"c": None} if isinstance(condition, Null) else {"c": "x"}
    assert wanted in rows(source(elasticsearch_url, index, schema, [condition]))


def test_conditions_that_the_cluster_refuses_are_not_asked_for(
    elastic: Elasticsearch, elasticsearch_url: str, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(7)
    documents = [{"k": draw.choice(["a", "ab", "B", None]), "n": at} for at in range(50)]
    fields = {"k": {"type": "keyword"}, "n": {"type": "long"}}
    filled(elastic, index, fields, documents, settings={"index.max_terms_count": 2})
    elastic.cluster.put_settings(persistent={"search.allow_expensive_queries": False})
    try:
        schema = source(elasticsearch_url, index).scan.schema
        for name in fields:
            stored = [one[name] for one in documents if one[name] is not None]
            for condition in drawn(draw, schema.field(name), stored):
                found = rows(source(elasticsearch_url, index, schema, [condition]))
                assert all(one in found for one in documents if holds(one[name], condition))
        assert "The cluster refuses the conditions" in caplog.text
    finally:
        elastic.cluster.put_settings(persistent={"search.allow_expensive_queries": None})


def test_ids_are_asked_for_as_texts_alone(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    elastic.index(index=index, id="5", document={"n": 1}, refresh=True)
    schema = pa.schema([("_id", pa.int64()), ("n", pa.int64())])
    for condition in (OneOf("_id", (5, 7)), Compare("_id", "=", 5)):
        assert rows(source(elasticsearch_url, index, schema, [condition])) == [{"_id": 5, "n": 1}]


def test_a_condition_spares_documents(elasticsearch_url: str, two: str) -> None:
    made = source(elasticsearch_url, f"{two}-0", filters=[Compare("n", "<", 7)])
    assert len(rows(made)) == 7
    assert len(made.splits()) == 1


# -- through Spark


def test_an_index_is_read_by_its_own_types_by_given_ones_and_by_some_columns(
    spark: SparkSession, elasticsearch_url: str, two: str
) -> None:
    def reader() -> Any:
        return spark.read.format("elasticsearch").options(url=elasticsearch_url, index=f"{two}-*")

    frame = reader().load()
    assert frame.schema.simpleString() == "struct<n:bigint,only0:string,only1:string>"
    total = sum(range(MANY)) + 3
    assert frame.agg(f.sum("n"), f.count("only0"), f.count("only1")).first() == (total, MANY, 3)
    named = reader().schema("_id string, n decimal(20,0)").load()
    assert named.where("_id = 'd2'").select("n").collect() == [(Decimal(2),)] * 2
    assert reader().option("columns", "only1,_ID").load().columns == ["only1", "_id"]


@pytest.mark.parametrize(
    "condition", ["n = 16", "n IN (1, 2, 99999)", "only1 IS NULL AND n < 9", "only0 LIKE '14%'"]
)
def test_conditions_give_the_same_rows_whether_pushed_or_not(
    spark: SparkSession, elasticsearch_url: str, two: str, condition: str
) -> None:
    reader = spark.read.format("elasticsearch").options(url=elasticsearch_url, index=f"{two}-*")
    plain = reader.load().where(condition).collect()
    with pushing(spark):
        pushed = reader.option("pushFilters", "true").load().where(condition).collect()
    assert sorted(map(str, pushed)) == sorted(map(str, plain))
