"""What tests of `spark.read.format("redis")` have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.support.servers.redis import connect
from redis import Redis


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and blocks of few keys."""
    monkeypatch.setattr("pyspark_redis.read.source.ROWS", 50)
    monkeypatch.setattr("pyspark_redis.read.source.AT_ONCE", 40)
    monkeypatch.setattr("pyspark_redis.read.servers.SCANNED", b"20")


@pytest.fixture
def client(redis_url: str, unique: str) -> Iterator[Redis]:
    """A plain client; keys that begin as the test's own go in the end."""
    with connect(redis_url) as client:
        yield client
        for key in client.scan_iter(f"{unique}*", count=1000):
            client.unlink(key)
