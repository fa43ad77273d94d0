"""Which row of a document stays: late writes, deletes, versions."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.counters import COUNTER
from integration.support.documents import ROWS, documents, row
from integration.support.elasticsearch_decisions import apply_again, decide, keep_log
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases
from integration.support.proxy import Proxy

from sparkonce.errors import BadRow, RowRefused

CHANGES = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
VERSIONED = pa.schema([("id", pa.int64()), ("name", pa.string()), ("v", pa.int64())])
Make = Callable[..., ElasticsearchQuery]


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


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()], ids=str
)
def test_time_may_be_the_version_that_orders_writes_and_deletes_of_all_epochs(
    into_index: Make, elastic: Elasticsearch, index: str, kind: pa.DataType
) -> None:
    schema = pa.schema([("id", pa.int64()), ("at", kind), ("op", pa.string())])
    query = into_index(schema, key="id", versionColumn="at", opColumn="op", chunkRows="2")

    make = date if kind == pa.date32() else datetime

    def rows(*changes: tuple[int, int, str]) -> list[dict[str, Any]]:
        return [{"id": id_, "at": make(2024, 2, day), "op": op} for id_, day, op in changes]

    query.run(0, rows((1, 5, "i"), (2, 9, "d"), (1, 4, "d")), rows((2, 8, "i"), (3, 1, "i")))
    query.run(1, rows((1, 3, "u"), (3, 2, "d"), (4, 1, "i")), rows((3, 1, "u"), (4, 2, "u")))
    found = documents(elastic, index)
    assert {id_: one["at"][:10] for id_, one in found.items()} == {
        "1": "2024-02-05",
        "4": "2024-02-02",
    }
    with pytest.raises(BadRow, match="versionColumn, is null or before 1970"):
        query.stage(2, [{**rows((1, 1, "i"))[0], "at": make(1969, 12, 31)}])


def test_document_that_was_written_without_the_version_column_stops_the_query(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    """It has a version that no time reaches: rows for it would be lost in silence."""
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    before, after = ({"id": 1, "at": datetime(2024, 2, day)} for day in (1, 2))
    into_index(schema, key="id").run(0, [before])
    query = into_index(schema, key="id", versionColumn="at", sinkId=index)
    with pytest.raises(RowRefused, match="written without option versionColumn"):
        query.run(0, [after])
    assert documents(elastic, index)["1"]["at"].startswith("2024-02-01")


def test_document_with_a_foreign_version_stops_the_query_and_is_no_bad_row(
    into_index: Make, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    query = into_index(ROWS, key="id", onBadRow="deadLetter", deadLetter=bad_index)
    elastic.index(
        index=index, id="1", document=row(1, "foreign"), version=2**62, version_type="external"
    )
    for _ in range(2):
        with pytest.raises(RowRefused, match="versions of its own") as refused:
            query.run(0, [row(1), row(2)])
        query.restart()
    assert "delete the document, and let index.gc_deletes pass" in refused.value.todo
    elastic.indices.put_settings(index=index, settings={"index.gc_deletes": "100ms"})
    elastic.delete(index=index, id="1")
    time.sleep(0.5)
    elastic.indices.refresh(index=index)
    query.run(0, [row(1), row(2)])
    assert documents(elastic, index) == {"1": row(1), "2": row(2)}
    assert documents(elastic, bad_index) == {}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut_request", "cut_reply"])
@pytest.mark.parametrize("mode", ["update", "upsert"])
def test_last_row_stays_although_a_request_for_one_before_it_is_cut(
    elasticsearch_proxy: Proxy,
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    fault: str,
    mode: str,
) -> None:
    """What comes later must not go before what is sent again."""
    proxy, given = elasticsearch_proxy, {"key": "id", "chunkRows": "1", "maxRetries": "0"}
    query = into_index(COUNTER, url=proxy.url, writeMode=mode, **given)
    query.run(0, [])
    for nth in range(1, 5):
        rows = [{"id": 1, "n": 10 * nth + at} for at in range(4)]
        cuts = proxy.cuts
        getattr(proxy, fault)(lambda request: b"%s/_bulk" % index.encode() in request, nth=nth)
        query.run_until_done(nth, rows)
        proxy.restore()
        assert proxy.cuts == cuts + 1
        assert documents(elastic, index)["1"] == {"id": 1, "n": 10 * nth + 3}


@pytest.mark.parametrize("bad", ["not UTF-8", *slow_cases("a key twice")])
def test_delete_is_done_whatever_else_its_row_holds(
    into_index: Make, elastic: Elasticsearch, index: str, bad: str
) -> None:
    """Its other columns may not fit into a document."""
    broken = pa.array([b"\xff"]).view(pa.string())
    twice = pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))
    held = broken if bad == "not UTF-8" else twice
    good = pa.array(["x"] if bad == "not UTF-8" else [[("a", 1)]], held.type)
    schema = pa.schema([("id", pa.int64()), ("op", pa.string()), ("held", held.type)])
    query = into_index(schema, key="id", opColumn="op")
    for epoch, op, value in ((0, "u", good), (1, "d", held)):
        row = pa.record_batch([pa.array([1]), pa.array([op]), value], schema)
        query.run_batches(epoch, [row])
        assert len(documents(elastic, index)) == 1 - epoch
