"""What tests of the shared Redis have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
import redis
from integration.support.epochs import DirectQuery, Make
from integration.support.redis import Keys
from integration.support.servers.finder import or_skip
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.store import RedisStore

WAYS = {"one script": RedisStore.small_cost, "a script a chunk": 0}
"""Up to which cost an epoch is applied by one script."""


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def keys(redis_url: str, unique: str, client: redis.Redis) -> Keys:
    return Keys(unique, redis_url, client)


@pytest.fixture(params=WAYS.values(), ids=list(WAYS))
def into(keys: Keys, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a query with keys of its own; an epoch is one script, or a script a chunk."""

    def make(schema: pa.Schema, **options: str) -> DirectQuery:
        query = keys.query(schema, **options)
        monkeypatch.setattr(query.sink.store, "small_cost", request.param)
        return query

    return make


@pytest.fixture(scope="session")
def cluster() -> Iterator[RedisCluster]:
    """Three primaries that all tests of a process share."""
    with or_skip(lambda: RedisCluster(replicas=0)) as started:
        yield started


@pytest.fixture
def replicated() -> Iterator[RedisCluster]:
    """Three primaries of the test's own, each with a replica."""
    with or_skip(RedisCluster) as started:
        yield started
