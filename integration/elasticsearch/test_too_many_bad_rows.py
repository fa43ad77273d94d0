"""More bad rows than `maxBadRows` lets go aside stop the query: the index may be at fault."""

from __future__ import annotations

import logging

import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import Index, counting, decide, die_after, documents
from integration.support.epochs import ElasticsearchQuery, dies, ones
from integration.support.marks import slow_cases

from pyspark_elasticsearch.journal.records import LedgerRecords
from sparkonce.errors import RowRefused, StoreUnreachable

OWN = {"id": {"type": "long"}, "sparkonce": {"type": "object", "enabled": False}}
MODES = ["upsert", *slow_cases("append", "increment")]


def make(elastic: Elasticsearch, index: str, fields: int = 1000) -> None:
    """Make an index that takes so many fields."""
    settings = {"number_of_replicas": 0, "index.mapping.total_fields.limit": fields}
    elastic.indices.create(index=index, settings=settings, mappings={"properties": OWN})


def words(elastic: Elasticsearch, index: str) -> None:
    """Make an index that takes small numbers alone."""
    elastic.indices.create(
        index=index,
        settings={"number_of_replicas": 0},
        mappings={"properties": {**OWN, "n": {"type": "byte"}}},
    )


def into(url: str, index: str, bad_index: str, mode: str, **options: str) -> ElasticsearchQuery:
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index, "chunkRows": "500"}
    query = counting(url, index, **{**aside, **options}, writeMode=mode)
    query.sink.check()
    return query


@pytest.mark.parametrize("mode", MODES)
def test_good_rows_by_the_thousands_do_not_go_aside(
    index: Index, bad_index: str, mode: str
) -> None:
    make(index.client, index, fields=2)
    query = into(index.url, index, bad_index, mode)
    for _ in range(3):  # a supervisor
        with pytest.raises(RowRefused, match=r"of the 5,000 rows .*Limit of total fields"):
            query.run(0, ones(range(5000)))
        query.restart()
    assert len(documents(index.client, bad_index)) <= 500
    index.client.indices.put_settings(
        index=index, settings={"index.mapping.total_fields.limit": 1000}
    )
    query.run(0, ones(range(5000)))
    letters = len(documents(index.client, bad_index))
    assert len(index.documents()) == 5000 - letters


def test_ten_bad_rows_alone_in_a_partition_stop_nothing(
    index: Index, bad_index: str, caplog: pytest.LogCaptureFixture
) -> None:
    words(index.client, index)
    query = into(index.url, index, bad_index, "upsert")
    with caplog.at_level(logging.WARNING, "sparkonce"):
        ledger = query.run(0, [{"id": n, "n": 1000} for n in range(10)], ones(range(10, 1000)))
    assert (len(documents(index.client, bad_index)), len(index.documents())) == (10, 990)
    assert (ledger.totals.rows, ledger.totals.aside, ledger.totals.unstored) == (1000, 10, 0)
    (said,) = [one for one in caplog.messages if "can't be stored" in one]
    assert f"10 of 1,000 rows of epoch 0 of {query.name}" in said
    assert f"go to index {bad_index}" in said


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_stream_into_a_broken_index_stops_too_until_a_row_is_stored(
    index: Index, bad_index: str, mode: str
) -> None:
    words(index.client, index)
    query = into(index.url, index, bad_index, mode)
    bad = [{"id": 1, "n": 1000}, {"id": 2, "n": 1000}]
    for epoch in range(5):
        assert query.run(epoch, bad).totals.unstored == 2 * epoch + 2
        query.restart()
    for _ in range(2):
        with pytest.raises(RowRefused, match="the last 10 of earlier epochs"):
            query.run(5, bad[:1])
        query.restart()
    query.restart(maxBadRows="20")
    assert query.run(5, bad[:1]).totals.unstored == 11
    query.restart(maxBadRows="10%")
    assert query.run(6, [*bad, *ones(range(3, 4))]).totals.unstored == 0
    assert query.run(7, bad).totals.unstored == 2


def test_refused_document_counts_for_all_the_rows_of_its_key(index: Index, bad_index: str) -> None:
    """Of 500 rows 490 change 49 documents that are refused, and a restart knows it."""
    words(index.client, index)
    query = into(index.url, index, bad_index, "upsert")
    rows = [{"id": key, "n": 1000 if key else 1} for key in range(50) for _ in range(10)]
    with pytest.raises(RowRefused, match=r"60 of the 500 rows of epoch 0"):
        query.run(0, rows)
    query.restart(maxBadRows="490")
    ledger = query.run(0, [])
    assert (ledger.totals.aside, ledger.totals.unstored) == (490, 0)
    assert len(documents(index.client, bad_index)) == 49


