"""The kit against a real Redis Cluster: rows lie in all slots, ledger and staged rows in one."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import pytest
from integration.support.marks import slow_cases
from integration.support.redis_everywhere import Everywhere
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.connector import RedisConnector
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

READ = {
    "hash": lambda client, key: client.hget(key, "n"),
    "list": lambda client, key: client.llen(key),
}
COUNTED = {"hash": {"writeMode": "increment"}, "list": {"model": "list"}}


class ClusterSubject(ConnectorSubject):
    """Keys of its own in a cluster. Each row adds 1 to what lies under its id."""

    pace = 60
    limits: Mapping[str, str] = {"whole epochs": "readers see the slots of a cluster one by one"}

    def __init__(self, cluster: RedisCluster, world: str, model: str) -> None:
        self.everywhere, self.world, self.model = Everywhere(cluster), world, model
        own = {"url": cluster.url, "keyPrefix": world, "key": f"{world}-rows:{{id}}"}
        nowhere = {"url": "redis+cluster://127.0.0.1:1"}
        super().__init__(RedisConnector(), {**own, **COUNTED[model]}, nowhere=nowhere)

    def took_effect(self) -> Counter[str]:
        begin = f"{self.world}-rows:".encode()
        return Counter(
            {
                key.removeprefix(begin).decode(): int(READ[self.model](client, key))
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
def new_subject(
    request: pytest.FixtureRequest, cluster: RedisCluster, caplog: pytest.LogCaptureFixture
) -> NewSubject:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    numbers = count()

    def make() -> ClusterSubject:
        subject = ClusterSubject(cluster, f"w{next(numbers)}", request.param)
        subject.empty()
        return subject

    return make


class TestRedisCluster(StoreContract):
    pass
