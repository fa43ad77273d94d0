"""A network that fails at each request in turn, late drivers, and a disk that is full."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    STAMPED,
    Index,
    apply_again,
    counting,
    decide,
    documents,
    ids,
    keep_log,
    stamped,
)
from integration.support.epochs import ElasticsearchQuery, cut_each, dies, ones, until_committed
from integration.support.marks import slow_cases
from integration.support.proxy import CUTS, Proxy
from integration.support.servers.elasticsearch import is_opensearch
from integration.support.servers.process import wait_until

from pyspark_elasticsearch.journal.log import StagingLog, places
from pyspark_elasticsearch.journal.records import LedgerRecords
from sparkonce.errors import OptionError, StoreLostData, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.bad_rows import NONE
from sparkonce.protocol import Proposal, Record

FLOODED = "read_only_allow_delete"


@pytest.mark.parametrize("mode", ["increment", *slow_cases("append")])
@pytest.mark.parametrize("fault", CUTS)
def test_rows_count_once_whichever_request_the_network_cuts(
    elasticsearch_proxy: Proxy, counter_index: Index, fault: str, mode: str
) -> None:
    proxy = elasticsearch_proxy
    query = counting(proxy.url, counter_index, writeMode=mode, parallelism="2")

    def run(epoch: int) -> None:
        until_committed(query, epoch, range(10))
        assert counter_index.counts() == Counter(dict.fromkeys(range(10), epoch + 1))

    run(0)
    last = cut_each(proxy, fault, run)
    assert last > 20
    query.sink.store.log.refresh()  # what is listed late is listed now, and the next commit cleans
    assert query.run(last + 1).totals.rows == 10 * (last + 1)
    query.sink.store.log.refresh()
    assert query.sink.store.staged(query.name) == []


def bulks(client: Elasticsearch, index: str) -> int:
    """How many bulk requests were answered, whatever became of their rows.

    OpenSearch does not count those of an index, only those of a node.
    """
    if is_opensearch():
        nodes = client.nodes.stats(metric="thread_pool")["nodes"].values()
        return sum(node["thread_pool"]["write"]["completed"] for node in nodes)
    stats = client.indices.stats(index=index, metric="bulk")
    return stats["_all"]["primaries"]["bulk"]["total_operations"]


@pytest.mark.parametrize(
    ("mode", "stored"), [("increment", [111]), ("upsert", [100]), ("append", [1, 10, 100])]
)
def test_bulk_that_arrives_after_its_driver_was_overtaken_changes_nothing(
    elasticsearch_proxy: Proxy, counter_index: Index, mode: str, stored: list[int]
) -> None:
    proxy = elasticsearch_proxy
    slow = counting(proxy.url, counter_index, writeMode=mode, maxRetries="0", timeout="1")
    fast = counter_index.counting(writeMode=mode)
    fast.query_id = slow.query_id
    slow.sink.check()
    receipts = slow.stage(0, [{"id": 1, "n": 1}])
    proxy.stall(b"/_bulk")
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(slow.commit, 0, receipts)
        assert proxy.wait()
        fast.run(0, [])
        for epoch, n in ((1, 10), (2, 100)):
            fast.run(epoch, [{"id": 1, "n": n}])
        late.exception()  # it may have found in time that its epoch was finished for it
    answered = bulks(counter_index.client, counter_index)
    proxy.restore()
    wait_until(lambda: bulks(counter_index.client, counter_index) > answered, 20, "no late bulk")
    found = counter_index.documents().values()
    assert Counter(one["n"] for one in found) == Counter(stored)


def test_flood_stage_is_named_before_an_epoch_is_decided(counter_index: Index) -> None:
    query = counter_index.counting()
    query.run(0, ones(range(5)))
    counter_index.block(FLOODED, True)
    with pytest.raises(StoreUnreachable, match=rf"index.blocks.{FLOODED}.*flood.*free disk space"):
        query.run(1, ones(range(5)))
    ledger = query.committer().registers.load(query.name)
    assert ledger is not None
    assert ledger.decision.epoch == 0
    counter_index.block(FLOODED, None)
    query.run(1, ones(range(5)))
    assert counter_index.counts() == Counter([*range(5), *range(5)])


def test_flood_stage_behind_a_decision_is_waited_for_and_then_named(
    counter_index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = counter_index.counting(timeout="1")
    decided = LedgerRecords.decide
    shown: dict[str, Any] = {}
    query.sink.check()

    def then_full(records: LedgerRecords, proposal: Proposal) -> Record:
        found, shown["manifest"] = decided(records, proposal), proposal.manifest
        counter_index.block(FLOODED, True)
        return found

    monkeypatch.setattr(LedgerRecords, "decide", then_full)
    with pytest.raises(StoreRefused, match=r"epoch \d+ within 1 s.*flood.*free disk space"):
        query.run(0, ones(range(5)))
    query.restart(timeout="20")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(query.sink.store.apply, shown["manifest"], since=time.monotonic())
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        counter_index.block(FLOODED, None)
        waiting.result(20)
    query.run(0, [])
    assert counter_index.counts() == Counter(range(5))


def test_unreachable_cluster_is_named_with_what_to_do() -> None:
    query = counting("http://127.0.0.1:1", "any", maxRetries="0")
    with pytest.raises(StoreUnreachable, match=r"did not answer.*check option url"):
        query.sink.check()


Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def into_stream(into_index: Make, stream: str) -> Make:
    """Make a checked query into the stream."""

    def make(schema: pa.Schema = STAMPED, **options: str) -> ElasticsearchQuery:
        return into_index(schema, **{"createIndex": "false", "index": stream, **options})

    return make


@pytest.mark.variants
def test_rows_go_to_the_index_that_takes_writes(
    into_stream: Make, elastic: Elasticsearch, stream: str
) -> None:
    query = into_stream(chunkRows="2")
    query.run(0, stamped(1, 1, 2, 3, 4))
    first, second = elastic.indices.rollover(alias=stream).body["old_index"], None
    query.run(1, stamped(5), stamped(6))
    second = elastic.indices.rollover(alias=stream).body["old_index"]
    query.run(1, stamped(7))
    assert ids(elastic, stream) == Counter([1, 1, 2, 3, 4, 5, 6])
    assert [len(documents(elastic, index)) for index in (first, second)] == [5, 2]


@pytest.mark.variants
def test_rollover_between_the_decision_and_what_is_sent_again_doubles_nothing(
    into_stream: Make, elastic: Elasticsearch, stream: str
) -> None:
    query = into_stream(chunkRows="2", parallelism="1")
    keep_log(query)
    elastic.indices.rollover(alias=stream)
    manifest = decide(query, 0, stamped(*range(5)), stamped(9))
    send, sent = query.sink.store.log.fetch, []

    def dies(place: Any) -> Any:
        if len(sent) == 2:
            raise KeyboardInterrupt
        sent.append(place)
        return send(place)

    query.sink.store.log.fetch = dies
    with pytest.raises(KeyboardInterrupt):
        apply_again(query, manifest)
    del query.sink.store.log.fetch
    assert len(ids(elastic, stream)) == 4
    for _ in range(2):
        elastic.indices.rollover(alias=stream)
        apply_again(query, manifest)
    query.restart()
    query.run(1, stamped(10))
    elastic.indices.rollover(alias=stream)
    apply_again(query, manifest)
    assert ids(elastic, stream) == Counter([*range(5), 9, 10])


@pytest.mark.variants
def test_row_that_lands_late_before_a_rollover_is_there_once(
    into_stream: Make, elastic: Elasticsearch, stream: str
) -> None:
    """After its look-up, and before the repeated row comes, which the rollover sends elsewhere."""
    query = into_stream()
    keep_log(query)
    manifest = decide(query, 0, stamped(1, 2))
    bulk, late = type(query.sink.store.cluster).ask, []

    def ask(doing: str, method: str, target: str, **given: Any) -> Any:
        if target == f"/{stream}/_bulk" and not late:
            lines = bytes(given["body"]).splitlines(keepends=True)
            late.append(
                bulk(query.sink.store.cluster, doing, method, target, body=lines[0] + lines[1])
            )
            elastic.indices.rollover(alias=stream)
        return bulk(query.sink.store.cluster, doing, method, target, **given)

    query.sink.store.cluster.ask = ask
    apply_again(query, manifest)
    del query.sink.store.cluster.ask
    assert late
    assert ids(elastic, stream) == Counter([1, 2])


@pytest.mark.variants
@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut_request", "cut_reply"])
def test_rows_are_there_once_whichever_request_is_cut_and_with_a_rollover_at_each_try(
    elasticsearch_proxy: Proxy, into_stream: Make, elastic: Elasticsearch, stream: str, fault: str
) -> None:
    proxy = elasticsearch_proxy
    query = into_stream(url=proxy.url, parallelism="2", chunkRows="2")

    def run(epoch: int) -> None:
        roll_over = partial(elastic.indices.rollover, alias=stream)
        parts = stamped(*range(3)), stamped(*range(3, 6))
        query.run_until_done(epoch, *parts, between=roll_over)
        assert ids(elastic, stream) == Counter(dict.fromkeys(range(6), epoch + 1))

    run(0)
    assert cut_each(proxy, fault, run) > 15


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": "id"}, "takes new documents only"),
        ({"visibleAlias": "v", "sinkId": "s"}, "would show one index of the stream"),
        ({"routing": "id"}, "looks up a repeated row by its id"),
    ],
)
@pytest.mark.variants
def test_what_a_data_stream_cannot_keep_is_refused_at_start(
    into_stream: Make, options: dict[str, str], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        into_stream(**options)


@pytest.mark.variants
def test_query_without_a_timestamp_is_refused_at_start(into_stream: Make) -> None:
    with pytest.raises(OptionError, match=r"no column '@timestamp'.*withColumn"):
        into_stream(pa.schema([("id", pa.int64())]))


@pytest.mark.variants
def test_rows_are_there_once_although_their_driver_slept_before_it_sent_any(
    into_stream: Make, elastic: Elasticsearch, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one sent them meanwhile, and died before it could say so; then the stream rolled."""
    monkeypatch.setattr("pyspark_elasticsearch.write.delivery.PAUSE", 0.05)
    query = into_stream()
    store = query.sink.store
    apply = store.apply

    def sleeps(*given: Any) -> Any:
        options = {"deadLetter": None, "maxBadRows": NONE}
        other = type(store)(store.cluster, store.indices, options)
        other.records.advance = dies
        with pytest.raises(KeyboardInterrupt):
            other.apply(given[0])
        elastic.indices.rollover(alias=stream)
        time.sleep(0.1)
        return apply(*given)

    store.apply = sleeps
    try:
        query.run(0, stamped(1, 2))
    finally:
        del store.apply
    assert ids(elastic, stream) == Counter([1, 2])


