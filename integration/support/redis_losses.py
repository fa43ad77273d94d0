"""A query of a cluster, and nodes that go back to an earlier moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from integration.support.counters import COUNTER
from integration.support.epochs import DirectQuery
from integration.support.redis_everywhere import Everywhere
from integration.support.servers.redis_cluster import RedisCluster

from pyspark_redis.server.nodes import slot_of

IDS, BAD = range(30), 3
Dump = dict[bytes, bytes]


class World:
    """A query with keys of its own: rows in one slot, its ledger in another."""

    def __init__(self, cluster: RedisCluster, name: str) -> None:
        self.everywhere, self.name = Everywhere(cluster), name
        options = {"url": cluster.url, "keyPrefix": name, "key": f"{name}-{{{{x}}}}{{id}}"}
        aside = {"onBadRow": "deadLetter", "deadLetter": "bad", "maxBadRows": "50%"}
        self.query = DirectQuery(
            COUNTER, **options, **aside, writeMode="increment", chunkRows="10", maxRetries="3"
        )
        client, key = self.everywhere.of(f"{name}-{{x}}{BAD}")
        client.set(key, "mine")

    def is_of(self, place: str) -> Callable[[bytes], bool]:
        ledger = slot_of(f"{{{self.name}}}".encode())
        slots = {"ledger": ledger, "rows": slot_of(b"x")}
        return lambda key: slot_of(key) == slots[place] and self.name.encode() in key

    def dump(self, place: str) -> Dump:
        belongs = self.is_of(place)
        found = self.everywhere.keys(b"")
        return {key: client.dump(key) for client, key in found if belongs(key)}

    def restore(self, place: str, state: Dump) -> None:
        for client, key in list(self.everywhere.keys(b"")):
            if self.is_of(place)(key):
                client.unlink(key)
        for key, value in state.items():
            self.everywhere.of(key)[0].restore(key, 0, value)

    def counts(self) -> Counter[int]:
        found = Counter[int]()
        for client, key in self.everywhere.keys(f"{self.name}-{{x}}".encode()):
            if client.type(key) == b"hash":
                found[int(key.rpartition(b"}")[2])] = int(client.hget(key, "n"))
        return found

    def letters(self) -> int:
        (box,) = self.query.sink.store.letterboxes()
        return len(box.read(None, 99))
