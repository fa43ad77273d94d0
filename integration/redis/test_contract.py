"""The kit against a real Redis: small epochs in one script, large ones in a script a chunk."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from integration.support.marks import slow_cases
from integration.support.redis import Everywhere
from integration.support.servers.finder import or_skip
from integration.support.servers.redis import REDIS, RedisProcess
from integration.support.servers.redis_cluster import RedisCluster
from redis import Redis

from pyspark_redis.connector import RedisConnector
from pyspark_redis.store import RedisStore
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

DATABASES = 16
READ = """
local read = {
  hash = function(key) return redis.call('HGET', key, 'n') end,
  string = function(key) return redis.call('GET', key) end,
  list = function(key) return redis.call('LLEN', key) end,
  stream = function(key) return redis.call('XLEN', key) end,
}
if ARGV[1] == 'zset' then return redis.call('ZRANGE', 'rows:1', 0, -1, 'WITHSCORES') end
local found = {}
for _, key in ipairs(redis.call('KEYS', 'rows:*')) do
  if redis.call('TYPE', key).ok == ARGV[1] then
    found[#found + 1] = key:sub(6)
    found[#found + 1] = read[ARGV[1]](key)
  end
end
return found
"""
"""Read all counters in one step, so that a torn epoch is the writer's and not the reader's."""

COUNTED = {
    "hash": ("hash", {"writeMode": "increment"}),
    "counter": ("string", {"model": "counter"}),
    "list": ("list", {"model": "list"}),
    "stream": ("stream", {"model": "stream"}),
    "zset": ("zset", {"model": "zset", "writeMode": "increment", "scoreColumn": "n"}),
}
"""By the model whose rows add up: the type of its keys, and options."""

CHUNKWISE = {"whole epochs": "a large epoch is applied chunk by chunk"}


class RedisSubject(ConnectorSubject):
    """A Redis database of its own. Each row adds 1 to what lies under its id."""

    pace = 9

    def __init__(self, url: str, model: str, *, whole_epochs: bool) -> None:
        self.client = Redis.from_url(url)
        self.client.flushdb()
        self.whole_epochs = whole_epochs
        if not whole_epochs:
            self.limits = CHUNKWISE
        self.kind, options = COUNTED[model]
        # In a sorted set the id is the member, and all rows have the same key.
        options = {"url": url, "key": f"rows:{{{'n' if model == 'zset' else 'id'}}}", **options}
        super().__init__(RedisConnector(), options, nowhere={"url": "redis://127.0.0.1:1"})

    def connect(self) -> RedisStore:
        store = super().connect()
        if not self.whole_epochs:
            store.small_cost = 0
        return store

    def took_effect(self) -> Counter[str]:
        found = self.client.eval(READ, 0, self.kind)
        names = [name.decode() for name in found[::2]]
        return Counter(dict(zip(names, map(int, found[1::2]), strict=True)))

    def refuse(self, row: str) -> Callable[[], None]:
        """A key of another type, or a score that is full."""
        if self.kind == "zset":
            self.client.zadd("rows:1", {row: 2**53})
            return lambda: self.client.zrem("rows:1", row)
        self.client.sadd(f"rows:{row}", "of another type")
        return lambda: self.client.delete(f"rows:{row}")

    def snapshot(self) -> dict[bytes, bytes]:
        return {key: self.client.dump(key) for key in self.client.keys("*")}

    def restore(self, state: Any) -> None:
        self.client.flushdb()
        for key, value in state.items():
            self.client.restore(key, 0, value)

    def contents(self) -> dict[bytes, Any]:
        return {key: self.client.dump(key) for key in sorted(self.client.keys("rows:*"))}


@pytest.fixture(scope="module")
def own_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server whose databases may be emptied: the container, where one is asked for."""
    if REDIS.asked == "container":
        yield request.getfixturevalue("redis_server").url
        return
    with or_skip(RedisProcess) as server:
        yield server.url


WAYS = [("hash", True), ("hash", False)]
WAYS += slow_cases(("stream", False), ("counter", False), ("list", False), ("zset", False))


@pytest.fixture(params=WAYS, ids=str)
def new_subject(
    request: pytest.FixtureRequest, own_url: str, caplog: pytest.LogCaptureFixture
) -> NewSubject:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    address, numbers = own_url.rsplit("/", 1)[0], count()
    model, whole = request.param
    return lambda: RedisSubject(f"{address}/{next(numbers) % DATABASES}", model, whole_epochs=whole)


# A driver that the kit lets die leaves its client to the garbage collector, which may take the
# socket before the connection that would have closed it.
@pytest.mark.variants
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
class TestRedisStore(StoreContract):
    pass


READ_OF_NODE = {
    "hash": lambda client, key: client.hget(key, "n"),
    "list": lambda client, key: client.llen(key),
}

COUNTED_IN_CLUSTER = {"hash": {"writeMode": "increment"}, "list": {"model": "list"}}


class ClusterSubject(ConnectorSubject):
    """Keys of its own in a cluster. Each row adds 1 to what lies under its id."""

    pace = 60
    limits: Mapping[str, str] = {"whole epochs": "readers see the slots of a cluster one by one"}

    def __init__(self, cluster: RedisCluster, world: str, model: str) -> None:
        self.everywhere, self.world, self.model = Everywhere(cluster), world, model
        own = {"url": cluster.url, "keyPrefix": world, "key": f"{world}-rows:{{id}}"}
        nowhere = {"url": "redis+cluster://127.0.0.1:1"}
        super().__init__(RedisConnector(), {**own, **COUNTED_IN_CLUSTER[model]}, nowhere=nowhere)

    def took_effect(self) -> Counter[str]:
        begin = f"{self.world}-rows:".encode()
        return Counter(
            {
                key.removeprefix(begin).decode(): int(READ_OF_NODE[self.model](client, key))
                for client, key in self.everywhere.keys(begin)
                if client.type(key).decode() == self.model
            }
        )

    def refuse(self, row: str) -> Callable[[], None]:
        client, key = self.everywhere.of(f"{self.world}-rows:{row}")
        client.sadd(key, "of another type")
        return lambda: client.delete(key)

    def snapshot(self) -> dict[bytes, bytes]:
        return {key: client.dump(key) for client, key in self.everywhere.keys(*self.begins)}

    def restore(self, state: Any) -> None:
        self.empty()
        for key, value in state.items():
            self.everywhere.of(key)[0].restore(key, 0, value)

    def contents(self) -> dict[bytes, Any]:
        begin = f"{self.world}-rows:".encode()
        found = {key: client.dump(key) for client, key in self.everywhere.keys(begin)}
        return dict(sorted(found.items()))

    def empty(self) -> None:
        for client, key in list(self.everywhere.keys(*self.begins)):
            client.delete(key)

    @property
    def begins(self) -> list[bytes]:
        return [f"{self.world}".encode(), f"{{{self.world}}}".encode()]


@pytest.fixture(params=["hash", *slow_cases("list")])
def clustered(
    request: pytest.FixtureRequest, cluster: RedisCluster, caplog: pytest.LogCaptureFixture
) -> NewSubject:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    numbers = count()

    def make() -> ClusterSubject:
        subject = ClusterSubject(cluster, f"w{next(numbers)}", request.param)
        subject.empty()
        return subject

    return make


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
class TestRedisCluster(StoreContract):
    @pytest.fixture
    def new_subject(self, clustered: NewSubject) -> NewSubject:
        return clustered