@pytest.mark.parametrize("lost", [False, True])
def test_chunk_that_a_stale_copy_lacks_is_not_called_lost(
    index: Index, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """A node that is cut off from the others may answer from a copy that is behind."""
    query = index.into(STAMPED, chunkRows="2")
    manifest = decide(query, 0, stamped(1, 2, 3))
    place = places(query.name, manifest.parts)[1]
    if lost:
        query.sink.store.log._drop_places([place])
    real, stale = StagingLog._get, [place.id] * 2

    def behind(self: StagingLog, doing: str, ids: Any, *, source: bool = False) -> Any:
        found = real(self, doing, ids, source=source)
        if source and ids[0] in stale:
            stale.remove(ids[0])
            return [{"_id": one, "found": False} for one in ids]
        return found

    monkeypatch.setattr(StagingLog, "_get", behind)
    query.restart()
    if lost:
        for _ in range(2):
            with pytest.raises(StoreLostData, match=r"Chunk 1 of attempt .* is missing"):
                query.run(0, [])
    else:
        query.run(0, [])
        assert ids(index.client, index) == Counter({1: 1, 2: 1, 3: 1})
    assert not stale


def test_chunk_that_a_stale_copy_lacks_before_the_decision_is_not_called_missing(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = index.into(STAMPED, chunkRows="2")
    receipts = query.stage(0, stamped(1, 2, 3))
    real, stale = StagingLog._get, [1, 2]

    def behind(self: StagingLog, doing: str, ids: Any, *, source: bool = False) -> Any:
        if doing == "checking staged rows" and stale:
            stale.pop()
            return [{"_id": one, "found": False} for one in ids]
        return real(self, doing, ids, source=source)

    monkeypatch.setattr(StagingLog, "_get", behind)
    query.commit(0, receipts)
    assert not stale
    assert ids(index.client, index) == Counter({1: 1, 2: 1, 3: 1})


def test_probe_that_a_driver_left_behind_is_no_chunk(index: Index) -> None:
    """The driver died after it had looked for a chunk by a write."""
    query = index.into(STAMPED, chunkRows="2")
    manifest = decide(query, 0, stamped(1, 2, 3))
    log, place = query.sink.store.log, places(query.name, manifest.parts)[1]
    log._drop_places([place])
    probe = {"kind": "probe", "sink": place.sink, "attempt": place.attempt}
    index.client.index(index=log.indices.log, id=place.id, document=probe)
    query.restart()
    with pytest.raises(StoreLostData, match=r"Chunk 1 of attempt .* is missing"):
        query.run(0, [])
    log.drop(query.name, [place.attempt])
    assert query.name not in log.sinks()
