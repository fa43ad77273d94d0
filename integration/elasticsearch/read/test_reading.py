"""`spark.read.format("elasticsearch")`: mappings, places, conditions, points in time, Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.elasticsearch import MANY, Index, fill, read_rows, source
from integration.support.epochs import ElasticsearchQuery

from pyspark_elasticsearch.server import reads
from sparkonce.errors import OptionError, SparkonceError, StoreRefused, ValueUnreadable
from sparkonce.reading import Compare

Into = Callable[..., ElasticsearchQuery]
UTC = pa.timestamp("us", "UTC")


# -- types


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


def test_columns_have_the_types_of_the_mapping(index: Index) -> None:
    properties = {f"f{at}": mapping for at, (mapping, _) in enumerate(MAPPED)}
    properties["other"] = {"type": "alias", "path": "f0"}
    index.fill(properties, [{}])
    made = index.source()
    assert dict(zip(made.scan.schema.names, made.scan.schema.types, strict=True)) == {
        f"f{at}": kind for at, (_, kind) in enumerate(MAPPED)
    }
    assert read_rows(made) == [dict.fromkeys(made.scan.schema.names)]


def test_arrays_are_declared(index: Index) -> None:
    properties = {
        "tags": {"type": "keyword"},
        "items": {"properties": {"codes": {"type": "integer"}, "n": {"type": "long"}}},
    }
    documents = [
        {"tags": ["a", "b"], "items": [{"codes": 1, "n": 2}, {"codes": [3, 4]}]},
        {"tags": "a", "items": {"codes": []}},
        {},
    ]
    index.fill(properties, documents)
    with pytest.raises(SparkonceError, match="arrayFields"):
        read_rows(index.source())
    assert read_rows(index.source(arrayFields="tags,items,items.codes")) == [
        {"tags": ["a", "b"], "items": [{"codes": [1], "n": 2}, {"codes": [3, 4], "n": None}]},
        {"tags": ["a"], "items": [{"codes": [], "n": None}]},
        {"tags": None, "items": None},
    ]
    with pytest.raises(OptionError, match=r"items\.code'.*no index has") as told:
        index.source(arrayFields="items.code")
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
    index: Index, mapped: str, kind: pa.DataType
) -> None:
    index.fill({"s": {"properties": {"v": {"type": mapped}}}}, [{}])
    inside = (
        pa.struct([("v", kind)]),
        pa.map_(pa.string(), kind),
        pa.list_(pa.struct([("v", kind)])),
    )
    for column in ("s.v", kind), ("s.v", pa.list_(kind)), *(("s", one) for one in inside):
        with pytest.raises(OptionError, match=r"'s\.v' can't be read as"):
            index.source(pa.schema([column])).splits()


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
    index: Index, name: str, kind: pa.DataType
) -> None:
    index.fill({}, [{"n": 1}])
    with pytest.raises(OptionError, match=f"Column '{name}' can't be read"):
        index.source(pa.schema([(name, kind), ("n", pa.int64())])).splits()
    texts = pa.schema([("_seq_no", pa.string()), ("_id", pa.string())])
    assert read_rows(index.source(texts)) == [{"_seq_no": "0", "_id": "d0"}]


def test_a_column_that_no_index_knows_is_null_and_told(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    index.fill({"name": {"type": "keyword"}}, [{"name": "a"}])
    inner = pa.struct([("nam", pa.string())])
    schema = pa.schema([("name", pa.string()), ("nam", pa.string()), ("o", inner)])
    assert read_rows(index.source(schema)) == [{"name": "a", "nam": None, "o": None}]
    for unknown in ("nam", "o.nam"):
        assert f"Column '{unknown}' is null in each row" in caplog.text


def test_documents_that_are_not_kept_can_not_be_read(index: Index) -> None:
    index.fill({"v": {"type": "long"}}, [], mappings={"_source": {"enabled": False}})
    with pytest.raises(StoreRefused, match="disables _source"):
        index.source()


@pytest.mark.parametrize("odd", [{}, {"x": ["a.b"]}], ids=["by Arrow", "value by value"])
def test_documents_that_are_not_kept_by_a_setting_can_not_be_read(
    index: Index, odd: dict[str, Any]
) -> None:
    """Nor where no setting says so."""
    mode = {"index.mapping.source.mode": "disabled"}
    kept, lost = f"{index}-kept", f"{index}-lost"
    fill(index.client, kept, {"v": {"type": "long"}}, [{"v": 1, **odd}])
    made = source(index.url, kept)
    (split,) = made.splits()
    fill(index.client, lost, {"v": {"type": "long"}}, [{"v": 1, **odd}], settings=mode)
    with pytest.raises(StoreRefused, match="disables _source"):
        source(index.url, f"{index}-*")
    point = reads.open_point(made.cluster, lost, "1m")
    with pytest.raises(ValueUnreadable, match=f"'d0' in index {lost} has no _source"):
        list(made.read(replace(split, point=point)))


def test_objects_and_arrays_come_whole_whatever_is_in_them(index: Index) -> None:
    inner = {"properties": {"x": {"type": "long"}, "y": {"type": "long"}}}
    documents = [
        {"n": [{"x": 1}, {"y": 2}, {}, None, {"x": 3}], "a": {}},
        {"n": [], "a": {"y": 1}},
        {"n": None, "a": None},
    ]
    fields = {"n": {"type": "nested", **inner}, "a": inner, "z": {"type": "long"}}
    index.fill(fields, documents)
    struct = pa.struct([("x", pa.int64())])
    schema = pa.schema([("n", pa.list_(struct)), ("a", struct)])
    assert read_rows(index.source(schema)) == [
        {"n": [{"x": 1}, {"x": None}, {"x": None}, None, {"x": 3}], "a": {"x": None}},
        {"n": [], "a": {"x": None}},
        {"n": None, "a": None},
    ]


def test_numbers_keep_their_digits_where_these_count(index: Index) -> None:
    """The cluster writes numbers anew, as doubles, where it leaves something out of a document."""
    line = '{"k":1.10,"d":0.12345678901234567890,"any":{"p":1e3,"q":1.10},"other":1}'
    fields = {
        "k": {"type": "keyword"},
        "d": {"type": "double"},
        "any": {"type": "object", "enabled": False},
        "other": {"type": "long"},
    }
    index.client.indices.create(index=index, mappings={"properties": fields})
    index.client.bulk(index=index, body=f'{{"index":{{"_id":"1"}}}}\n{line}\n', refresh=True)
    exact = pa.schema([("d", pa.decimal128(30, 20)), ("k", pa.string())])
    assert read_rows(index.source(exact)) == [{"d": Decimal("0.12345678901234567890"), "k": "1.10"}]
    anything = pa.schema([("any", pa.string())])
    assert read_rows(index.source(anything)) == [{"any": '{"p":1e3,"q":1.10}'}]
    text = pa.schema([("k", pa.string())])
    condition = [Compare("k", "=", "1.10")]
    assert read_rows(index.source(text, condition)) == [{"k": "1.10"}]


def test_a_document_may_have_lines_and_dots_in_it(index: Index) -> None:
    index.fill({"a": {"properties": {"b": {"type": "long"}}}}, [])
    for text in ('{\n "a": {\n  "b": 1\n }\n}', '{"a\\u002eb" : 1}', '{"a.b"\n: 1}'):
        index.client.perform_request(
            "POST",
            f"/{index}/_doc?refresh=true",
            headers={"accept": "application/json", "content-type": "application/json"},
            body=text.encode(),
        )
    assert read_rows(index.source()) == [{"a": {"b": 1}}] * 3


def test_a_number_in_a_date_is_what_the_index_takes_it_for_or_an_error(index: Index) -> None:
    """The index tries the formats of a date on the digits of a number."""
    other = "strict_date_optional_time||epoch_second||epoch_millis"
    fields = {"at": {"type": "date"}, "other": {"type": "date", "format": other}}
    index.fill(fields, [{"at": 1700000000000}, {"at": "2023-11-14"}])
    found = sorted(row["at"] for row in read_rows(index.source(columns="at")))
    assert found[1] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    schema = pa.schema([("at", UTC), ("other", UTC)])
    for wrong in ({"at": 2024}, {"other": 1700000000}):
        index.client.index(index=index, id="wrong", document=wrong, refresh=True)
        with pytest.raises(ValueUnreadable, match="does not say which unit"):
            read_rows(index.source(schema))


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
    index: Index, form: str | None, same: bool, kind: pa.DataType
) -> None:
    fields = {"at": {"type": "date", **({"format": form} if form else {})}}
    index.fill(fields, [{"at": "2020-02-01"}])
    schema = pa.schema([("at", kind)])
    if same:
        (row,) = read_rows(index.source(schema))
        assert str(row["at"]).startswith("2020-02-01")
    else:
        with pytest.raises(OptionError, match="'at' can't be read as"):
            index.source(schema).splits()


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ([{"type": "binary"}, {"type": "keyword"}], pa.binary()),
        ([{"type": "date"}, {"type": "date", "format": "yyyy-dd-MM"}], UTC),
    ],
    ids=["bytes", "moments"],
)
def test_a_text_must_mean_the_same_in_each_index(
    index: Index, fields: list[dict[str, Any]], kind: pa.DataType
) -> None:
    names = [f"{index}-{at}" for at in range(2)]
    for name, field in zip(names, fields, strict=True):
        fill(index.client, name, {"v": field}, [])
    with pytest.raises(OptionError, match="'v' can't be read as"):
        source(index.url, f"{index}-*", pa.schema([("v", kind)])).splits()


def test_what_an_object_has_in_some_indices_alone_contradicts_the_others(index: Index) -> None:
    inner = {"properties": {"a": {"type": "long"}}}
    fill(index.client, f"{index}-1", {"m": inner}, [{"m": {"a": 1}}])
    fill(index.client, f"{index}-2", {"m": {"type": "object"}}, [{}])
    both = source(index.url, f"{index}-2,{index}-1").scan.schema
    assert both.field("m").type == pa.struct([("a", pa.int64())])
    off = {"type": "object", "enabled": False}
    fill(index.client, f"{index}-3", {"m": off}, [{"m": {"z": 9}}])
    with pytest.raises(OptionError, match="'m' has different types"):
        source(index.url, f"{index}-*")


@pytest.mark.parametrize("odd", [{}, {"x.y": 1}], ids=["by Arrow", "value by value"])
def test_what_an_answer_says_of_itself_is_not_taken_from_documents(
    index: Index, odd: dict[str, Any]
) -> None:
    """Documents whose fields are called as what a hit, or the answer, has."""
    names = ["sort", "fields", "hits", "inner_hits", "pit_id", "timed_out", "_shards", "total"]
    forbidden = ["_id", "_index", "_seq_no", "_source"]  # where anything is parsed of a document
    documents = [
        {**dict.fromkeys(names, at % 7), **dict.fromkeys(forbidden, -1), "n": at, **odd}
        for at in range(MANY)
    ]
    index.fill({}, documents, mappings={"enabled": False})
    metas = [("_id", pa.string()), ("_index", pa.string()), ("_seq_no", pa.int64())]
    whole = pa.schema([*((name, pa.int64()) for name in [*names, "_source", "n"]), *metas])
    lists = pa.schema([(name, pa.list_(pa.int64())) for name in ["sort", "n"]])
    found = read_rows(index.source(whole, numPartitions="2"))
    assert sorted(found, key=lambda row: row["n"]) == [
        {**one, "_id": f"d{at}", "_index": index, "_seq_no": at}
        for at, one in enumerate({name: one[name] for name in whole.names} for one in documents)
    ]
    arrays = read_rows(index.source(lists))
    assert sorted(row["n"] for row in arrays) == [[at] for at in range(MANY)]


def test_what_indices_have_of_an_object_is_put_together_whatever_its_kind(index: Index) -> None:
    kinds: list[dict[str, Any]] = [
        {"type": "passthrough", "priority": 1},
        {"type": "passthrough", "priority": 2},
        {"type": "object"},
    ]
    for at, kind in enumerate(kinds):
        inner = {**kind, "properties": {f"x.{at}": {"type": "long"}, "y": {"type": "keyword"}}}
        fill(index.client, f"{index}-{at}", {"o": inner}, [{"o": {"y": "z", f"x.{at}": at}}])
    schema = source(index.url, f"{index}-*").scan.schema
    assert [*schema.field("o").type] == [
        *pa.struct([("x.0", pa.int64()), ("y", pa.string()), ("x.1", pa.int64())]),
        pa.field("x", pa.struct([("2", pa.int64())])),
    ]
    found = [row["o"] for row in read_rows(source(index.url, f"{index}-*"))]
    assert sorted((one["x.0"] or one["x.1"] or one["x"]["2"] or 0) for one in found) == [*range(3)]


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
def test_vectors_come_wherever_the_index_keeps_them(index: Index, apart: bool) -> None:
    vector = [0.25, 0.5]
    many = {"v": vector, "o": {"v": vector, "b": "x"}, "n": [{"v": vector}, {}], "s": {"a": 0.5}}
    is_old = index.client.info()["version"]["number"] < "9.2"
    settings = {} if is_old else {"index.mapping.exclude_source_vectors": apart}
    index.fill(VECTORED, [{**many, "bytes": "12ff"}], settings=settings)
    wanted = {
        **many,
        "n": [{"v": vector}, {"v": None}],
        "s": {"a": 0.5},
        "bytes": [18.0, -1.0],
        "d": None,
        "k": None,
    }
    for names in ("v", "o", "n", "s", "bytes", "o,d", ",".join(VECTORED)):
        (row,) = read_rows(index.source(columns=names))
        row = {name: json.loads(one) if name == "s" else one for name, one in row.items()}
        assert row == {name: wanted[name] for name in names.split(",")}
    dotted = pa.schema([("o.v", pa.list_(pa.float32()))])
    assert read_rows(index.source(dotted)) == [{"o.v": vector}]


@pytest.mark.variants
def test_numbers_beside_vectors_keep_their_digits_where_the_index_does(index: Index) -> None:
    is_old = index.client.info()["version"]["number"] < "9.2"
    settings = {} if is_old else {"index.mapping.exclude_source_vectors": False}
    index.fill(VECTORED, [], settings=settings)
    line = '{"v":[0.5,1],"d":0.12345678901234567890}'
    index.client.bulk(index=index, body=f'{{"index":{{"_id":"1"}}}}\n{line}\n', refresh=True)
    schema = pa.schema([("d", pa.decimal128(30, 20)), ("v", pa.list_(pa.float32()))])
    assert read_rows(index.source(schema)) == [
        {"d": Decimal("0.12345678901234567890"), "v": [0.5, 1.0]}
    ]
