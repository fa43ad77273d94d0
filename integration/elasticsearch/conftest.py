"""Fixtures for tests of Elasticsearch alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import Index, Private
from integration.support.epochs import ElasticsearchQuery
from integration.support.opensearch_lacks import lacking
from integration.support.proxy import Proxy
from integration.support.servers.elasticsearch import (
    ElasticsearchProcess,
    is_opensearch,
    private_tree,
)
from integration.support.servers.finder import or_skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of what OpenSearch lacks, if the tests run with OpenSearch."""
    for item in items if is_opensearch() else ():
        if "integration/elasticsearch" in item.nodeid and (what := lacking(item.name)):
            item.add_marker(pytest.mark.skip(reason=f"OpenSearch lacks {what}"))


@pytest.fixture
def index(index: str, elasticsearch_url: str, elastic: Elasticsearch) -> Index:
    return Index(index, elasticsearch_url, elastic)


@pytest.fixture
def into_index(index: Index) -> Callable[..., ElasticsearchQuery]:
    """Make a checked query into the index, which is made from its schema if it is not there."""
    return index.into


@pytest.fixture
def stream(elastic: Elasticsearch, index: Index) -> str:
    """A data stream. Servers without the module for them make one by a first document."""
    template = {
        "settings": {"number_of_replicas": 0},
        "mappings": {"dynamic": "strict", "properties": {"id": {"type": "long"}}},
    }
    elastic.indices.put_index_template(
        name=index, index_patterns=[index], data_stream={}, template=template
    )
    first = elastic.index(index=index, document={"@timestamp": 0, "id": 0}, op_type="create")
    elastic.delete(index=first["_index"], id=first["_id"])
    return index


@pytest.fixture
def private_elasticsearch() -> Iterator[Private]:
    """Start a node of the test's own: `private_elasticsearch("http.max_content_length: 1mb")`."""
    with ExitStack() as running:

        def start(*config: str, **settings: Any) -> ElasticsearchProcess:
            return running.enter_context(
                or_skip(lambda: ElasticsearchProcess(private_tree(), *config, **settings))
            )

        yield start


@pytest.fixture
def elasticsearch_proxy(elasticsearch_url: str) -> Iterator[Proxy]:
    """Stand between a test and the shared cluster, to make the network fail."""
    with Proxy(elasticsearch_url) as proxy:
        yield proxy
