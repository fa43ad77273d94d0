"""A network that fails at each request in turn, late drivers, and a disk that is full."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.counted import counting, counts, set_block
from integration.support.counters import ones, until_committed
from integration.support.documents import documents
from integration.support.marks import slow_cases
from integration.support.proxy import CUTS, Proxy
from integration.support.servers.process import wait_until

from pyspark_elasticsearch.journal.records import LedgerRecords
from sparkonce.errors import StoreRefused, StoreUnreachable
from sparkonce.protocol import Proposal, Record

FLOODED = "read_only_allow_delete"


@pytest.mark.parametrize("mode", ["increment", *slow_cases("append")])
@pytest.mark.parametrize("fault", CUTS)
def test_rows_count_once_whichever_request_the_network_cuts(
    elasticsearch_proxy: Proxy, elastic: Elasticsearch, counter_index: str, fault: str, mode: str
) -> None:
    proxy = elasticsearch_proxy
    query = counting(proxy.url, counter_index, writeMode=mode, parallelism="2")
    if mode == "append":
        query.options.pop("key")
    until_committed(query, 0, range(10))
    for nth in count(1):
        cuts = proxy.cuts
        getattr(proxy, fault)(lambda _: True, nth=nth)
        until_committed(query, nth, range(10))
        proxy.restore()
        assert counts(elastic, counter_index) == Counter(dict.fromkeys(range(10), nth + 1))
        if proxy.cuts == cuts:
            break  # an epoch has no request of that number
    assert nth > 20
    query.sink.store.log.refresh()  # what is listed late is listed now, and the next commit cleans
    assert query.run(nth + 1).totals.rows == 10 * (nth + 1)
    query.sink.store.log.refresh()
    assert query.sink.store.staged(query.name) == []


def bulks(client: Elasticsearch, index: str) -> int:
    """How many bulk requests the index has answered, whatever became of their rows."""
    stats = client.indices.stats(index=index, metric="bulk")
    return stats["_all"]["primaries"]["bulk"]["total_operations"]


@pytest.mark.parametrize(
    ("mode", "stored"),
    [("increment", [111]), ("upsert", [100]), ("append", [1, 10, 100])],
)
def test_bulk_that_arrives_after_its_driver_was_overtaken_changes_nothing(
    elasticsearch_proxy: Proxy,
    elasticsearch_url: str,
    elastic: Elasticsearch,
    counter_index: str,
    mode: str,
    stored: list[int],
) -> None:
    proxy = elasticsearch_proxy
    slow = counting(proxy.url, counter_index, writeMode=mode, maxRetries="0", timeout="1")
    fast = counting(elasticsearch_url, counter_index, writeMode=mode)
    if mode == "append":
        slow.options.pop("key")
        fast.options.pop("key")
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
    answered = bulks(elastic, counter_index)
    proxy.restore()
    wait_until(lambda: bulks(elastic, counter_index) == answered + 1, 20, "no late bulk")
    found = documents(elastic, counter_index).values()
    assert Counter(one["n"] for one in found) == Counter(stored)


def test_flood_stage_is_named_before_an_epoch_is_decided(
    elasticsearch_url: str, elastic: Elasticsearch, counter_index: str
) -> None:
    query = counting(elasticsearch_url, counter_index)
    query.run(0, ones(range(5)))
    set_block(elastic, counter_index, FLOODED, True)
    with pytest.raises(StoreUnreachable, match=rf"index.blocks.{FLOODED}.*flood.*free disk space"):
        query.run(1, ones(range(5)))
    ledger = query.committer().registers.load(query.name)
    assert ledger is not None
    assert ledger.decision.epoch == 0
    set_block(elastic, counter_index, FLOODED, None)
    query.run(1, ones(range(5)))
    assert counts(elastic, counter_index) == Counter([*range(5), *range(5)])


def test_flood_stage_behind_a_decision_is_waited_for_and_then_named(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    counter_index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = counting(elasticsearch_url, counter_index, timeout="1")
    decided = LedgerRecords.decide
    shown: dict[str, Any] = {}
    query.sink.check()

    def then_full(records: LedgerRecords, decision: Proposal) -> Record:
        found, shown["manifest"] = decided(records, decision), decision.manifest
        set_block(elastic, counter_index, FLOODED, True)
        return found

    monkeypatch.setattr(LedgerRecords, "decide", then_full)
    with pytest.raises(StoreRefused, match=r"not within 1 s.*flood.*free disk space"):
        query.run(0, ones(range(5)))
    query.restart(timeout="20")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(query.sink.store.apply, shown["manifest"], since=time.monotonic())
        with pytest.raises(TimeoutError):
            waiting.result(0.5)
        set_block(elastic, counter_index, FLOODED, None)
        waiting.result(20)
    query.run(0, [])
    assert counts(elastic, counter_index) == Counter(range(5))


def test_unreachable_cluster_is_named_with_what_to_do() -> None:
    query = counting("http://127.0.0.1:1", "any", maxRetries="0")
    with pytest.raises(StoreUnreachable, match=r"did not answer.*check option url"):
        query.sink.check()
