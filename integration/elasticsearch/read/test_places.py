"""Which indices are read, as of which moment, and in pages of which size."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.elasticsearch import (
    CONNECTOR,
    MANY,
    Index,
    Private,
    changes,
    counting_anew,
    fill,
    read_rows,
    source,
)
from integration.support.elasticsearch import documents as documents_of
from integration.support.servers.elasticsearch import connect
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pyspark_elasticsearch.server.client import RAW_PAGE
from sparkonce.errors import (
    OptionError,
    SnapshotBroken,
    StoreRefused,
    ValueUnreadable,
)
from sparkonce.reading import Compare, Filter, Like, Null, OneOf
from sparkonce.tck.conditions import drawn, holds


@pytest.mark.parametrize("many", ["", "1", "3", "7"])
def test_patterns_lists_and_aliases_are_read_whole(two: Index, many: str) -> None:
    two.client.indices.put_alias(
        index=f"{two}-0", name=f"{two}-some", filter={"range": {"n": {"lt": 20}}}
    )
    given = {"numPartitions": many} if many else {}
    for index, wanted in (
        (f"{two}-*", [*range(MANY), *range(3)]),
        (f"{two}-0,{two}-1", [*range(MANY), *range(3)]),
        (f"{two}-some", [*range(20)]),
    ):
        made = source(two.url, index, **given)
        found = read_rows(made)
        assert sorted(row["n"] for row in found) == sorted(wanted)
        assert all(
            row["only0"] == str(row["n"]) or row["only1"] == str(row["n"])
            for row in found
            if "only1" in row
        )
    assert made.scan.schema.field("n").type == pa.int32()
    both = source(two.url, f"{two}-*").scan.schema
    assert both.names == ["n", "only0", "only1"]
    assert both.field("n").type == pa.int64()


@pytest.mark.variants
@pytest.mark.parametrize("left", ["{0}-1", "{0}-1*", "{0}-old"])
def test_what_a_minus_leaves_out_does_not_come_by_an_alias(two: Index, left: str) -> None:
    two.client.indices.put_alias(index=f"{two}-*", name=f"{two}-all")
    two.client.indices.put_alias(index=f"{two}-1", name=f"{two}-old")
    for brought in (f"{two}-all", f"{two}-*", f"{two}-0,{two}-1"):
        made = source(two.url, f"{brought},-{left.format(two)}")
        assert made.scan.schema.names == ["n", "only0"]
        assert sorted(row["n"] for row in read_rows(made)) == [*range(MANY)]


def test_fields_that_contradict_each_other_need_a_type(two: Index) -> None:
    fill(two.client, f"{two}-2", {"n": {"type": "keyword"}}, [{"n": "x"}])
    with pytest.raises(OptionError, match="'n' has different types"):
        source(two.url, f"{two}-*")
    assert source(two.url, f"{two}-*", columns="only0").scan.schema.names == ["only0"]
    schema = pa.schema([("n", pa.string())])
    condition = [Compare("n", "=", "x")]
    assert {"n": "x"} in read_rows(source(two.url, f"{two}-*", schema, condition))
    texts = read_rows(source(two.url, f"{two}-*", schema))
    assert sorted(row["n"] for row in texts) == sorted([*map(str, range(MANY)), "0", "1", "2", "x"])


def test_data_streams_are_read(index: Index) -> None:
    index.client.indices.put_index_template(
        name=index,
        index_patterns=[f"{index}*"],
        data_stream={},
        template={"mappings": {"properties": {"n": {"type": "long"}}}},
        priority=900,
    )
    for at in range(3):
        index.client.index(
            index=index, document={"@timestamp": "2026-01-01", "n": at}, refresh=True
        )
        index.client.indices.rollover(alias=index)
    found = read_rows(index.source())
    assert sorted(row["n"] for row in found) == [0, 1, 2]
    assert found[0]["@timestamp"] == datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_an_index_that_is_not_there_is_told(elasticsearch_url: str, unique: str) -> None:
    with pytest.raises(StoreRefused, match="index_not_found"):
        source(elasticsearch_url, unique)
    with pytest.raises(StoreRefused, match="matches no index"):
        source(elasticsearch_url, f"{unique}*")


@pytest.mark.parametrize(
    "form", ['{"range": {"n": {"lt": 3}}}', '{"query": {"range": {"n": {"lt": 3}}}}']
)
def test_a_query_in_the_clusters_words(two: Index, form: str) -> None:
    made = source(two.url, f"{two}-*", query=form, columns="n,_id")
    assert len(made.splits()) == 1
    assert sorted((row["n"], row["_id"]) for row in read_rows(made)) == sorted(
        [(at, f"d{at}") for at in range(3)] * 2
    )


@pytest.mark.parametrize("text", ["[]", "{", "name:x"])
def test_a_query_that_is_none_is_refused(index: Index, text: str) -> None:
    with pytest.raises(OptionError, match="Option query"):
        index.source(query=text)


def test_a_read_is_one_state_however_late_a_split_is(two: Index) -> None:
    made = source(two.url, f"{two}-*")
    splits = made.splits()
    assert len(splits) > 1
    two.client.delete_by_query(index=f"{two}-*", query={"range": {"n": {"gte": 5}}}, refresh=True)
    two.client.index(index=f"{two}-1", document={"n": 77}, refresh=True)
    for _ in range(2):
        found = [
            row["n"] for one in splits for batch in made.read(one) for row in batch.to_pylist()
        ]
        assert sorted(found) == sorted([*range(MANY), *range(3)])


def test_indices_that_come_and_go_after_the_plan_change_nothing(two: Index) -> None:
    made = source(two.url, f"{two}-*")
    splits = made.splits()
    off = {"_source": {"enabled": False}}
    fill(two.client, f"{two}-2", {"n": {"type": "keyword"}}, [], mappings=off)
    again = source(two.url, f"{two}-*", made.scan.schema)
    assert sum(batch.num_rows for one in splits for batch in again.read(one)) == MANY + 3


@pytest.mark.parametrize("how", ["closed", "index deleted"])
def test_a_point_in_time_that_is_lost_is_told(two: Index, how: str) -> None:
    made = source(two.url, f"{two}-0")
    first, *_ = made.splits()
    batches = made.read(first)
    next(batches)
    if how == "closed":
        two.client.close_point_in_time(id=first.point)
    else:
        two.client.indices.delete(index=f"{two}-0")
    with pytest.raises(SnapshotBroken, match="point in time"):
        list(batches)
    with pytest.raises(SnapshotBroken, match="point in time"):
        list(made.read(first))


def test_pages_are_of_about_the_same_bytes(index: Index) -> None:
    """Of large documents few make a page, and no more than a setting of the index allows."""
    fill(
        index.client,
        index,
        {"v": {"type": "binary"}},
        ({"v": "QUJD" * 25_000} for _ in range(90)),
        settings={"max_result_window": 20},
    )
    made = index.source(columns="v")
    sizes = [batch.num_rows for split in made.splits() for batch in made.read(split)]
    assert sum(sizes) == 90
    assert max(sizes) == 20
    index.client.indices.put_settings(index=index, settings={"max_result_window": 10_000})
    made = index.source(columns="v")
    (split,) = made.splits()
    sizes = [batch.num_rows for batch in made.read(split)]
    assert sum(sizes) == 90
    assert max(sizes) < 50


@pytest.mark.parametrize("by_arrow", [True, False])
def test_what_was_found_until_the_time_was_over_is_no_page(index: Index, by_arrow: bool) -> None:
    index.fill({}, [{"n": 1} if by_arrow else {"n": 1, "x.y": 2}])
    made = index.source(pa.schema([("n", pa.int64())]))
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
def test_a_query_that_the_cluster_refuses_is_told_as_such(index: Index, query: str) -> None:
    index.fill({"at": {"type": "date"}}, [{"at": 0}])
    with pytest.raises(StoreRefused, match="correct option query") as told:
        index.source(query=query).splits()
    assert "unknown query [nope]" in str(told.value) or "[xx]" in str(told.value)
    assert not any(of_sink in str(told.value) for of_sink in ("deadLetter", "mapping", "restart"))


def test_columns_that_are_not_there_are_told_with_those_that_are(index: Index) -> None:
    fields = {"name": {"type": "keyword"}, "other": {"type": "alias", "path": "name"}}
    index.fill(fields, [])
    for wrong in ("nosuch", "nam", "other"):
        with pytest.raises(OptionError, match=f"'{wrong}'.*its columns are name, _id, _index"):
            index.source(columns=wrong)


UTC = pa.timestamp("us", "UTC")
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
def asked(index: Index) -> str:
    """Documents of which the index knows less, or other values, than they hold."""
    index.fill(FIELDS, VALUES, mappings={"dynamic": False})
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
    found = {row["_id"] for row in read_rows(source(elasticsearch_url, asked, schema, [condition]))}
    assert {f"d{at}" for at in wanted} <= found


def test_date_math_is_that_of_the_plan(index: Index) -> None:
    today = datetime.now(timezone.utc)
    names = [f"{index}-{today - timedelta(days=ago):%Y.%m.%d}" for ago in range(3)]
    for number, name in enumerate(names):
        fill(index.client, name, {"n": {"type": "long"}}, [{"n": number}])
    dated = "<%s-{now/d%s}>"
    for asked, wanted in (
        (dated % (index, ""), [0]),
        (f"{dated % (index, '-1d')},{dated % (index, '-2d{yyyy.MM.dd|+00:00}')}", [1, 2]),
        (f"{index}-*,-{dated % (index, '-1d')}", [0, 2]),
        (f"{index}-*,-<{index}-{{now/y{{yyyy}}}}*>", []),
        (f"{index}-*,-<{index}-no-{{now/d}}>", [0, 1, 2]),
        (f"{names[0]},<{index}-no-{{now/d}}*>", [0]),
    ):
        if not wanted:
            with pytest.raises(StoreRefused, match="matches no index"):
                source(index.url, asked)
            continue
        made = source(index.url, asked)
        assert sorted(row["n"] for row in read_rows(made)) == wanted, asked
    for missing in (f"<{index}-{{2000.01.01||/d}}>", f"<{index}-no-{{now/d}}*>"):
        with pytest.raises(OptionError, match="matches no index now"):
            source(index.url, missing)


COARSE = {
    "n": ({"type": "long"}, pa.int64(), [1, "1.5", [2, 3], None]),
    "b": ({"type": "boolean"}, pa.bool_(), [True, "", [False, True], None]),
    "at": ({"type": "date"}, UTC, ["2026-01-01", 1767225600000, ["2026-01-01"], None]),
    "bad": ({"type": "long", "ignore_malformed": True}, pa.int64(), [1, "", "x", None]),
}
"""Values that an index has, or ignores, and that do not all fit the type of a column."""


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("name", COARSE)
def test_a_condition_of_nulls_finds_values_that_are_read_as_null(
    index: Index, caplog: pytest.LogCaptureFixture, name: str, inverted: bool
) -> None:
    field, kind, stored = COARSE[name]
    index.fill({name: field}, [{name: one} for one in stored])
    schema = pa.schema([("_id", pa.string()), (name, kind)])
    every = read_rows(index.source(schema, onUnreadable="null"))
    wanted = [row for row in every if (row[name] is None) is not inverted]
    found = read_rows(index.source(schema, [Null(name, inverted)], onUnreadable="null"))
    assert [row for row in found if (row[name] is None) is not inverted] == wanted
    lost = sum(row[name] is None for row in every) - 1
    assert lost == 0 or f"{lost} values were read as null" in caplog.text


def test_a_stream_counts_values_that_it_reads_as_null(
    index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    index.fill({"n": {"type": "long"}}, [{"n": one} for one in (1, "2.5", None, 4)])
    schema = pa.schema([("_id", pa.string()), ("n", pa.int64())])
    strict, lenient = (index.feed(schema, **more) for more in ({}, {"onUnreadable": "null"}))
    with pytest.raises(ValueUnreadable, match="onUnreadable=null"):
        changes(strict, strict.begin(), strict.latest())
    found = changes(lenient, lenient.begin(), lenient.latest())
    assert sorted(str(row["n"]) for row in found) == ["1", "4", "None", "None"]
    assert "1 values were read as null" in caplog.text


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
    index: Index, case: str
) -> None:
    mappings, condition = OTHERWISE[case]
    index.client.indices.create(index=index, mappings=mappings)
    index.client.index(index=index, document={"c": "x", "o": "y"}, refresh=True)
    index.client.index(index=index, document={"o": "y"}, refresh=True)
    if case == "not mapped":
        index.client.indices.put_mapping(index=index, properties={"c": {"type": "keyword"}})
    schema = pa.schema([("c", pa.string())])
    wanted = {"c": None} if isinstance(condition, Null) else {"c": "x"}
    assert wanted in read_rows(index.source(schema, [condition]))


def test_conditions_that_the_cluster_refuses_are_not_asked_for(
    private_elasticsearch: Private, caplog: pytest.LogCaptureFixture
) -> None:
    draw, node = random.Random(7), private_elasticsearch()
    documents = [{"k": draw.choice(["a", "ab", "B", None]), "n": at} for at in range(50)]
    fields = {"k": {"type": "keyword"}, "n": {"type": "long"}}
    with connect(node.url) as client:
        index = Index("orders", node.url, client)
        index.fill(fields, documents, settings={"index.max_terms_count": 2})
        client.cluster.put_settings(persistent={"search.allow_expensive_queries": False})
        schema = index.source().scan.schema
        for name in fields:
            stored = [one[name] for one in documents if one[name] is not None]
            for condition in drawn(draw, schema.field(name), stored):
                found = read_rows(index.source(schema, [condition]))
                assert all(one in found for one in documents if holds(one[name], condition))
        assert "The cluster rejects the conditions" in caplog.text
        query = counting_anew(node.url, sinkId="a")  # a sink asks for nothing of that kind
        query.sink.check()
        for epoch in range(2):
            query.run(epoch, [{"id": 1, "n": 1}])
        assert [one["n"] for one in documents_of(client, "counters").values()] == [2]


def test_ids_are_asked_for_as_texts_alone(index: Index) -> None:
    index.client.index(index=index, id="5", document={"n": 1}, refresh=True)
    schema = pa.schema([("_id", pa.int64()), ("n", pa.int64())])
    for condition in (OneOf("_id", (5, 7)), Compare("_id", "=", 5)):
        assert read_rows(index.source(schema, [condition])) == [{"_id": 5, "n": 1}]


def test_a_condition_spares_documents(two: Index) -> None:
    made = source(two.url, f"{two}-0", filters=[Compare("n", "<", 7)])
    assert len(read_rows(made)) == 7
    assert len(made.splits()) == 1


def test_an_index_is_read_by_its_own_types_by_given_ones_and_by_some_columns(
    spark: SparkSession, two: Index
) -> None:
    def reader() -> Any:
        return spark.read.format(CONNECTOR.name).options(url=two.url, index=f"{two}-*")

    frame = reader().load()
    assert frame.schema.simpleString() == "struct<n:bigint,only0:string,only1:string>"
    total = sum(range(MANY)) + 3
    assert frame.agg(f.sum("n"), f.count("only0"), f.count("only1")).first() == (total, MANY, 3)
    named = reader().schema("_id string, n decimal(20,0)").load()
    assert named.where("_id = 'd2'").select("n").collect() == [(Decimal(2),)] * 2
    assert reader().option("columns", "only1,_ID").load().columns == ["only1", "_id"]
