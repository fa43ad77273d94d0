"""What rows become in Elasticsearch, in each write mode, whatever is sent again or late."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from integration.support.elasticsearch import (
    ROWS,
    Index,
    apply_again,
    decide,
    documents,
    keep_log,
    row,
)
from integration.support.epochs import COUNTER, ElasticsearchQuery, cut_each
from integration.support.histories import drawn
from integration.support.marks import slow_cases
from integration.support.proxy import Proxy

from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.write import emptying
from sparkonce.errors import BadRow, RowRefused

pytestmark = pytest.mark.variants
SUMS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])
CHANGES = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
Make = Callable[..., ElasticsearchQuery]


def test_append_adds_each_row_once(index: Index) -> None:
    query = index.into(ROWS)
    query.run(0, [row(1), row(1)], [row(2, None, None)])
    query.run(0, [row(7)])
    assert index.rows() == [row(1), row(1), row(2, None, None)]


def test_append_that_is_sent_again_adds_nothing(index: Index) -> None:
    query = index.into(ROWS, chunkRows="2")
    keep_log(query)
    manifest = decide(query, 0, [row(i) for i in range(7)], [row(9)])
    for _ in range(2):
        apply_again(query, manifest)
    query.restart()
    query.run(1, [row(10)])
    apply_again(query, manifest)
    assert sorted(one["id"] for one in index.rows()) == [*range(7), 9, 10]


def test_upsert_writes_whole_documents_and_the_last_row_of_a_key_wins(index: Index) -> None:
    query = index.into(ROWS, key="id", chunkRows="2")
    first = [row(1, "first"), row(1, "second"), row(2), row(3), row(1, "third")]
    query.run(0, first, [row(1, "last", None)])
    query.run(1, [row(2, "again", -0.25)])
    assert index.documents() == {
        "1": row(1, "last", None),
        "2": row(2, "again", -0.25),
        "3": row(3),
    }


OP = {"opColumn": "op"}


def change(op: str, name: str = "a") -> dict[str, Any]:
    return {"id": 1, "name": name, "op": op}


@pytest.mark.parametrize(
    ("options", "old", "new", "kept"),
    [
        ({}, [row(1, "old"), row(2, "old")], row(1, "new"), [row(1, "new"), row(2, "old")]),
        ({"writeMode": "update"}, [row(1, "old")], row(1, "new"), [row(1, "new")]),
        (OP, [change("d")], change("i", "b"), [{"id": 1, "name": "b"}]),
        (OP, [change("i")], change("d"), []),
    ],
    ids=["upsert", "update", "delete", "write of what was deleted"],
)
def test_late_driver_changes_nothing(
    index: Index, options: dict[str, str], old: list[Any], new: Any, kept: list[Any]
) -> None:
    query = index.into(CHANGES if options is OP else ROWS, key="id", **options)
    keep_log(query)
    late = decide(query, 0, old)
    query.restart()
    query.run(1, [new])
    apply_again(query, late)
    assert index.documents() == {str(one["id"]): one for one in kept}


def test_two_queries_that_write_the_same_ids_both_get_through(index: Index) -> None:
    first, second = index.into(ROWS, key="id"), index.into(ROWS, key="id", sinkId="second")
    for epoch in range(3):
        first.run(epoch, [row(1, f"first {epoch}"), row(2, "first")])
        second.run(epoch, [row(1, f"second {epoch}")])
    assert index.documents() == {"1": row(1, "second 2"), "2": row(2, "first")}


def test_epoch_that_was_decided_before_another_querys_does_not_wedge(index: Index) -> None:
    slow, fast = index.into(ROWS, key="id"), index.into(ROWS, key="id", sinkId="fast")
    decide(slow, 0, [row(1, "slow"), row(2, "slow")])
    fast.run(0, [row(1, "fast")])
    slow.restart()
    slow.run(0, [])
    assert index.documents() == {"1": row(1, "fast"), "2": row(2, "slow")}


def test_new_generation_writes_over_the_old_ones_documents(index: Index) -> None:
    same = {"key": "id", "sinkId": "orders", "checkpointLocation": "/checkpoints/orders"}
    old = index.into(ROWS, **same)
    for epoch in range(3):
        old.run(epoch, [row(1, f"old {epoch}")])
    new = index.into(ROWS, **same)
    new.run(0, [row(1, "new")])
    assert index.documents() == {"1": row(1, "new")}


def test_update_leaves_the_other_fields(index: Index) -> None:
    index.into(ROWS, key="id").run(0, [row(1, "a", 1.0), row(2, "b", 2.0)])
    query = index.into(
        pa.schema([("id", pa.int64()), ("name", pa.string())]), key="id", writeMode="update"
    )
    query.run(0, [{"id": 1, "name": "new"}, {"id": 3, "name": None}])
    assert index.documents() == {
        "1": row(1, "new", 1.0),
        "2": row(2, "b", 2.0),
        "3": {"id": 3, "name": None},
    }


@pytest.mark.parametrize("chunk", ["1", "9"])
def test_update_keeps_what_is_stored_where_told(index: Index, chunk: str) -> None:
    query = index.into(ROWS, key="id", writeMode="update", nulls="keep", chunkRows=chunk)
    query.run(0, [row(1, "a", 1.0), row(1, None, 2.0), row(1, "b", None)])
    assert index.documents() == {"1": row(1, "b", 2.0)}
    query.restart(nulls="write")
    query.run(1, [row(1, None, 3.0)])
    assert index.documents() == {"1": row(1, None, 3.0)}


def test_increment_adds_exactly_once_whatever_is_sent_again(index: Index) -> None:
    query = index.into(SUMS, key="id", writeMode="increment", chunkRows="9")
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
    assert index.documents() == {
        "1": {"id": 1, "n": 2 * big - 1, "x": 0.75},
        "2": {"id": 2, "n": 7, "x": 1.5},
        "3": {"id": 3, "n": 2**31, "x": 1e300},
    }


def test_sum_beyond_all_doubles_is_refused_not_stored_as_a_word(index: Index) -> None:
    index.client.indices.create(index=index, mappings={"dynamic": False})
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    query = index.into(schema, key="id", writeMode="increment", createIndex="false")
    query.run(0, [{"id": 1, "x": 1e308}])
    with pytest.raises(RowRefused, match="leaves the range of a double"):
        query.run(1, [{"id": 1, "x": 1e308}])
    assert index.documents() == {"1": {"id": 1, "x": 1e308}}


def test_increments_of_two_queries_and_of_a_generation_add_up(index: Index) -> None:
    one = {"id": 1, "n": 1, "x": None}
    options = {"key": "id", "writeMode": "increment"}
    first, second = index.into(SUMS, **options), index.into(SUMS, sinkId="s", **options)
    for epoch in range(3):
        first.run(epoch, [one], [one])
        second.run(epoch, [one])
    again = f"continue:{second.query_id}"
    index.into(SUMS, sinkId="s", onNewCheckpoint=again, **options).run(0, [one])
    assert index.documents()["1"]["n"] == 10


def test_delete_removes_the_documents_with_these_keys(index: Index) -> None:
    index.into(ROWS, key="id").run(0, [row(1), row(2), row(3)])
    query = index.into(ROWS, key="id", writeMode="delete", createIndex="false")
    query.run(0, [row(1), row(1), row(9)], [row(3)])
    assert list(index.documents()) == ["2"]
    settings = index.client.indices.get_settings(index=index, flat_settings=True)[index]["settings"]
    assert settings["index.gc_deletes"] == "3600s"


def test_change_stream_inserts_updates_and_deletes(index: Index) -> None:
    query = index.into(CHANGES, key="id", opColumn="op", chunkRows="3")
    changes = [(1, "a", "I"), (2, "b", "c"), (1, "a2", "update_postimage"), (2, "b", "d")]
    changes += [(3, "c", "r"), (1, "old", "update_preimage"), (3, "c", "DELETE"), (3, "c2", "u")]
    query.run(0, [{"id": i, "name": name, "op": op} for i, name, op in changes])
    assert index.documents() == {"1": {"id": 1, "name": "a2"}, "3": {"id": 3, "name": "c2"}}
    with pytest.raises(BadRow, match="'x', which is not an operation"):
        query.stage(1, [{"id": 1, "name": "a", "op": "x"}])


VERSIONED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())])


@pytest.mark.parametrize("chunk_rows", ["1", "100"])
def test_version_column_orders_rows_of_all_epochs(index: Index, chunk_rows: str) -> None:
    query = index.into(VERSIONED, key="id", versionColumn="v", chunkRows=chunk_rows)
    query.run(0, [{"id": 1, "name": "new", "v": 7}, {"id": 1, "name": "old", "v": 3}])
    query.run(1, [{"id": 1, "name": "older", "v": 5}, {"id": 2, "name": "b", "v": 0}])
    found = index.documents()
    assert {name: one["name"] for name, one in found.items()} == {"1": "new", "2": "b"}
    with pytest.raises(BadRow, match="versionColumn, is null or negative"):
        query.stage(2, [{"id": 1, "name": "a", "v": -1}])


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()], ids=str
)
def test_time_may_be_the_version_that_orders_writes_and_deletes_of_all_epochs(
    index: Index, kind: pa.DataType
) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", kind), ("op", pa.string())])
    query = index.into(schema, key="id", versionColumn="at", opColumn="op", chunkRows="2")

    make = date if kind == pa.date32() else datetime

    def rows(*changes: tuple[int, int, str]) -> list[dict[str, Any]]:
        return [{"id": id_, "at": make(2024, 2, day), "op": op} for id_, day, op in changes]

    query.run(0, rows((1, 5, "i"), (2, 9, "d"), (1, 4, "d")), rows((2, 8, "i"), (3, 1, "i")))
    query.run(1, rows((1, 3, "u"), (3, 2, "d"), (4, 1, "i")), rows((3, 1, "u"), (4, 2, "u")))
    found = index.documents()
    assert {id_: one["at"][:10] for id_, one in found.items()} == {
        "1": "2024-02-05",
        "4": "2024-02-02",
    }
    with pytest.raises(BadRow, match="versionColumn, is null or before 1970"):
        query.stage(2, [{**rows((1, 1, "i"))[0], "at": make(1969, 12, 31)}])


def test_document_that_was_written_without_the_version_column_stops_the_query(index: Index) -> None:
    """It has a version that no time reaches: rows for it would be lost in silence."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    before, after = ({"id": 1, "at": datetime(2024, 2, day)} for day in (1, 2))
    index.into(schema, key="id").run(0, [before])
    query = index.into(schema, key="id", versionColumn="at", sinkId=index)
    with pytest.raises(RowRefused, match="wrote it without option versionColumn"):
        query.run(0, [after])
    assert index.documents()["1"]["at"].startswith("2024-02-01")


