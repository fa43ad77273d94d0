"""What rows become in Elasticsearch, in each write mode, whatever is sent again or late."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import ROWS, documents, row, rows
from integration.support.elasticsearch_decisions import apply_again, decide, keep_log
from integration.support.epochs import ElasticsearchQuery

from sparkonce.errors import BadRow, RowRefused, StagedDataMissing, StoreLostData

pytestmark = pytest.mark.variants

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])
CHANGES = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
Make = Callable[..., ElasticsearchQuery]


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
    same = {"key": "id", "sinkId": "orders", "checkpointLocation": "/checkpoints/orders"}
    old = into_index(ROWS, **same)
    for epoch in range(3):
        old.run(epoch, [row(1, f"old {epoch}")])
    new = into_index(ROWS, **same)
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
    query = into_index(COUNTER, key="id", writeMode="increment", chunkRows="9")
    keep_log(query)
    big = 2**62
    first = [{"id": 1, "n": big, "x": 0.25}, {"id": 2, "n": 1, "x": None}] * 2
    with pytest.raises(BadRow, match="leaves the range of a long"):
        query.stage(0, [{"id": 1, "n": big, "x": 0.0}] * 2)
    query.stage(0, [{"id": id_, "n": big, "x": 0.0} for id_ in range(9)])  # each fits by itself
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
