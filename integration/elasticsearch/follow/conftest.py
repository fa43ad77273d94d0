"""What tests of `spark.readStream.format("elasticsearch")` have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.support.elasticsearch import Index


@pytest.fixture(autouse=True)
def gone(index: Index) -> Iterator[None]:
    """Indices, streams and templates that begin as the test's own go in the end."""
    yield
    client = index.client.options(ignore_status=(400, 404, 405))
    client.indices.delete_data_stream(name=f"{index}*")
    found = client.indices.get(index=f"{index}*", expand_wildcards="all", features="settings")
    for name in found.body:
        client.indices.delete(index=name)
    client.indices.delete_index_template(name=index)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Splits and pages of few documents."""
    monkeypatch.setattr("pyspark_elasticsearch.follow.feed.LARGE", 20)
    monkeypatch.setattr("pyspark_elasticsearch.read.pages.FIRST", 10)
