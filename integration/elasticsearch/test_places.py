"""Where a row goes: ids from keys, routing, pipelines, aliases, indices of a template."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import ROWS, documents, has_script_processor, row, rows
from integration.support.elasticsearch_decisions import apply_again, decide, keep_log
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases, slow_rows

from sparkonce.errors import BadRow, OptionError, StoreRefused, StoreUnreachable, StoreUnsafe

pytestmark = pytest.mark.variants

Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def several(elastic: Elasticsearch, index: str) -> Iterator[None]:
    """Delete all indices whose names begin with the test's."""
    yield
    elastic.indices.delete(index=list(elastic.indices.get(index=f"{index}-*")))


def test_index_that_is_made_and_turns_out_not_to_be_fit_is_taken_back(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    unsafe = {"settings": {"translog.durability": "async"}}
    elastic.indices.put_index_template(name=index, index_patterns=[index], template=unsafe)
    try:
        with pytest.raises(StoreUnsafe, match="durability=async"):
            into_index(ROWS)
        assert not elastic.indices.exists(index=index)
    finally:
        elastic.indices.delete_index_template(name=index)
    into_index(ROWS)


def test_index_that_is_not_fit_is_kept_with_the_document_that_it_got_meanwhile(
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def written_meanwhile(*_: object) -> None:
        elastic.index(index=index, id="1", document={"id": 1})
        raise StoreUnsafe("not fit")

    monkeypatch.setattr("pyspark_elasticsearch.write.fitness.require_safe", written_meanwhile)
    monkeypatch.setattr(
        "pyspark_elasticsearch.write.preflight.require_safe_indices", lambda *_: None
    )
    with pytest.raises(StoreUnsafe):
        into_index(ROWS)
    elastic.index(index=index, id="2", document={"id": 2})  # it takes writes as before
    assert len(documents(elastic, index)) == 2


def test_reason_for_which_a_new_index_is_not_fit_is_told_whatever_keeps_it_from_being_taken_back(
    into_index: Make, elastic: Elasticsearch, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsafe = {"settings": {"translog.durability": "async"}}
    elastic.indices.put_index_template(name=index, index_patterns=[index], template=unsafe)

    def down(*_: object) -> None:
        raise StoreUnreachable("no answer")

    monkeypatch.setattr("pyspark_elasticsearch.write.preflight._take_back", down)
    try:
        with pytest.raises(StoreUnsafe, match="durability=async"):
            into_index(ROWS)
    finally:
        elastic.indices.delete_index_template(name=index)


def test_composite_keys_are_joined_unambiguously(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("n", pa.int32())])
    query = into_index(schema, key="a,b")
    pairs = [
        ("x:y", "z"),
        ("x", "y:z"),
        ("x%3Ay", "z"),
        ('"\\\n', "ä\N{PARTY POPPER}"),
        ("/?#", ""),
    ]
    query.run(0, [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate(pairs)])
    query.run(1, [{"a": a, "b": b, "n": n} for n, (a, b) in enumerate(pairs)])
    found = documents(elastic, index)
    assert len(found) == 5
    assert '"\\\n:ä\N{PARTY POPPER}' in found


def test_key_that_is_null_or_too_long_is_refused(into_index: Make) -> None:
    query = into_index(ROWS, key="name")
    with pytest.raises(BadRow, match="'name' is null in a row"):
        query.stage(0, [row(1, None)])
    with pytest.raises(BadRow, match="has 513 bytes"):
        query.stage(0, [row(1, "x" * 513)])


def test_routing_and_pipeline(into_index: Make, elastic: Elasticsearch, index: str) -> None:
    if not has_script_processor(elastic):
        pytest.skip("this server has no script processor")
    words = [{"script": {"source": "ctx.name = ctx.name.toUpperCase()"}}]
    elastic.ingest.put_pipeline(id=index, processors=words)
    elastic.indices.create(index=index, settings={"number_of_shards": 3})
    query = into_index(ROWS, key="id", routing="name", pipeline=index)
    query.run(0, [row(i, f"r{i % 2}") for i in range(9)])
    elastic.indices.refresh(index=index)
    hits = elastic.search(index=index, size=20)["hits"]["hits"]
    assert {hit["_routing"] for hit in hits} == {"r0", "r1"}
    assert {hit["_source"]["name"] for hit in hits} == {"R0", "R1"}
    assert len(hits) == 9
    elastic.ingest.delete_pipeline(id=index)
    with pytest.raises(OptionError, match="there is no ingest pipeline"):
        into_index(ROWS, key="id", pipeline=index, sinkId="other")


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
    into_index: Make, elastic: Elasticsearch, index: str, kind: pa.DataType, value: Any, text: str
) -> None:
    query = into_index(pa.schema([("id", pa.int64()), ("r", kind)]), key="id", routing="r")
    query.run(0, [{"id": 1, "r": value}])
    elastic.indices.refresh(index=index)
    (hit,) = elastic.search(index=index)["hits"]["hits"]
    assert hit["_routing"].startswith(text)


@pytest.mark.usefixtures("several")
def test_rows_of_a_rollover_alias_stay_in_the_index_of_the_decision(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(index=f"{index}-000001", aliases={index: {"is_write_index": True}})
    with pytest.raises(OptionError, match=rf"an alias of {index}-000001 with is_write_index"):
        into_index(ROWS, key="id", createIndex="false")
    query = into_index(ROWS, createIndex="false")
    keep_log(query)
    manifest = decide(query, 0, [row(1), row(2)])
    apply_again(query, manifest)
    elastic.indices.rollover(alias=index)
    apply_again(query, manifest)
    query.restart()
    query.run(1, [row(3)])
    assert [one["id"] for one in rows(elastic, f"{index}-000001")] == [1, 2]
    assert [one["id"] for one in rows(elastic, f"{index}-000002")] == [3]
    with pytest.raises(OptionError, match=f"an alias of {index}-000001, {index}-000002"):
        into_index(ROWS, key="id", createIndex="false")


def test_alias_that_routes_is_refused_since_its_documents_would_be_there_twice(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(
        index=index,
        settings={"number_of_shards": 5},
        aliases={f"{index}-routed": {"routing": "zz"}},
    )
    with pytest.raises(OptionError, match="an alias that routes documents"):
        into_index(ROWS, key="id", index=f"{index}-routed", createIndex="false")


@pytest.mark.usefixtures("several")
def test_index_is_made_from_columns_and_dates(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("land", pa.string()), ("at", pa.timestamp("us", "UTC"))]
    )
    template = f"{index}-{{land}}-{{AT:yyyy.MM.dd}}"
    options = {"index": template, "createIndex": "false", "chunkRows": "3"}
    query, adding = into_index(schema, key="id", **options), into_index(schema, **options)
    days = [datetime(2024, 2, day, 23, 59, 59, 999999, timezone.utc) for day in (28, 29)]
    rows = [
        {"id": id_, "land": land, "at": day} for id_ in (1, 1, 2) for land in "ab" for day in days
    ]
    keep_log(query)
    late = decide(query, 0, rows)
    for _ in range(2):
        apply_again(query, late)
    adding.run(0, rows[:4])
    found = elastic.indices.get(index=f"{index}-*")
    ends = [f"{land}-2024.02.{day}" for land in "ab" for day in (28, 29)]
    assert sorted(found) == [f"{index}-{end}" for end in ends]
    assert [len(documents(elastic, name)) for name in sorted(found)] == [3] * 4
    for land, said in (("A b", "'.*A b.*' is no name"), (None, "a column of it is null")):
        with pytest.raises(BadRow, match=said):
            query.stage(1, [{**rows[0], "land": land}])


@pytest.mark.usefixtures("several")
def test_delete_from_an_index_that_is_not_there_is_done(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("land", pa.string()), ("op", pa.string())])
    given = {"index": f"{index}-{{land}}", "createIndex": "false", "opColumn": "op"}
    query = into_index(schema, key="id", **given)
    query.run(0, [{"id": 1, "land": "gone", "op": "D"}, {"id": 1, "land": "there", "op": "I"}])
    assert documents(elastic, f"{index}-there") == {"1": {"id": 1, "land": "there"}}


def test_alias_that_is_moved_to_an_index_that_loses_rows_is_refused_at_the_next_epoch(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    """Also soon after a check, which holds for a minute."""
    unsafe = {"number_of_replicas": 0, "translog": {"durability": "async"}}
    elastic.indices.create(index=f"{index}-1", aliases={index: {}})
    try:
        query = into_index(ROWS, key="id", createIndex="false")
        query.run(0, [row(1)])
        elastic.indices.create(index=f"{index}-2", settings=unsafe)
        moved = [
            {"remove": {"index": f"{index}-1", "alias": index}},
            {"add": {"index": f"{index}-2", "alias": index}},
        ]
        elastic.indices.update_aliases(actions=moved)
        with pytest.raises(StoreUnsafe, match=rf"{index}-2 has index.translog.durability=async"):
            query.run(1, [row(2)])
        safe = {"index.translog.durability": "request"}
        elastic.indices.put_settings(index=f"{index}-2", settings=safe)
        query.restart()
        query.run(1, [row(2)])
        assert [one["id"] for one in rows(elastic, f"{index}-2")] == [2]
    finally:
        elastic.indices.delete(index=f"{index}-1,{index}-2", ignore_unavailable=True)


@pytest.fixture
def two_names(elastic: Elasticsearch, index: str) -> Iterator[tuple[str, str]]:
    """An index and an alias of it, which may move on to a second index."""
    elastic.indices.create(index=f"{index}-1", aliases={index: {}})
    elastic.indices.create(index=f"{index}-2")
    yield index, f"{index}-1"
    elastic.indices.delete(index=f"{index}-1,{index}-2")


@pytest.mark.parametrize("moves", [False, True], ids=["stays", "moves"])
@pytest.mark.parametrize("first", [0, *slow_cases(1)])
def test_index_by_two_names_is_one_target_for_a_sink_id(
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    two_names: tuple[str, str],
    first: int,
    moves: bool,
) -> None:
    """By the other name the same version of an application would be applied once more."""
    names = two_names[first], two_names[1 - first]
    given = {"createIndex": "false", "sinkId": index}
    into_index(ROWS, index=names[0], **given).run(0, [row(1)])
    if moves and not first:
        moved = [
            {"remove": {"index": f"{index}-1", "alias": index}},
            {"add": {"index": f"{index}-2", "alias": index}},
        ]
        elastic.indices.update_aliases(actions=moved)
    with pytest.raises(StoreRefused, match=rf"index='{names[1]}' leads to {index}-1.*'{names[0]}'"):
        into_index(ROWS, index=names[1], **given).run(0, [row(1)])
    with pytest.raises(StoreRefused, match="into which this sink id writes as"):
        into_index(ROWS, index=f"{index}-{{id}}", **given).run(0, [row(1)])
    into_index(ROWS, index=names[1], createIndex="false", sinkId=f"{index}-b").run(0, [row(2)])
    into_index(ROWS, index=f"{index}-2", **given).run(0, [row(3)])
    assert [one["id"] for one in rows(elastic, f"{index}-1")] == [1, 2]


@pytest.mark.parametrize("name", ["<orders-{now/d}>", "a,b", "other:orders", "orders-*", "Orders"])
def test_name_that_only_the_server_resolves_is_no_target(into_index: Make, name: str) -> None:
    with pytest.raises(OptionError, match="Option index"):
        into_index(ROWS, index=name, createIndex="false")