def test_document_with_a_foreign_version_stops_the_query_and_is_no_bad_row(
    index: Index, bad_index: str
) -> None:
    query = index.into(ROWS, key="id", onBadRow="deadLetter", deadLetter=bad_index)
    index.client.index(
        index=index, id="1", document=row(1, "foreign"), version=2**62, version_type="external"
    )
    for _ in range(2):
        with pytest.raises(RowRefused, match="with its own versions") as refused:
            query.run(0, [row(1), row(2)])
        query.restart()
    assert "delete the document, and wait for index.gc_deletes" in refused.value.todo
    index.client.indices.put_settings(index=index, settings={"index.gc_deletes": "100ms"})
    index.client.delete(index=index, id="1")
    time.sleep(0.5)
    index.client.indices.refresh(index=index)
    query.run(0, [row(1), row(2)])
    assert index.documents() == {"1": row(1), "2": row(2)}
    assert documents(index.client, bad_index) == {}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut_request", "cut_reply"])
@pytest.mark.parametrize("mode", ["update", "upsert"])
def test_last_row_stays_although_a_request_for_one_before_it_is_cut(
    elasticsearch_proxy: Proxy, index: Index, fault: str, mode: str
) -> None:
    """What comes later must not go before what is sent again."""
    proxy, given = elasticsearch_proxy, {"key": "id", "chunkRows": "1", "maxRetries": "0"}
    query = index.into(COUNTER, url=proxy.url, writeMode=mode, **given)
    query.run(0, [])

    def run(epoch: int) -> None:
        query.run_until_done(epoch, [{"id": 1, "n": 10 * epoch + at} for at in range(4)])
        assert index.documents()["1"] == {"id": 1, "n": 10 * epoch + 3}

    assert cut_each(proxy, fault, run, lambda request: b"%s/_bulk" % index.encode() in request) == 5


