"""What tests of `spark.readStream.format("redis")` have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from integration.support.servers.redis import connect, require_followable
from redis import Redis


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of few entries, and splits that are worth it."""
    monkeypatch.setattr("pyspark_redis.follow.feed.PAGE", 20)
    monkeypatch.setattr("pyspark_redis.follow.feed.BLOCK", 2000)
    monkeypatch.setattr("pyspark_redis.follow.feed.LARGE", 100)


@pytest.fixture
def client(redis_url: str, unique: str) -> Iterator[Redis]:
    """A plain client; keys that begin as the test's own go in the end."""
    require_followable(redis_url)
    with connect(redis_url) as client:
        yield client
        for key in client.scan_iter(f"{unique}*", count=1000):
            client.unlink(key)
