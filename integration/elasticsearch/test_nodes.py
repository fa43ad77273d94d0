"""Nodes of the tests' own: small limits, crashes, and two of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from random import Random

import pyarrow as pa
import pytest
from elasticsearch import ApiError, Elasticsearch, TransportError
from integration.support.elasticsearch import (
    CONNECTOR,
    Private,
    counting_anew,
    counts,
    documents,
    make_counters,
)
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases
from integration.support.servers.elasticsearch import ElasticsearchProcess, connect
from integration.support.servers.elasticsearch import connect as connect_elasticsearch
from integration.support.servers.process import wait_until

from pyspark_elasticsearch.follow.feed import ElasticsearchFeed
from pyspark_elasticsearch.journal.log import ChunkPlace, StagedChunk
from sparkonce import options
from sparkonce.errors import BadRow, RowRefused, StoreUnreachable
from sparkonce.reading import Position, Scan

pytestmark = pytest.mark.slow
TEXTS = pa.schema([("id", pa.int64()), ("text", pa.string())])


def counters_at(url: str) -> Counter[int]:
    with connect(url) as client:
        return counts(client, "counters")


def test_requests_and_chunks_are_cut_to_what_the_server_takes(
    private_elasticsearch: Private,
) -> None:
    node = private_elasticsearch("http.max_content_length: 1mb")
    options = {"url": node.url, "index": "texts", "key": "id", "createIndex": "true"}
    query = ElasticsearchQuery(TEXTS, **options, timeout="5")
    query.sink.check()
    rows = [{"id": i, "text": f"{i} " * 2000} for i in range(300)]
    query.run(0, rows)
    with connect(node.url) as client:
        assert len(documents(client, "texts")) == 300
    with pytest.raises(RowRefused, match=r"id '300'.*bytes.*http.max_content_length"):
        query.run(1, [{"id": 299, "text": ""}, {"id": 300, "text": "x" * 2_000_000}])
    query.restart(onBadRow="deadLetter", deadLetter="texts-bad")
    query.sink.check()
    query.run(1, [])
    with connect(node.url) as client:
        assert documents(client, "texts")["299"]["text"] == ""
        assert [one["id"] for one in documents(client, "texts-bad").values()] == ["300"]


def test_chunks_are_cut_to_what_the_server_takes(private_elasticsearch: Private) -> None:
    node = private_elasticsearch("http.max_content_length: 1mb")
    options = {"url": node.url, "index": "texts", "key": "id", "createIndex": "true"}
    query = ElasticsearchQuery(TEXTS, **options, timeout="5")
    query.sink.check()
    noise = Random(7)
    rows = [{"id": i, "text": noise.randbytes(4000).hex()} for i in range(600)]
    query.run(0, rows[:300], rows[300:])
    with connect(node.url) as client:
        assert sorted(one["id"] for one in documents(client, "texts").values()) == [*range(600)]
    with pytest.raises(BadRow, match=r"row of [\d,]+ bytes.*http.max_content_length"):
        query.stage(1, [{"id": 1, "text": noise.randbytes(3_000_000).hex()}])


def test_node_that_is_killed_in_mid_bulk_and_comes_back_loses_and_doubles_nothing(
    private_elasticsearch: Private,
) -> None:
    node = private_elasticsearch()
    query = counting_anew(node.url, maxRetries="2", parallelism="2")
    query.sink.check()
    rows = [{"id": i, "n": 1} for i in range(20_000)]
    query.run(0, rows)

    def crash() -> None:
        node.kill()
        node.start()

    query.restart()
    receipts = query.stage(1, rows)
    applied = threading.Event()
    store = query.sink.store
    store.log.fetch = lambda place: (applied.set(), type(store.log).fetch(store.log, place))[1]
    crasher = threading.Thread(target=lambda: (applied.wait(), crash()))
    crasher.start()
    with pytest.raises(StoreUnreachable):
        query.commit(1, receipts)
    crasher.join()
    del store.log.fetch
    query.restart()
    query.run_until_done(1, [], tries=30)
    assert counters_at(node.url) == Counter(dict.fromkeys(range(20000), 2))


@pytest.fixture
def two_nodes(private_elasticsearch: Private) -> tuple[ElasticsearchProcess, ElasticsearchProcess]:
    """A master, and another node that holds the primary shard of the counters."""
    first = private_elasticsearch(
        "discovery.seed_hosts: []",
        "cluster.initial_master_nodes: [one]",
        "node.name: one",
        heap="512m",
    )
    second = private_elasticsearch(
        f"discovery.seed_hosts: ['{first.transport}']",
        "node.name: two",
        "node.roles: [data]",
        heap="512m",
    )
    with connect(first.url) as client:
        wait_until(lambda: client.cluster.health()["number_of_nodes"] == 2, 60, "no second node")
        there = "index.routing.allocation.require._name"
        make_counters(client, "counters", **{there: "two"})
        client.indices.put_settings(
            index="counters", settings={there: None, "index.number_of_replicas": 1}
        )
    return first, second


def home_of_primary(client: Elasticsearch) -> str:
    shards = client.cat.shards(index="counters", format="json")
    (node,) = [one["node"] for one in shards if (one["prirep"], one["state"]) == ("p", "STARTED")]
    return node


def indexed(node: ElasticsearchProcess) -> int:
    """How many counters a node has written, asked without any other node."""
    with connect(node.url) as client:
        found = client.nodes.stats(node_id="_local", metric="indices", level="indices")
    (told,) = found["nodes"].values()
    return told["indices"]["indices"]["counters"]["indexing"]["index_total"]


def test_node_that_is_lost_with_what_it_acknowledged_to_nobody(
    two_nodes: tuple[ElasticsearchProcess, ElasticsearchProcess],
) -> None:
    first, second = two_nodes
    ids = range(500)
    rows = [{"id": i, "n": 1} for i in ids]
    query = counting_anew(second.url, timeout="30")
    query.sink.check()
    for epoch in range(3):
        query.run(epoch, rows)
    with connect(first.url) as client:
        client.cluster.health(wait_for_status="green", timeout="60s")
        assert home_of_primary(client) == "two"
    log = query.sink.store.log

    def fetch(place: ChunkPlace) -> StagedChunk:
        """The chunk; what comes next is its bulk, which can't be done while a node is frozen."""
        del log.fetch
        found = log.fetch(place)
        written = {node: indexed(node) + len(ids) for node in two_nodes}
        first.pause()
        killing.append(pool.submit(kill_once_both_wrote, written))
        return found

    def kill_once_both_wrote(written: dict[ElasticsearchProcess, int]) -> None:
        try:
            wait_until(lambda: indexed(second) == written[second], 30, "no bulk")
            time.sleep(3)  # until what it sends to the copy lies in a buffer there
            second.pause()
            first.resume()
            wait_until(lambda: indexed(first) == written[first], 30, "the copy got nothing")
        finally:
            second.kill()
            first.resume()

    killing: list[Future[None]] = []
    log.fetch = fetch
    both = f"{second.url},{first.url}"
    with ThreadPoolExecutor(1) as pool:
        failures = query.run_until_done(
            3, rows, tries=30, between=lambda: query.options.update(url=both)
        )
    killing[0].result()
    assert isinstance(failures[0], StoreUnreachable)
    for epoch in range(4, 6):
        query.run_until_done(epoch, rows, tries=30)
    assert counters_at(first.url) == Counter(dict.fromkeys(ids, 6))
    with connect(first.url) as client:
        assert home_of_primary(client) == "one"


