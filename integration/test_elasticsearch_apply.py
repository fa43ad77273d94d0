"""What rows become in Elasticsearch, in each write mode, whatever is sent again or late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.documents import documents, has_script_processor, rows
from integration.epochs import ElasticsearchQuery, apply_again, decide, keep_log

from sparkonce.errors import (
    BadRow,
    OptionError,
    RowRefused,
    StagedDataMissing,
    StoreLostData,
)

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])
CHANGES = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
ORDERED = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("op", pa.string())])
VERSIONED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())])
Make = Callable[..., ElasticsearchQuery]


def row(id_: int | None, name: str | None = "a", x: float | None = 1.5) -> dict[str, Any]:
    return {"id": id_, "name": name, "x": x}


def test_append_adds_each_row_once(into_index: Make, elastic: Elasticsearch, index: str) -> None:
    query = into_index(ROWS)
    query.run(0, [row(1), row(1)], [row(2, None, None)])
    query.run(0, [row(7)])
    assert rows(elastic, index) == [row(1), row(1), row(2, None, None)]


def test_append_that_is_sent_again_adds_nothing(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, chunkRows="2")
    keep_log(query)
    manifest = decide(query, 0, [row(i) for i in range(7)], [row(9)])
    for _ in range(2):
        apply_again(query, manifest)
    query.restart()
    query.run(1, [row(10)])
    apply_again(query, manifest)
    assert sorted(one["id"] for one in rows(elastic, index)) == [*range(7), 9, 10]


def test_upsert_writes_whole_documents_and_the_last_row_of_a_key_wins(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, key="id", chunkRows="2")
    first = [row(1, "first"), row(1, "second"), row(2), row(3), row(1, "third")]
    query.run(0, first, [row(1, "last", None)])
    query.run(1, [row(2, "again", -0.25)])
    assert documents(elastic, index) == {
        "1": row(1, "last", None),
        "2": row(2, "again", -0.25),
        "3": row(3),
    }


def test_late_driver_overwrites_nothing(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, key="id")
    keep_log(query)
    late = decide(query, 0, [row(1, "old"), row(2, "old")])
    query.restart()
    query.run(1, [row(1, "new")])
    before = documents(elastic, index)
    assert before == {"1": row(1, "new"), "2": row(2, "old")}
    apply_again(query, late)
    assert documents(elastic, index) == before


def test_two_queries_that_write_the_same_ids_both_get_through(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    first, second = into_index(ROWS, key="id"), into_index(ROWS, key="id", sinkId="second")
    for epoch in range(3):
        first.run(epoch, [row(1, f"first {epoch}"), row(2, "first")])
        second.run(epoch, [row(1, f"second {epoch}")])
    assert documents(elastic, index) == {"1": row(1, "second 2"), "2": row(2, "first")}


def test_epoch_that_was_decided_before_another_querys_does_not_wedge(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    slow, fast = into_index(ROWS, key="id"), into_index(ROWS, key="id", sinkId="fast")
    decide(slow, 0, [row(1, "slow"), row(2, "slow")])
    fast.run(0, [row(1, "fast")])
    slow.restart()
    slow.run(0, [])
    assert documents(elastic, index) == {"1": row(1, "fast"), "2": row(2, "slow")}


def test_new_generation_writes_over_the_old_ones_documents(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    old = into_index(ROWS, key="id", sinkId="orders")
    for epoch in range(3):
        old.run(epoch, [row(1, f"old {epoch}")])
    new = into_index(ROWS, key="id", sinkId="orders")
    new.run(0, [row(1, "new")])
    assert documents(elastic, index) == {"1": row(1, "new")}


def test_update_leaves_the_other_fields(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    into_index(ROWS, key="id").run(0, [row(1, "a", 1.0), row(2, "b", 2.0)])
    query = into_index(
        pa.schema([("id", pa.int64()), ("name", pa.string())]), key="id", writeMode="update"
    )
    query.run(0, [{"id": 1, "name": "new"}, {"id": 3, "name": None}])
    assert documents(elastic, index) == {
        "1": row(1, "new", 1.0),
        "2": row(2, "b", 2.0),
        "3": {"id": 3, "name": None},
    }


@pytest.mark.parametrize("chunk", ["1", "9"])
def test_update_keeps_what_is_stored_where_told(
    into_index: Make, elastic: Elasticsearch, index: str, chunk: str
) -> None:
    query = into_index(ROWS, key="id", writeMode="update", nulls="keep", chunkRows=chunk)
    query.run(0, [row(1, "a", 1.0), row(1, None, 2.0), row(1, "b", None)])
    assert documents(elastic, index) == {"1": row(1, "b", 2.0)}
    query.restart(nulls="write")
    query.run(1, [row(1, None, 3.0)])
    assert documents(elastic, index) == {"1": row(1, None, 3.0)}


def test_late_update_changes_nothing(into_index: Make, elastic: Elasticsearch, index: str) -> None:
    query = into_index(ROWS, key="id", writeMode="update")
    keep_log(query)
    late = decide(query, 0, [row(1, "old")])
    query.restart()
    query.run(1, [row(1, "new")])
    apply_again(query, late)
    assert documents(elastic, index) == {"1": row(1, "new")}


def test_increment_adds_exactly_once_whatever_is_sent_again(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(COUNTER, key="id", writeMode="increment", chunkRows="2")
    keep_log(query)
    big = 2**62
    first = [{"id": 1, "n": big, "x": 0.25}, {"id": 2, "n": 1, "x": None}] * 2
    with pytest.raises(BadRow, match="leaves the range of a long"):
        query.stage(0, [{"id": 1, "n": big, "x": 0.0}] * 2)
    first[2] = {"id": 1, "n": big - 1, "x": 0.5}
    late = decide(query, 0, first, [{"id": 2, "n": 5, "x": 0.5}])
    for _ in range(2):
        apply_again(query, late)
    query.restart()
    query.run(1, [{"id": 2, "n": None, "x": 1.0}, {"id": 3, "n": 2**31 - 1, "x": 1e300}])
    query.run(2, [{"id": 3, "n": 1, "x": 1.0}])
    apply_again(query, late)
    assert documents(elastic, index) == {
        "1": {"id": 1, "n": 2 * big - 1, "x": 0.75},
        "2": {"id": 2, "n": 7, "x": 1.5},
        "3": {"id": 3, "n": 2**31, "x": 1e300},
    }


def test_sum_beyond_all_doubles_is_refused_not_stored_as_a_word(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(index=index, mappings={"dynamic": False})
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    query = into_index(schema, key="id", writeMode="increment", createIndex="false")
    query.run(0, [{"id": 1, "x": 1e308}])
    with pytest.raises(RowRefused, match="leaves the range of a double"):
        query.run(1, [{"id": 1, "x": 1e308}])
    assert documents(elastic, index) == {"1": {"id": 1, "x": 1e308}}


def test_increments_of_two_queries_and_of_a_generation_add_up(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    one = {"id": 1, "n": 1, "x": None}
    options = {"key": "id", "writeMode": "increment"}
    first, second = into_index(COUNTER, **options), into_index(COUNTER, sinkId="s", **options)
    for epoch in range(3):
        first.run(epoch, [one], [one])
        second.run(epoch, [one])
    again = f"continue:{second.query_id}"
    into_index(COUNTER, sinkId="s", onNewCheckpoint=again, **options).run(0, [one])
    assert documents(elastic, index)["1"]["n"] == 10


def test_delete_removes_the_documents_with_these_keys(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    into_index(ROWS, key="id").run(0, [row(1), row(2), row(3)])
    query = into_index(ROWS, key="id", writeMode="delete", createIndex="false")
    query.run(0, [row(1), row(1), row(9)], [row(3)])
    assert list(documents(elastic, index)) == ["2"]
    settings = elastic.indices.get_settings(index=index, flat_settings=True)[index]["settings"]
    assert settings["index.gc_deletes"] == "3600s"


def test_change_stream_inserts_updates_and_deletes(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(CHANGES, key="id", opColumn="op", chunkRows="3")
    changes = [(1, "a", "I"), (2, "b", "c"), (1, "a2", "update_postimage"), (2, "b", "d")]
    changes += [(3, "c", "r"), (1, "old", "update_preimage"), (3, "c", "DELETE"), (3, "c2", "u")]
    query.run(0, [{"id": i, "name": name, "op": op} for i, name, op in changes])
    assert documents(elastic, index) == {"1": {"id": 1, "name": "a2"}, "3": {"id": 3, "name": "c2"}}
    with pytest.raises(BadRow, match="'x', which is no operation"):
        query.stage(1, [{"id": 1, "name": "a", "op": "x"}])


def test_late_delete_does_not_remove_what_came_later(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(CHANGES, key="id", opColumn="op")
    keep_log(query)
    late = decide(query, 0, [{"id": 1, "name": "a", "op": "d"}])
    query.restart()
    query.run(1, [{"id": 1, "name": "b", "op": "i"}])
    apply_again(query, late)
    assert documents(elastic, index) == {"1": {"id": 1, "name": "b"}}


def test_late_write_does_not_bring_back_what_was_deleted(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(CHANGES, key="id", opColumn="op")
    keep_log(query)
    late = decide(query, 0, [{"id": 1, "name": "a", "op": "i"}])
    query.restart()
    query.run(1, [{"id": 1, "name": "a", "op": "d"}])
    apply_again(query, late)
    assert documents(elastic, index) == {}


@pytest.mark.parametrize("chunk_rows", ["1", "2", "100"])
def test_highest_sequence_of_an_epoch_wins_wherever_it_is_deletes_included(
    into_index: Make, elastic: Elasticsearch, index: str, chunk_rows: str
) -> None:
    query = into_index(ORDERED, key="id", sequenceColumn="at", opColumn="op", chunkRows=chunk_rows)

    def rows(*changes: tuple[int, int, str]) -> list[dict[str, Any]]:
        return [{"id": id_, "at": at, "op": op} for id_, at, op in changes]

    query.run(0, rows((1, 5, "i"), (2, 9, "d"), (3, 3, "i"), (1, 4, "d")), rows((2, 8, "i")))
    query.run(1, rows((4, 1, "i"), (3, 2, "u"), (4, 1, "u")), rows((3, 2, "d"), (5, -1, "i")))
    found = documents(elastic, index)
    assert found == {
        name: {"id": int(name), "at": at} for name, at in {"1": 5, "4": 1, "5": -1}.items()
    }
    with pytest.raises(BadRow, match="sequenceColumn, is null"):
        query.stage(2, [{"id": 1, "at": None, "op": "i"}])


def test_row_that_loses_by_its_sequence_loses_in_a_roll_forward_too(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ORDERED, key="id", sequenceColumn="at", chunkRows="1")
    keep_log(query)
    late = decide(query, 0, [{"id": 1, "at": at, "op": str(at)} for at in (3, 9, 5)])
    for _ in range(2):
        apply_again(query, late)
        assert documents(elastic, index)["1"]["at"] == 9
    query.restart()
    query.run(1, [{"id": 1, "at": 4, "op": "later epoch"}])
    apply_again(query, late)
    assert documents(elastic, index)["1"]["at"] == 4


@pytest.mark.parametrize("chunk_rows", ["1", "100"])
def test_version_column_orders_rows_of_all_epochs(
    into_index: Make, elastic: Elasticsearch, index: str, chunk_rows: str
) -> None:
    query = into_index(VERSIONED, key="id", versionColumn="v", chunkRows=chunk_rows)
    query.run(0, [{"id": 1, "name": "new", "v": 7}, {"id": 1, "name": "old", "v": 3}])
    query.run(1, [{"id": 1, "name": "older", "v": 5}, {"id": 2, "name": "b", "v": 0}])
    found = documents(elastic, index)
    assert {name: one["name"] for name, one in found.items()} == {"1": "new", "2": "b"}
    with pytest.raises(BadRow, match="versionColumn, is null or negative"):
        query.stage(2, [{"id": 1, "name": "a", "v": -1}])


def test_document_with_a_foreign_version_fails_or_is_left_alone_and_counted(
    into_index: Make, elastic: Elasticsearch, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = into_index(ROWS, key="id")
    elastic.index(
        index=index, id="1", document=row(1, "foreign"), version=2**62, version_type="external"
    )
    with pytest.raises(Exception, match="versions of its own"):
        query.run(0, [row(1), row(2)])
    query.restart(onConflict="ignore")
    query.run(0, [row(1), row(2)])
    assert documents(elastic, index) == {"1": row(1, "foreign"), "2": row(2)}
    assert "left 1 documents with versions of others alone" in caplog.text


def test_without_versions_others_may_have_their_own(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, key="id", versioning="none", chunkRows="1")
    query.run(0, [row(1, "a"), row(1, "b"), row(1, "c")])
    elastic.index(index=index, id="1", document=row(1, "x"), version=2**62, version_type="external")
    query.run(1, [row(1, "d")])
    assert documents(elastic, index) == {"1": row(1, "d")}


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
    query = into_index(ROWS, key="id", routing="name", pipeline=index, shards="3")
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
        (pa.date32(), date(2024, 2, 29), "2024-02-29"),
        (pa.decimal128(5, 2), Decimal("1.50"), "1.50"),
        (pa.timestamp("us", "UTC"), datetime(2024, 2, 29, tzinfo=timezone.utc), "2024-02-29T"),
        (pa.int64(), 7, "7"),
        (pa.bool_(), True, "true"),
        (pa.string(), 'a "b"\n\x01', 'a "b"\n\x01'),
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


def test_rows_of_a_rollover_alias_stay_in_the_index_of_the_decision(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(index=f"{index}-000001", aliases={index: {"is_write_index": True}})
    try:
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
        with pytest.raises(OptionError, match="that rolls over"):
            into_index(ROWS, key="id", createIndex="false")
    finally:
        elastic.indices.delete(index=list(elastic.indices.get(index=f"{index}-*")))


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
    try:
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
    finally:
        elastic.indices.delete(index=list(elastic.indices.get(index=f"{index}-*")))


@pytest.mark.parametrize("dynamic", ["strict", "true"])
def test_indices_of_a_template_take_updates_and_increments(
    into_index: Make, elastic: Elasticsearch, index: str, dynamic: str
) -> None:
    at = datetime(2024, 2, 29, tzinfo=timezone.utc)
    schema = pa.schema(
        [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("land", pa.string())]
    )
    added = pa.schema([*schema, ("n", pa.int64())])
    fields = {name: {"type": "keyword"} for name in ("land", "at")}
    fields |= {name: {"type": "long"} for name in ("id", "n")}
    elastic.indices.put_index_template(
        name=index,
        index_patterns=[f"{index}-*"],
        template={"mappings": {"dynamic": dynamic, "properties": fields}},
    )
    options = {"index": f"{index}-{{land}}-{{at:yyyy.MM}}", "key": "id", "createIndex": "false"}
    adding = into_index(added, writeMode="increment", chunkRows="3", **options)
    updating = into_index(schema, writeMode="update", **options)
    keep_log(adding)
    try:
        ones = [{"id": 1, "at": at, "land": land, "n": 1} for land in "abab"]
        late = decide(adding, 0, ones, ones[:1])
        for _ in range(2):
            apply_again(adding, late)
        updating.run(0, [{"id": id_, "at": at, "land": "a"} for id_ in (1, 2)])
        apply_again(adding, late)
        found = {name: documents(elastic, f"{index}-{name}-2024.02") for name in "ab"}
        assert {name: one.get("n") for name, one in found["a"].items()} == {"1": 3, "2": None}
        assert {name: one["n"] for name, one in found["b"].items()} == {"1": 2}
        assert found["b"]["1"]["land"] == "b"
        mappings = elastic.indices.get_mapping(index=f"{index}-a-2024.02").body
        guard = mappings[f"{index}-a-2024.02"]["mappings"]["properties"]["sparkonce"]
        assert guard == {"type": "object", "enabled": False}
    finally:
        elastic.indices.delete(index=list(elastic.indices.get(index=f"{index}-*")))
        elastic.indices.delete_index_template(name=index)


def test_chunk_that_is_gone_before_the_decision_fails_the_batch(into_index: Make) -> None:
    query = into_index(ROWS)
    receipts = query.stage(0, [row(1)])
    query.sink.store.discard(query.name, [receipts[0].task.attempt])
    with pytest.raises(StagedDataMissing):
        query.commit(0, receipts)


def test_chunk_that_is_gone_after_the_decision_is_lost_data(into_index: Make) -> None:
    query = into_index(ROWS)
    manifest = decide(query, 0, [row(1)])
    query.sink.store.discard(query.name, sorted(manifest.attempts))
    query.restart()
    with pytest.raises(StoreLostData, match="accept-loss"):
        query.run(0, [row(1)])
