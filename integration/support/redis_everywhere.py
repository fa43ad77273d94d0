"""All nodes of a cluster, as one place, for tests alone: nothing moves while they look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

import redis
from integration.support.servers.redis import connect
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.server.nodes import slot_of


class Everywhere:
    """The keys of a cluster."""

    def __init__(self, cluster: RedisCluster) -> None:
        self.cluster = cluster

    @cached_property
    def clients(self) -> dict[int, redis.Redis]:
        """By slot."""
        return {slot: client for client, slots in self.nodes for slot in slots}

    @cached_property
    def nodes(self) -> list[tuple[redis.Redis, list[int]]]:
        return [(connect(node.url), node.slots) for node in self.cluster.heads()]

    def of(self, key: str | bytes) -> tuple[redis.Redis, bytes]:
        """The client of the node of a key, and the key."""
        name = key.encode() if isinstance(key, str) else key
        return self.clients[slot_of(name)], name

    def keys(self, *begins: bytes) -> Iterator[tuple[redis.Redis, bytes]]:
        """The keys that begin so, each with the client of its node."""
        for client, _ in self.nodes:
            for key in client.scan_iter(count=10_000):
                if key.startswith(begins):
                    yield client, key


def counts(cluster: RedisCluster, unique: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    found = Counter[int]()
    for client, key in Everywhere(cluster).keys(f"{unique}:".encode()):
        if client.type(key) == b"hash":
            found[int(key.rpartition(b":")[2].rpartition(b"}")[2])] = int(client.hget(key, "n"))
    return found