def follow_until(feed: ElasticsearchFeed, is_enough: Callable[[], bool]) -> list[int]:
    """The ids of all rows of epochs that begin before it is enough, each as a query tries it."""
    at, found = Position(), list[int]()
    last = False
    while not last:
        last = is_enough()
        try:
            end = feed.advance(at, feed.latest(), None)
            parts = feed.between(at, end)
            rows = [
                row["id"] for one in parts for batch in feed.read(one) for row in batch.to_pylist()
            ]
        except StoreUnreachable:
            last = False
            time.sleep(0.3)
        else:
            at, found = end, found + rows
    return found


def test_documents_are_followed_once_each_past_a_primary_that_is_killed(
    two_nodes: tuple[ElasticsearchProcess, ElasticsearchProcess],
) -> None:
    first, second = two_nodes
    raw = {"url": first.url, "index": "counters", "startingPosition": "earliest", "timeout": "60"}
    parsed = options.parse(CONNECTOR.follows, raw)
    feed = CONNECTOR.feed(parsed, Scan(pa.schema([("id", pa.int64())])))
    written, enough = list[int](), threading.Event()

    def write() -> None:
        with connect(first.url) as client:
            for n in range(1_000_000):
                if enough.is_set():
                    return
                with suppress(ApiError, TransportError):
                    client.create(index="counters", id=str(n), document={"id": n})
                    written.append(n)

    def kill() -> int:
        wait_until(lambda: len(written) > 200, 60, "nothing is written")
        second.kill()
        there = len(written)
        wait_until(lambda: len(written) > there + 200, 120, "nothing is written any more")
        enough.set()
        return there

    with connect(first.url) as client, ThreadPoolExecutor(2) as pool:
        client.cluster.health(wait_for_status="green", timeout="60s")
        assert home_of_primary(client) == "two"
        writing, killing = pool.submit(write), pool.submit(kill)
        found = follow_until(feed, lambda: writing.done() and killing.done())
        assert killing.result() > 200
        assert home_of_primary(client) == "one"
        client.indices.refresh(index="counters")
        assert len(found) == client.count(index="counters")["count"]
    assert max(Counter(found).values()) == 1
    assert {*written} <= {*found}


@pytest.mark.slow
@pytest.mark.parametrize(
    "limit",
    [
        "network.breaker.inflight_requests.limit: 2mb",
        *slow_cases("indexing_pressure.memory.limit: 2mb"),
    ],
    ids=["breaker", "pressure"],
)
def test_request_that_a_node_has_never_room_for_is_cut_until_it_has(
    private_elasticsearch: Private, limit: str
) -> None:
    """It says 429 as if it were busy; what is staged of these rows is small."""
    node = private_elasticsearch(limit)
    options = {"index": "texts", "createIndex": "true", "timeout": "60"}
    query = ElasticsearchQuery(TEXTS, url=node.url, **options)
    query.sink.check()
    query.run(0, [{"id": id_, "text": "x" * 8000} for id_ in range(1000)])
    with connect_elasticsearch(node.url) as client:
        found = [row["id"] for row in documents(client, "texts").values()]
    assert sorted(found) == list(range(1000))
