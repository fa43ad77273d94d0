"""Which row of a document stays: late writes, deletes, sequences of an epoch, versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.counters import COUNTER
from integration.documents import ROWS, documents, row
from integration.epochs import ElasticsearchQuery, apply_again, decide, keep_log
from integration.proxy import Proxy

from sparkonce.errors import BadRow, SparkonceError

CHANGES = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
ORDERED = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("op", pa.string())])
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


def test_row_whose_document_has_a_foreign_version_is_not_put_aside(
    into_index: Make, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index}
    query = into_index(ROWS, key="id", **aside)
    elastic.index(
        index=index, id="1", document=row(1, "foreign"), version=2**62, version_type="external"
    )
    for _ in range(2):
        with pytest.raises(SparkonceError, match="versions of its own"):
            query.run(0, [row(1), row(2)])
        query.restart()
    query.restart(onConflict="ignore")
    query.run(0, [row(1), row(2)])
    assert documents(elastic, index) == {"1": row(1, "foreign"), "2": row(2)}
    assert documents(elastic, bad_index) == {}


def test_without_versions_others_may_have_their_own(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, key="id", versioning="none", chunkRows="1")
    query.run(0, [row(1, "a"), row(1, "b"), row(1, "c")])
    elastic.index(index=index, id="1", document=row(1, "x"), version=2**62, version_type="external")
    query.run(1, [row(1, "d")])
    assert documents(elastic, index) == {"1": row(1, "d")}


@pytest.mark.long
@pytest.mark.parametrize("fault", ["cut_request", "cut_reply"])
@pytest.mark.parametrize(
    "options",
    [{"writeMode": "update"}, {"writeMode": "upsert"}, {"versioning": "none"}],
    ids=["update", "upsert", "no versions"],
)
def test_last_row_stays_although_a_request_for_one_before_it_is_cut(
    elasticsearch_proxy: Proxy,
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    fault: str,
    options: dict[str, str],
) -> None:
    """What comes later must not go before what is sent again."""
    proxy, given = elasticsearch_proxy, {"key": "id", "chunkRows": "1", "maxRetries": "0"}
    query = into_index(COUNTER, url=proxy.url, **given, **options)
    query.run(0, [])
    for nth in range(1, 5):
        rows = [{"id": 1, "n": 10 * nth + at} for at in range(4)]
        cuts = proxy.cuts
        getattr(proxy, fault)(lambda request: b"%s/_bulk" % index.encode() in request, nth=nth)
        query.run_until_done(nth, rows)
        proxy.restore()
        assert proxy.cuts == cuts + 1
        assert documents(elastic, index)["1"] == {"id": 1, "n": 10 * nth + 3}
