"""More bad rows than `maxBadRows` lets go aside stop the query: the index may be at fault."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.counted import counting
from integration.support.documents import documents
from integration.support.elasticsearch_decisions import decide
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases

from pyspark_elasticsearch.journal.records import LedgerRecords
from sparkonce.errors import BadRow, RowRefused, StoreUnreachable

OWN = {"id": {"type": "long"}, "sparkonce": {"type": "object", "enabled": False}}
MODES = ["upsert", *slow_cases("append", "increment")]


def ones(start: int, stop: int) -> list[dict[str, Any]]:
    return [{"id": n, "n": 1} for n in range(start, stop)]


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
    if mode == "append":
        query.options.pop("key")
    query.sink.check()
    return query


@pytest.mark.parametrize("mode", MODES)
def test_good_rows_by_the_thousands_do_not_go_aside(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str, mode: str
) -> None:
    make(elastic, index, fields=2)
    query = into(elasticsearch_url, index, bad_index, mode)
    for _ in range(3):  # a supervisor
        with pytest.raises(RowRefused, match=r"rows of 5,000 of epoch 0 .*Limit of total fields"):
            query.run(0, ones(0, 5000))
        query.restart()
    assert len(documents(elastic, bad_index)) <= 500
    elastic.indices.put_settings(index=index, settings={"index.mapping.total_fields.limit": 1000})
    query.run(0, ones(0, 5000))
    letters = len(documents(elastic, bad_index))
    assert len(documents(elastic, index)) == 5000 - letters


def test_a_share_of_all_lets_all_go_aside(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    make(elastic, index, fields=2)
    query = into(elasticsearch_url, index, bad_index, "upsert")
    with pytest.raises(RowRefused, match="restart it with a higher maxBadRows"):
        query.run(0, ones(0, 2000))
    query.restart(maxBadRows="100%")
    assert query.run(0, ones(0, 2000)).totals.aside == 2000
    assert len(documents(elastic, bad_index)) == 2000
    assert len(documents(elastic, index)) == 0


def test_small_partitions_hide_nothing(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    make(elastic, index, fields=2)
    query = into(elasticsearch_url, index, bad_index, "upsert")
    with pytest.raises(RowRefused, match=r"20\d rows of 2,000 of epoch 0"):
        query.run(0, *(ones(10 * n, 10 * n + 10) for n in range(200)))
    elastic.indices.put_settings(index=index, settings={"index.mapping.total_fields.limit": 1000})
    query.restart()
    assert query.run(0, []).totals.aside <= 200


def test_ten_bad_rows_alone_in_a_partition_stop_nothing(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    index: str,
    bad_index: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert")
    with caplog.at_level(logging.WARNING, "sparkonce"):
        ledger = query.run(0, [{"id": n, "n": 1000} for n in range(10)], ones(10, 1000))
    assert (len(documents(elastic, bad_index)), len(documents(elastic, index))) == (10, 990)
    assert (ledger.totals.rows, ledger.totals.aside, ledger.totals.unstored) == (1000, 10, 0)
    (said,) = [one for one in caplog.messages if "can't be stored" in one]
    assert f"10 of 1,000 rows of epoch 0 of {query.name}" in said
    assert f"go to index {bad_index}" in said


@pytest.mark.parametrize("mode", MODES)
def test_a_slow_stream_into_a_broken_index_stops_too_until_a_row_is_stored(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str, mode: str
) -> None:
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, mode)
    bad = [{"id": 1, "n": 1000}, {"id": 2, "n": 1000}]
    for epoch in range(5):
        assert query.run(epoch, bad).totals.unstored == 2 * epoch + 2
        query.restart()
    for _ in range(2):
        with pytest.raises(RowRefused, match="behind 10 in epochs before it, of which none was"):
            query.run(5, bad[:1])
        query.restart()
    query.restart(maxBadRows="20")
    assert query.run(5, bad[:1]).totals.unstored == 11
    query.restart(maxBadRows="10%")
    assert query.run(6, [*bad, *ones(3, 4)]).totals.unstored == 0
    assert query.run(7, bad).totals.unstored == 2


def test_refused_document_counts_for_all_the_rows_of_its_key(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    """Of 500 rows 490 change 49 documents that are refused, and a restart knows it."""
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert")
    rows = [{"id": key, "n": 1000 if key else 1} for key in range(50) for _ in range(10)]
    with pytest.raises(RowRefused, match=r"60 rows of 500 of epoch 0"):
        query.run(0, rows)
    query.restart(maxBadRows="490")
    ledger = query.run(0, [])
    assert (ledger.totals.aside, ledger.totals.unstored) == (490, 0)
    assert len(documents(elastic, bad_index)) == 49


def test_epoch_of_which_no_document_is_stored_is_known_as_such_after_a_restart(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    """A driver dies when it has noted that all is applied; also one without dead letters knows."""
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert", maxBadRows="100%")
    manifest = decide(query, 0, [{"id": 1, "n": 1000}] * 4)
    query.sink.store.apply(manifest)
    query.restart(onBadRow="fail")
    del query.options["deadLetter"], query.options["maxBadRows"]
    ledger = query.run(0, [])
    assert (ledger.totals.aside, ledger.totals.unstored) == (4, 4)


def test_noted_bad_rows_are_counted_by_a_driver_without_dead_letters(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    index: str,
    bad_index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A driver dies between the note of its bad rows and that of its progress."""
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert", maxBadRows="100%")
    manifest = decide(query, 0, [{"id": 1, "n": 1000}] * 4)
    with monkeypatch.context() as dying:
        dying.setattr("pyspark_elasticsearch.journal.dead_letters.write", dies)
        with pytest.raises(KeyboardInterrupt):
            query.sink.store.apply(manifest)
    query.restart(onBadRow="fail")
    del query.options["deadLetter"], query.options["maxBadRows"]
    ledger = query.run(0, [])
    assert (ledger.totals.aside, ledger.totals.unstored) == (4, 4)
    assert len(documents(elastic, bad_index)) == 1


def dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_slow_stream_goes_on_once_the_index_is_mended(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    """What no row of an epoch passes is not noted as bad before the epoch ends."""
    make(elastic, index, fields=2)
    query = into(elasticsearch_url, index, bad_index, "upsert")
    for epoch in range(5):
        query.run(epoch, ones(2 * epoch, 2 * epoch + 2))
    for _ in range(2):
        query.restart()
        with pytest.raises(RowRefused, match="behind 10 in epochs before it"):
            query.run(5, ones(10, 13), ones(13, 16))
    assert len(documents(elastic, bad_index)) == 10
    elastic.indices.put_settings(index=index, settings={"index.mapping.total_fields.limit": 1000})
    query.restart()
    assert query.run(5, []).totals.unstored == 0
    assert len(documents(elastic, index)) == 6


def test_bad_rows_are_told_though_the_answer_to_the_last_note_is_lost(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    index: str,
    bad_index: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert")
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


def test_rows_that_tasks_refuse_stop_an_epoch_before_it_is_decided(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    make(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert")
    rows = [*ones(0, 89), *({"id": None, "n": n} for n in range(11))]
    with pytest.raises(BadRow, match=r"11 rows of 100 of epoch 0 .*11 x .*id=null") as error:
        query.run(0, rows)
    assert "Nothing of the epoch took effect" in str(error.value)
    assert len(documents(elastic, bad_index)) == 0
    query.restart(maxBadRows="11")
    query.run(0, rows)
    assert (len(documents(elastic, bad_index)), len(documents(elastic, index))) == (11, 89)


def test_bad_rows_of_an_epoch_that_was_applied_in_part_count_on(
    elasticsearch_url: str, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    """A driver dies when some chunks are applied and noted as such."""
    words(elastic, index)
    query = into(elasticsearch_url, index, bad_index, "upsert", chunkRows="4", parallelism="1")
    bad = [{"id": n, "n": 1000} for n in range(12)]
    receipts = query.stage(0, [*bad[:8], *ones(12, 40), *bad[8:]])
    store, applied = query.sink.store, []

    def dies(rows: int) -> None:
        applied.append(rows)
        if len(applied) == 3:
            raise KeyboardInterrupt

    decided = query.committer()
    real = store.apply
    store.apply = lambda manifest, *_: real(manifest, dies)
    try:
        with pytest.raises(KeyboardInterrupt):
            query.commit(0, receipts)
    finally:
        del store.apply
    ledger = decided.registers.load(query.name)
    assert ledger is not None
    assert ledger.decision.manifest is not None
    store.records.advance(query.name, ledger.decision.manifest.token, 3)
    query.restart()
    with pytest.raises(RowRefused, match="8 x refused before a restart; 3 x a field does not fit"):
        query.run(0, [])
    query.restart(maxBadRows="12")
    assert query.run(0, []).totals.aside == 12
    assert (len(documents(elastic, bad_index)), len(documents(elastic, index))) == (12, 28)
