"""Shared by tests of Redis: drivers that die, a view of all cluster nodes, and changes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import pyarrow as pa
import redis
from integration.support.epochs import COUNTER, DirectQuery, Named
from integration.support.servers.redis import RedisProcess, connect
from integration.support.servers.redis_cluster import RedisCluster
from redis import Redis

from pyspark_redis.connector import RedisConnector
from pyspark_redis.follow.feed import RedisFeed
from pyspark_redis.read.source import RedisSource
from pyspark_redis.server.nodes import slot_of
from sparkonce import options
from sparkonce.reading import Filter, Position, Scan


class Keys(Named):
    """The prefix of a test's keys, and the operations of tests on these keys."""

    def query(self, schema: pa.Schema, **options: str) -> DirectQuery:
        """A query whose rows have keys with this prefix and their column `id`."""
        return DirectQuery(schema, **{"url": self.url, "key": f"{self}:{{id}}", **options})

    def feed(self, **raw: Any) -> RedisFeed:
        """The entries of the stream of this name, from the first one."""
        return feed(self.url, self, **raw)


def dies_of(step: Callable[[], object]) -> bool:
    try:
        step()
    except KeyboardInterrupt:
        return True
    return False


class Everywhere:
    """The keys of a cluster."""

    def __init__(self, cluster: RedisCluster) -> None:
        self.cluster = cluster

    @cached_property
    def clients(self) -> dict[int, redis.Redis]:
        """The client of a slot's node."""
        return {slot: client for client, slots in self.nodes for slot in slots}

    @cached_property
    def nodes(self) -> list[tuple[redis.Redis, list[int]]]:
        return [(connect(node.url), node.slots) for node in self.cluster.heads()]

    def of(self, key: str | bytes) -> tuple[redis.Redis, bytes]:
        """The client of the node of a key, and the key."""
        name = key.encode() if isinstance(key, str) else key
        return self.clients[slot_of(name)], name

    def keys(self, *begins: bytes) -> Iterator[tuple[redis.Redis, bytes]]:
        """The keys with this prefix, each with the client of its node."""
        for client, _ in self.nodes:
            for key in client.scan_iter(count=10_000):
                if key.startswith(begins):
                    yield client, key


def counts(cluster: RedisCluster, unique: str) -> Counter[int]:
    """The number of effects of each row: a multiset."""
    return _counts(Everywhere(cluster), f"{unique}:")


def _counts(everywhere: Everywhere, begin: str) -> Counter[int]:
    """The number at the end of a key, perhaps after a brace."""
    found = Counter[int]()
    for client, key in everywhere.keys(begin.encode()):
        if client.type(key) == b"hash":
            found[int(re.split(rb"[:}]", key)[-1])] = int(client.hget(key, "n"))
    return found


Private = Callable[..., RedisProcess]
"""Starts a private server of the test, with these settings."""

IDS, BAD = range(30), 3
Dump = dict[bytes, bytes]


class World:
    """A query with its own keys: rows in one slot, its ledger in another."""

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
        return _counts(self.everywhere, f"{self.name}-{{x}}")

    def letters(self) -> int:
        (box,) = self.query.sink.store.letterboxes()
        return len(box.read(None, 99))


CHANGES = pa.schema([("_id", pa.string()), ("n", pa.int64())])


def feed(url: str, *streams: str, schema: pa.Schema = CHANGES, **raw: str) -> RedisFeed:
    given = {"url": url, "streams": ",".join(streams), "startingPosition": "earliest", **raw}
    parsed = options.parse(RedisConnector.follows, given)
    return RedisConnector().feed(parsed, Scan(schema))


def changes(made: RedisFeed, after: Position, end: Position) -> list[dict[str, Any]]:
    return [
        row
        for split in made.between(after, end)
        for batch in made.read(split)
        for row in batch.to_pylist()
    ]


def numbers(made: RedisFeed, after: Position, end: Position) -> list[int]:
    return [row["n"] for row in changes(made, after, end)]


def source(
    url: str, schema: pa.Schema | None = None, filters: Iterable[Filter] = (), **raw: str
) -> RedisSource:
    parsed = options.parse(RedisConnector.reads, {"url": url, **raw})
    schema = schema or RedisConnector().infer(parsed)
    return RedisConnector().source(parsed, Scan(schema, tuple(filters)))


def read_rows(made: RedisSource) -> list[dict[str, Any]]:
    found = [batch for split in made.splits() for batch in made.read(split)]
    return sorted((row for batch in found for row in batch.to_pylist()), key=repr)


def add(client: Redis, key: str, numbers: range) -> list[str]:
    """Add entries with these numbers by a plain client; return their ids."""
    pipeline = client.pipeline(transaction=False)
    for n in numbers:
        pipeline.xadd(key, {"n": n})
    return [one.decode() for one in pipeline.execute()]


def delete(client: Redis, key: str) -> None:
    """Delete a stream, and wait: entries of the same millisecond would get the same ids."""
    client.delete(key)
    time.sleep(0.002)


def drain(made: RedisFeed, splits: Iterable[Any]) -> None:
    for split in splits:
        for _ in made.read(split):
            pass


def followed(made: RedisFeed, at: Position, most: int | None) -> tuple[Position, list[int]]:
    """The rows that a query reads until no new ones exist; reads each epoch twice."""
    found, goal = list[int](), made.latest()
    while goal != at and (to := made.advance(at, goal, most)) != at:
        epoch = numbers(made, at, to)
        assert numbers(made, at, to) == epoch
        at, found = to, found + epoch
    return at, found
