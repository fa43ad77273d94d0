"""What only OpenSearch does."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from integration.support.elasticsearch import (
    CHANGES,
    ONE,
    ROWS,
    Index,
    Private,
    feed,
    numbers,
    put,
    row,
)
from integration.support.servers.elasticsearch import connect, is_opensearch

from pyspark_opensearch.dialect import is_on
from sparkonce.errors import StoreUnreachable, StoreUnsafe
from sparkonce.reading import OneOf

pytestmark = [
    pytest.mark.variants,
    pytest.mark.skipif(not is_opensearch(), reason="it is not OpenSearch"),
]
COLUMNS = pa.schema([("id", pa.int64()), ("land", pa.string())])


def release(index: Index) -> tuple[int, ...]:
    return tuple(map(int, index.client.info()["version"]["number"].split(".")[:2]))


def test_query_that_the_cluster_rewrites_finds_the_same(index: Index) -> None:
    """The cluster divides a short list inside a `bool` into terms that must all match."""
    if release(index) < (3, 3):
        pytest.skip("it does not rewrite queries")
    lands = ("FR", "DE", "ES")
    index.fill(
        {"id": {"type": "long"}, "land": {"type": "keyword"}},
        ({"id": at, "land": lands[at % 3]} for at in range(60)),
    )
    setting = {"search.query_rewriting.enabled": True}
    index.client.cluster.put_settings(persistent=setting)
    try:
        twenty = OneOf("id", tuple(range(20)))
        some = OneOf("land", ("FR", "DE"))
        by_query = index.source(COLUMNS, [twenty], query='{"terms": {"land": ["FR", "DE"]}}')
        for made in (by_query, index.source(COLUMNS, [twenty, some])):
            batches = [batch for split in made.splits() for batch in made.read(split)]
            found = Counter(value for batch in batches for value in batch["id"].to_pylist())
            assert found == Counter(at for at in range(20) if at % 3 < 2)
    finally:
        index.client.cluster.put_settings(persistent=dict.fromkeys(setting))


def test_index_that_only_takes_new_documents_is_refused_behind_a_template(index: Index) -> None:
    index.client.indices.create(
        index=f"{index}-1", settings={"append_only.enabled": True, "number_of_replicas": 0}
    )
    with pytest.raises(StoreUnsafe, match=rf"{index}-1 has index.append_only.enabled=true"):
        index.into(ROWS, index=f"{index}-{{id}}", createIndex="false")


def test_clean_up_does_not_pass_through_the_pipeline_of_an_index(index: Index) -> None:
    """A default search pipeline may hide documents from a delete by query."""
    if release(index) < (3, 0):
        pytest.skip("the server from Maven has no such processor")
    json = {"accept": "application/json", "content-type": "application/json"}
    prefix = f"{index}-own"
    query = index.into(ROWS, key="id", indexPrefix=prefix)
    pipeline = {"response_processors": [{"truncate_hits": {"target_size": 1}}]}
    at = f"/_search/pipeline/{index}"
    index.client.perform_request("PUT", at, body=pipeline, headers=json)
    try:
        index.client.indices.put_settings(
            index=f"{prefix}-log", settings={"index.search.default_pipeline": index}
        )
        for attempt in range(5):
            query.stage(attempt, [row(attempt)])
        store = query.sink.store
        store.log.refresh()
        assert len(store.staged(query.name)) == 5
        store.discard(query.name, [one.attempt for one in store.staged(query.name)])
        store.log.refresh()
        assert store.staged(query.name) == []
    finally:
        index.client.indices.delete(index=f"{prefix}-log")
        index.client.perform_request("DELETE", at, headers=json)


def test_too_many_points_in_time_are_told(private_elasticsearch: Private) -> None:
    node = private_elasticsearch("search.max_open_pit_context: 2")
    with connect(node.url) as client:
        index = Index("orders", node.url, client)
        index.fill({"n": {"type": "long"}}, [{"n": 1}], settings={"number_of_shards": 3})
        with pytest.raises(StoreUnreachable, match="lower option keepAlive"):
            index.source().splits()


def test_point_in_time_says_on_which_nodes_it_is(index: Index) -> None:
    """So a stream notices that an old state of the cluster led to another copy."""
    index.fill({"n": {"type": "long"}}, [{"n": 1}])
    (node,) = index.client.nodes.info()["nodes"]
    point = index.source().splits()[0].point
    assert is_on(point, node)
    assert not is_on(point, node[::-1])


def test_stream_reads_a_cluster_with_weights_for_its_zones(private_elasticsearch: Private) -> None:
    """Such a cluster rejects a search on nodes by name."""
    node = private_elasticsearch(
        "node.attr.zone: a",
        "cluster.routing.allocation.awareness.attributes: zone",
        "cluster.routing.allocation.awareness.force.zone.values: a,b",
    )
    json = {"accept": "application/json", "content-type": "application/json"}
    with connect(node.url) as client:
        client.indices.create(index="orders", settings=ONE)
        put(client, "orders", range(5))
        weights = {"weights": {"a": "1", "b": "1"}, "_version": -1}
        at = "/_cluster/routing/awareness/zone/weights"
        client.perform_request("PUT", at, body=weights, headers=json)
        made = feed(node.url, "orders", CHANGES)
        assert numbers(made, made.begin(), made.latest()) == [*range(5)]