@pytest.mark.parametrize("bad", ["not UTF-8", *slow_cases("a key twice")])
def test_delete_is_done_whatever_else_its_row_holds(index: Index, bad: str) -> None:
    """Its other columns may not fit into a document."""
    broken = pa.array([b"\xff"]).view(pa.string())
    twice = pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))
    held = broken if bad == "not UTF-8" else twice
    good = pa.array(["x"] if bad == "not UTF-8" else [[("a", 1)]], held.type)
    schema = pa.schema([("id", pa.int64()), ("op", pa.string()), ("held", held.type)])
    query = index.into(schema, key="id", opColumn="op")
    for epoch, op, value in ((0, "u", good), (1, "d", held)):
        row = pa.record_batch([pa.array([1]), pa.array([op]), value], schema)
        query.run_batches(epoch, [row])
        assert len(index.documents()) == 1 - epoch


HISTORY = pa.schema([(name, pa.string()) for name in ("name", "op", "place")]).insert(
    0, pa.field("id", pa.int64())
)


@pytest.mark.parametrize("seed", [0, 1, *slow_cases(*range(2, 24))])
def test_a_truncate_empties_the_index_in_its_place(index: Index, seed: int) -> None:
    places = ("a", "b") if seed % 2 else ("a",)
    history = drawn(seed, *places)
    target = f"{index}-{{place}}" if seed % 2 else f"{index}-a"
    create = "false" if seed % 2 else "true"
    how = {"key": "id", "opColumn": "op", "chunkRows": "3", "createIndex": create}
    query = index.into(HISTORY, index=target, **how)
    keep_log(query)
    store, decided = query.sink.store, list[Any]()
    apply = store.apply

    def applied(manifest: Any, *given: Any, **named: Any) -> Any:
        decided.append(manifest)
        return apply(manifest, *given, **named)

    store.apply = applied
    for epoch, parts in enumerate(history.epochs):
        query.run(epoch, *parts)
    del store.apply
    for manifest in decided:  # an hour late
        apply_again(query, manifest)
    for place in places:
        if index.client.indices.exists(index=f"{index}-{place}"):
            found = documents(index.client, f"{index}-{place}")
            names = {int(key): one["name"] for key, one in found.items()}
            assert names == history.stored[place]
        else:
            assert not history.stored[place]


def test_a_truncate_whose_point_in_time_goes_is_repeated(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents of the pages that the search did not reach would stay."""

    gone = list[str]()

    def lost(cluster: Any, doing: str, _: None, body: dict[str, Any]) -> Iterator[list[Any]]:
        for hits in reads.pages(cluster, doing, None, {**body, "size": reads.PAGE}):
            yield hits
            if not gone:
                gone.append(body["pit"]["id"])
                reads.close_point(cluster, *gone)

    def written(op: str, *ids: int | None) -> list[dict[str, Any]]:
        return [{"id": id_, "op": op, "name": "a", "place": "a"} for id_ in ids]

    query = index.into(HISTORY, key="id", opColumn="op")
    query.run(0, written("u", *range(reads.PAGE + 100)))
    monkeypatch.setattr(emptying, "pages", lost)
    query.run(1, written("t", None))
    assert gone
    assert index.documents() == {}
