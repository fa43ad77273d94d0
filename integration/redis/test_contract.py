"""The kit against a real Redis: small epochs in one script, large ones in a script a chunk."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
import redis
from integration.servers.finder import or_skip
from integration.servers.redis import REDIS, RedisProcess

from pyspark_redis.connector import RedisConnector
from pyspark_redis.store import RedisStore
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

# A driver that the kit lets die leaves its client to the garbage collector, which may take the
# socket before the connection that would have closed it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

DATABASES = 16
READ = """
local found = {}
for _, key in ipairs(redis.call('KEYS', 'rows:*')) do
  if redis.call('TYPE', key).ok == 'hash' then
    found[#found + 1] = key
    found[#found + 1] = redis.call('HGET', key, 'n')
  end
end
return found
"""
"""Read all counters in one step, so that a torn epoch is the writer's and not the reader's."""
CHUNKWISE = {"whole epochs": "a large epoch is applied chunk by chunk"}


class RedisSubject(ConnectorSubject):
    """A Redis database of its own. Each row adds 1 to the field `n` of the hash of its id."""

    pace = 9

    def __init__(self, url: str, *, whole_epochs: bool) -> None:
        self.client = redis.Redis.from_url(url)
        self.client.flushdb()
        self.whole_epochs = whole_epochs
        if not whole_epochs:
            self.limits = CHUNKWISE
        options = {"url": url, "key": "rows:{id}", "writeMode": "increment"}
        super().__init__(RedisConnector(), options, nowhere={"url": "redis://127.0.0.1:1"})

    def connect(self) -> RedisStore:
        store = super().connect()
        if not self.whole_epochs:
            store.small_cost = 0
        return store

    def took_effect(self) -> Counter[str]:
        found = self.client.eval(READ, 0)
        names = [key.decode().removeprefix("rows:") for key in found[::2]]
        return Counter(dict(zip(names, map(int, found[1::2]), strict=True)))

    def refuse(self, row: str) -> Callable[[], None]:
        """A key of another type: HINCRBY answers WRONGTYPE."""
        self.client.set(f"rows:{row}", "not a hash")
        return lambda: self.client.delete(f"rows:{row}")

    def snapshot(self) -> dict[bytes, bytes]:
        return {key: self.client.dump(key) for key in self.client.keys("*")}

    def restore(self, state: Any) -> None:
        self.client.flushdb()
        for key, value in state.items():
            self.client.restore(key, 0, value)

    def contents(self) -> dict[bytes, Any]:
        keys = sorted(self.client.keys("rows:*"))
        return {key: self.client.hgetall(key) for key in keys}


@pytest.fixture(scope="module")
def own_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server whose databases may be emptied: the container, where one is asked for."""
    if REDIS.asked == "container":
        yield request.getfixturevalue("redis_server").url
        return
    with or_skip(RedisProcess) as server:
        yield server.url


@pytest.fixture(params=[True, False], ids=["one script", "a script a chunk"])
def new_subject(
    request: pytest.FixtureRequest, own_url: str, caplog: pytest.LogCaptureFixture
) -> NewSubject:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    address, numbers = own_url.rsplit("/", 1)[0], count()
    return lambda: RedisSubject(
        f"{address}/{next(numbers) % DATABASES}", whole_epochs=request.param
    )


class TestRedisStore(StoreContract):
    pass
