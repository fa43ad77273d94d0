"""Fixtures for tests of Elasticsearch alone."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from integration.support.epochs import ElasticsearchQuery
from integration.support.proxy import Proxy
from integration.support.servers.elasticsearch import ElasticsearchProcess, private_tree
from integration.support.servers.finder import or_skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa


@pytest.fixture
def into_index(elasticsearch_url: str, index: str) -> Callable[..., ElasticsearchQuery]:
    """Make a checked query into the index, which is made from its schema if it is not there."""

    def make(schema: pa.Schema, **options: str) -> ElasticsearchQuery:
        given = {"url": elasticsearch_url, "index": index, "createIndex": "true", **options}
        query = ElasticsearchQuery(schema, **given)
        query.sink.check()
        return query

    return make


@pytest.fixture
def private_elasticsearch() -> Iterator[Callable[..., ElasticsearchProcess]]:
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
