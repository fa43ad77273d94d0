"""Where a row goes: ids from keys, routing, pipelines, aliases, indices of a template."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import BadRequestError, Elasticsearch
from integration.support.elasticsearch import (
    ROWS,
    Index,
    apply_again,
    decide,
    documents,
    has_script_processor,
    keep_log,
    row,
    rows,
)
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases, slow_rows

from sparkonce.errors import BadRow, OptionError, StoreRefused, StoreUnreachable, StoreUnsafe

pytestmark = pytest.mark.variants
Make = Callable[..., ElasticsearchQuery]


def test_index_that_is_made_and_turns_out_not_to_be_fit_is_taken_back(index: Index) -> None:
    unsafe = {"settings": {"translog.durability": "async"}}
    index.client.indices.put_index_template(name=index, index_patterns=[index], template=unsafe)
    with pytest.raises(StoreUnsafe, match="durability=async"):
        index.into(ROWS)
    assert not index.client.indices.exists(index=index)
    index.client.indices.delete_index_template(name=index)
    index.into(ROWS)


def test_index_that_is_not_fit_is_kept_with_the_document_that_it_got_meanwhile(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written_meanwhile(*_: object) -> None:
        index.client.index(index=index, id="1", document={"id": 1})
        raise StoreUnsafe("not fit")

    monkeypatch.setattr("pyspark_elasticsearch.write.fitness.require_safe", written_meanwhile)
    monkeypatch.setattr(
        "pyspark_elasticsearch.write.preflight.require_safe_indices", lambda *_: None
    )
    with pytest.raises(StoreUnsafe):
        index.into(ROWS)
    index.client.index(index=index, id="2", document={"id": 2})  # it takes writes as before
    assert len(index.documents()) == 2


def test_reason_for_which_a_new_index_is_not_fit_is_told_whatever_keeps_it_from_being_taken_back(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsafe = {"settings": {"translog.durability": "async"}}
    index.client.indices.put_index_template(name=index, index_patterns=[index], template=unsafe)

    def down(*_: object) -> None:
        raise StoreUnreachable("no answer")

    monkeypatch.setattr("pyspark_elasticsearch.write.preflight._take_back", down)
    with pytest.raises(StoreUnsafe, match="durability=async"):
        index.into(ROWS)


def test_composite_keys_are_joined_unambiguously(index: Index) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("n", pa.int32())])
    query = index.into(schema, key="a,b")
    pairs = [
        ("x:y", "z"),
        ("x", "y:z"),
        ("x%3Ay", "z"),
        ('"\\\n', "ä\N{PARTY POPPER}"),
        ("/?#", ""),
    ]
    query.run(0, [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate(pairs)])
    query.run(1, [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate(pairs)])
    found = index.documents()
    assert len(found) == 5
    assert '"\\\n:ä\N{PARTY POPPER}' in found


def test_key_that_is_null_or_too_long_is_refused(into_index: Make) -> None:
    query = into_index(ROWS, key="name")
    with pytest.raises(BadRow, match="'name' is null in a row"):
        query.stage(0, [row(1, None)])
    with pytest.raises(BadRow, match="has 513 bytes"):
        query.stage(0, [row(1, "x" * 513)])


def test_routing_and_pipeline(index: Index) -> None:
    if not has_script_processor(index.client):
        pytest.skip("this server has no script processor")
    words = [{"script": {"source": "ctx.name = ctx.name.toUpperCase()"}}]
    index.client.ingest.put_pipeline(id=index, processors=words)
    index.client.indices.create(index=index, settings={"number_of_shards": 3})
    query = index.into(ROWS, key="id", routing="name", pipeline=index)
    query.run(0, [row(i, f"r{i % 2}") for i in range(9)])
    index.client.indices.refresh(index=index)
    hits = index.client.search(index=index, size=20)["hits"]["hits"]
    assert {hit["_routing"] for hit in hits} == {"r0", "r1"}
    assert {hit["_source"]["name"] for hit in hits} == {"R0", "R1"}
    assert len(hits) == 9
    index.client.ingest.delete_pipeline(id=index)
    with pytest.raises(OptionError, match=f"ingest pipeline '{index}' does not exist"):
        index.into(ROWS, key="id", pipeline=index, sinkId="other")


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.decimal128(5, 2), Decimal("1.50"), "1.50"),
        (pa.timestamp("us", "UTC"), datetime(2024, 2, 29, tzinfo=timezone.utc), "2024-02-29T"),
        *slow_rows(
            (pa.date32(), date(2024, 2, 29), "2024-02-29"),
            (pa.int64(), 7, "7"),
            (pa.bool_(), True, "true"),
            (pa.string(), 'a "b"\n\x01', 'a "b"\n\x01'),
        ),
    ],
    ids=str,
)
def test_routing_may_be_a_column_of_any_plain_type(
    index: Index, kind: pa.DataType, value: Any, text: str
) -> None:
    query = index.into(pa.schema([("id", pa.int64()), ("r", kind)]), key="id", routing="r")
    query.run(0, [{"id": 1, "r": value}])
    index.client.indices.refresh(index=index)
    (hit,) = index.client.search(index=index)["hits"]["hits"]
    assert hit["_routing"].startswith(text)


def test_rows_of_a_rollover_alias_stay_in_the_index_of_the_decision(index: Index) -> None:
    index.client.indices.create(index=f"{index}-000001", aliases={index: {"is_write_index": True}})
    with pytest.raises(OptionError, match=rf"an alias of {index}-000001 with is_write_index"):
        index.into(ROWS, key="id", createIndex="false")
    query = index.into(ROWS, createIndex="false")
    keep_log(query)
    manifest = decide(query, 0, [row(1), row(2)])
    apply_again(query, manifest)
    index.client.indices.rollover(alias=index)
    apply_again(query, manifest)
    query.restart()
    query.run(1, [row(3)])
    assert [one["id"] for one in rows(index.client, f"{index}-000001")] == [1, 2]
    assert [one["id"] for one in rows(index.client, f"{index}-000002")] == [3]
    with pytest.raises(OptionError, match=f"an alias of {index}-000001, {index}-000002"):
        index.into(ROWS, key="id", createIndex="false")


def test_alias_that_routes_is_refused_since_its_documents_would_be_there_twice(
    index: Index,
) -> None:
    index.client.indices.create(
        index=index,
        settings={"number_of_shards": 5},
        aliases={f"{index}-routed": {"routing": "zz"}},
    )
    with pytest.raises(OptionError, match="an alias that routes documents"):
        index.into(ROWS, key="id", index=f"{index}-routed", createIndex="false")


def test_index_is_made_from_columns_and_dates(index: Index) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("land", pa.string()), ("at", pa.timestamp("us", "UTC"))]
    )
    template = f"{index}-{{land}}-{{AT:yyyy.MM.dd}}"
    options = {"index": template, "createIndex": "false", "chunkRows": "3"}
    query, adding = index.into(schema, key="id", **options), index.into(schema, **options)
    days = [datetime(2024, 2, day, 23, 59, 59, 999999, timezone.utc) for day in (28, 29)]
    rows = [
        {"id": id_, "land": land, "at": day} for id_ in (1, 1, 2) for land in "ab" for day in days
    ]
    keep_log(query)
    late = decide(query, 0, rows)
    for _ in range(2):
        apply_again(query, late)
    adding.run(0, rows[:4])
    found = index.client.indices.get(index=f"{index}-*")
    ends = [f"{land}-2024.02.{day}" for land in "ab" for day in (28, 29)]
    assert sorted(found) == [f"{index}-{end}" for end in ends]
    assert [len(documents(index.client, name)) for name in sorted(found)] == [3] * 4
    for land, said in (
        ("A b", "'.*A b.*' is not a valid name"),
        (None, "column of the template is null"),
    ):
        with pytest.raises(BadRow, match=said):
            query.stage(1, [{**rows[0], "land": land}])


def test_delete_from_an_index_that_is_not_there_is_done(index: Index) -> None:
    schema = pa.schema([("id", pa.int64()), ("land", pa.string()), ("op", pa.string())])
    given = {"index": f"{index}-{{land}}", "createIndex": "false", "opColumn": "op"}
    query = index.into(schema, key="id", **given)
    query.run(0, [{"id": 1, "land": "gone", "op": "D"}, {"id": 1, "land": "there", "op": "I"}])
    assert documents(index.client, f"{index}-there") == {"1": {"id": 1, "land": "there"}}


def test_alias_that_is_moved_to_an_index_that_loses_rows_is_refused_at_the_next_epoch(
    index: Index,
) -> None:
    """Also soon after a check, which holds for a minute."""
    unsafe = {"number_of_replicas": 0, "translog": {"durability": "async"}}
    index.client.indices.create(index=f"{index}-1", aliases={index: {}})
    query = index.into(ROWS, key="id", createIndex="false")
    query.run(0, [row(1)])
    index.client.indices.create(index=f"{index}-2", settings=unsafe)
    moved = [
        {"remove": {"index": f"{index}-1", "alias": index}},
        {"add": {"index": f"{index}-2", "alias": index}},
    ]
    index.client.indices.update_aliases(actions=moved)
    with pytest.raises(StoreUnsafe, match=rf"{index}-2 has index.translog.durability=async"):
        query.run(1, [row(2)])
    safe = {"index.translog.durability": "request"}
    index.client.indices.put_settings(index=f"{index}-2", settings=safe)
    query.restart()
    query.run(1, [row(2)])
    assert [one["id"] for one in rows(index.client, f"{index}-2")] == [2]


@pytest.fixture
def two_names(index: Index) -> tuple[str, str]:
    """An index and an alias of it, which may move on to a second index."""
    index.client.indices.create(index=f"{index}-1", aliases={index: {}})
    index.client.indices.create(index=f"{index}-2")
    return index, f"{index}-1"


@pytest.mark.parametrize("moves", [False, True], ids=["stays", "moves"])
@pytest.mark.parametrize("first", [0, *slow_cases(1)])
def test_index_by_two_names_is_one_target_for_a_sink_id(
    index: Index, two_names: tuple[str, str], first: int, moves: bool
) -> None:
    """By the other name the same version of an application would be applied once more."""
    names = two_names[first], two_names[1 - first]
    given = {"createIndex": "false", "sinkId": index}
    index.into(ROWS, index=names[0], **given).run(0, [row(1)])
    if moves and not first:
        moved = [
            {"remove": {"index": f"{index}-1", "alias": index}},
            {"add": {"index": f"{index}-2", "alias": index}},
        ]
        index.client.indices.update_aliases(actions=moved)
    with pytest.raises(
        StoreRefused, match=rf"index='{names[1]}' points to {index}-1.*'{names[0]}'"
    ):
        index.into(ROWS, index=names[1], **given).run(0, [row(1)])
    with pytest.raises(StoreRefused, match="to which this sink id writes as"):
        index.into(ROWS, index=f"{index}-{{id}}", **given).run(0, [row(1)])
    index.into(ROWS, index=names[1], createIndex="false", sinkId=f"{index}-b").run(0, [row(2)])
    index.into(ROWS, index=f"{index}-2", **given).run(0, [row(3)])
    assert [one["id"] for one in rows(index.client, f"{index}-1")] == [1, 2]


@pytest.mark.parametrize("name", ["<orders-{now/d}>", "a,b", "other:orders", "orders-*", "Orders"])
def test_name_that_only_the_server_resolves_is_no_target(into_index: Make, name: str) -> None:
    with pytest.raises(OptionError, match="Option index"):
        into_index(ROWS, index=name, createIndex="false")


COUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
COUNTED = [{"id": id_, "n": 1} for id_ in range(3)]


LOST = {
    "index.translog.durability": "async",
    "index.default_pipeline": "no-such-pipeline",
    "index.final_pipeline": "no-such-pipeline",
}

SINK = {"properties": {"sink": {"type": "text"}}}


OTHERWISE = {
    "properties": {
        **{name: {"type": "date"} for name in ("payload", "body", "stamp", "token", "index")},
        **{name: {"type": "boolean"} for name in ("applied", "fence", "revision", "rows")},
        "letters": {"type": "keyword"},
    }
}


BROAD: dict[str, dict[str, Any]] = {
    "other fields": {"settings": LOST, "mappings": OTHERWISE},
    "logsdb": {"settings": {**LOST, "index.mode": "logsdb"}, "mappings": SINK},
    "no source": {"settings": LOST, "mappings": {**SINK, "_source": {"enabled": False}}},
}


@pytest.fixture
def template(index: Index) -> Callable[..., str]:
    """Make a template for all indices of this prefix, as one for `*` is for all; the prefix."""
    prefix = f"{index}-own"

    def make(**of: Any) -> str:
        try:
            index.client.indices.put_index_template(
                name=prefix, index_patterns=[f"{prefix}*"], template=of
            )
        except BadRequestError as error:
            pytest.skip(f"this release knows no such template: {error.message}")
        return prefix

    return make


@pytest.mark.parametrize("kind", ["logsdb", "other fields", *slow_cases("no source")])
def test_own_indices_are_what_they_must_be_whatever_a_template_says(
    index: Index, template: Callable[..., str], kind: str
) -> None:
    prefix = template(**BROAD[kind])
    bad = f"{prefix}-bad"
    options = {"indexPrefix": prefix, "onBadRow": "deadLetter", "deadLetter": bad}
    query = index.into(COUNTS, writeMode="increment", key="id", **options)
    index.client.index(index=index, id="2", document={"id": 2, "n": 2**63 - 1})
    query.run(0, COUNTED)
    decide(query, 1, COUNTED)
    query.restart()
    query.run(1, [])
    counts = {row["id"]: row["n"] for row in index.rows()}
    assert counts == {0: 2, 1: 2, 2: 2**63 - 1}
    letters = rows(index.client, bad)
    assert [(one["sink"], one["epoch"]) for one in letters] == [(query.name, 0), (query.name, 1)]
    assert [int(json.loads(one["row"])["id"]) for one in letters] == [2, 2]


def test_own_index_that_keeps_less_than_is_written_is_refused_by_name(
    into_index: Make, template: Callable[..., str]
) -> None:
    """What a template leaves out of documents no later mapping brings back."""
    prefix = template(mappings={"_source": {"excludes": ["body"]}})
    words = f"{prefix}-ledger, the connector's own, keeps a part of each _source"
    with pytest.raises(StoreUnsafe, match=words):
        into_index(COUNTS, indexPrefix=prefix)


def test_own_index_that_a_lifecycle_may_delete_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str]
) -> None:
    prefix = template(settings={"index.lifecycle.name": "some"})
    with pytest.raises(StoreUnsafe, match=f"{prefix}-ledger, .* has index.lifecycle.name=some"):
        into_index(COUNTS, indexPrefix=prefix)
    elastic.ilm.remove_policy(index=f"{prefix}-ledger,{prefix}-log")
    into_index(COUNTS, indexPrefix=prefix)


def test_own_index_that_asks_for_a_routing_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str]
) -> None:
    prefix = template(mappings={"_routing": {"required": True}})
    with pytest.raises(StoreRefused, match=r"_routing.required.*let no template .* match it"):
        into_index(COUNTS, indexPrefix=prefix)
    template()
    elastic.indices.create(index=f"{prefix}-log", mappings={"_routing": {"required": True}})
    with pytest.raises(StoreUnsafe, match=f"{prefix}-log, .* requires a routing"):
        into_index(COUNTS, indexPrefix=prefix)


def test_own_index_with_a_pipeline_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str]
) -> None:
    prefix = template()
    elastic.indices.create(index=f"{prefix}-ledger", settings={"index.final_pipeline": "some"})
    with pytest.raises(StoreUnsafe, match=f"{prefix}-ledger, .* has index.final_pipeline=some"):
        into_index(COUNTS, indexPrefix=prefix)


@pytest.mark.parametrize("mode", ["append", *slow_cases("upsert", "increment")])
def test_index_without_sequence_numbers_is_refused_by_name(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str], mode: str
) -> None:
    """They are off by default in the time series and columnar modes of newer releases."""
    prefix = template(settings={"index.disable_sequence_numbers": True})
    key = {} if mode == "append" else {"key": "id"}
    with pytest.raises(StoreUnsafe, match=r"has index\.disable_sequence_numbers=true"):
        into_index(COUNTS, index=f"{prefix}-target", writeMode=mode, **key)
    assert not elastic.indices.exists(index=f"{prefix}-target")


@pytest.mark.parametrize(
    "settings",
    [{"index.mode": "logsdb"}, *slow_cases({"index.mapping.source.mode": "synthetic"})],
    ids=["logsdb", "synthetic"],
)
def test_index_that_rebuilds_its_documents_takes_appends_and_no_updates(
    into_index: Make, elastic: Elasticsearch, template: Callable[..., str], settings: dict[str, Any]
) -> None:
    target = f"{template(settings=settings)}-target"
    with pytest.raises(StoreUnsafe, match=r"keeps no _source: .*rebuilt"):
        into_index(COUNTS, index=target, writeMode="increment", key="id")
    appended = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), *COUNTS])
    query = into_index(appended, index=target)
    query.run(0, [{"@timestamp": 0, **row} for row in COUNTED])
    assert len(rows(elastic, target)) == 3