def test_epoch_of_which_no_document_is_stored_is_known_as_such_after_a_restart(
    index: Index, bad_index: str
) -> None:
    """A driver dies when it has noted that all is applied; also one without dead letters knows."""
    words(index.client, index)
    query = into(index.url, index, bad_index, "upsert", maxBadRows="100%")
    manifest = decide(query, 0, [{"id": 1, "n": 1000}] * 4)
    query.sink.store.apply(manifest)
    query.restart(onBadRow="fail")
    del query.options["deadLetter"], query.options["maxBadRows"]
    ledger = query.run(0, [])
    assert (ledger.totals.aside, ledger.totals.unstored) == (4, 4)


def test_noted_bad_rows_are_counted_by_a_driver_without_dead_letters(
    index: Index, bad_index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver dies between the note of its bad rows and that of its progress."""
    words(index.client, index)
    query = into(index.url, index, bad_index, "upsert", maxBadRows="100%")
    manifest = decide(query, 0, [{"id": 1, "n": 1000}] * 4)
    with monkeypatch.context() as dying:
        dying.setattr("pyspark_elasticsearch.journal.dead_letters.write", dies)
        with pytest.raises(KeyboardInterrupt):
            query.sink.store.apply(manifest)
    query.restart(onBadRow="fail")
    del query.options["deadLetter"], query.options["maxBadRows"]
    ledger = query.run(0, [])
    assert (ledger.totals.aside, ledger.totals.unstored) == (4, 4)
    assert len(documents(index.client, bad_index)) == 1


def test_slow_stream_goes_on_once_the_index_is_mended(index: Index, bad_index: str) -> None:
    """What no row of an epoch passes is not noted as bad before the epoch ends."""
    make(index.client, index, fields=2)
    query = into(index.url, index, bad_index, "upsert")
    for epoch in range(5):
        query.run(epoch, ones(range(2 * epoch, 2 * epoch + 2)))
    for _ in range(2):
        query.restart()
        with pytest.raises(RowRefused, match="the last 10 of earlier epochs"):
            query.run(5, ones(range(10, 13)), ones(range(13, 16)))
    assert len(documents(index.client, bad_index)) == 10
    index.client.indices.put_settings(
        index=index, settings={"index.mapping.total_fields.limit": 1000}
    )
    query.restart()
    assert query.run(5, []).totals.unstored == 0
    assert len(index.documents()) == 6


def test_bad_rows_are_told_though_the_answer_to_the_last_note_is_lost(
    index: Index, bad_index: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    words(index.client, index)
    query = into(index.url, index, bad_index, "upsert")
    advance, lost = LedgerRecords.advance, []

    def loses(
        records: LedgerRecords, name: str, token: str, applied: int, **how: bool
    ) -> int | None:
        reached = advance(records, name, token, applied, **how)
        if applied and not lost:
            lost.append(applied)
            raise StoreUnreachable("no answer")
        return reached

    monkeypatch.setattr(LedgerRecords, "advance", loses)
    with caplog.at_level(logging.WARNING, "sparkonce"):
        assert query.run(0, [{"id": 1, "n": 1}, {"id": 2, "n": 1000}]).totals.aside == 1
    assert lost
    (said,) = [one for one in caplog.messages if "can't be stored" in one]
    assert "1 x a field does not fit" in said


def test_bad_rows_of_an_epoch_that_was_applied_in_part_count_on(
    index: Index, bad_index: str
) -> None:
    """A driver dies when some chunks are applied and noted as such."""
    words(index.client, index)
    query = into(index.url, index, bad_index, "upsert", chunkRows="4", parallelism="1")
    bad = [{"id": n, "n": 1000} for n in range(12)]
    receipts = query.stage(0, [*bad[:8], *ones(range(12, 40)), *bad[8:]])
    decided = query.committer()
    die_after(query, 3, 0, receipts)
    ledger = decided.registers.load(query.name)
    assert ledger is not None
    assert ledger.decision.manifest is not None
    query.sink.store.records.advance(query.name, ledger.decision.manifest.token, 3)
    query.restart()
    with pytest.raises(RowRefused, match="8 x refused before a restart; 3 x a field does not fit"):
        query.run(0, [])
    query.restart(maxBadRows="12")
    assert query.run(0, []).totals.aside == 12
    assert (len(documents(index.client, bad_index)), len(index.documents())) == (12, 28)
