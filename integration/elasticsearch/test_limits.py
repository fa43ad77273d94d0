"""Requests that are too much for a limit on memory of a node, whenever they come."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from integration.support.documents import documents
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases
from integration.support.servers.elasticsearch import ElasticsearchProcess
from integration.support.servers.elasticsearch import connect as connect_elasticsearch

TEXTS = pa.schema([("id", pa.int64()), ("text", pa.string())])


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
    private_elasticsearch: Callable[..., ElasticsearchProcess], limit: str
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
