"""The primaries of a Redis Cluster, and a session that follows the ledger's slot among them."""

from __future__ import annotations

import threading
from binascii import crc_hqx
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple

import redis

from pyspark_redis.server.failures import translated
from pyspark_redis.server.session import Durability, RedisSession
from sparkonce.errors import StoreUnreachable

SLOTS = 16_384

Address = tuple[str, int]

UNKNOWN = (None, "", "?")
"""Replies of a node without a host name: https://redis.io/docs/latest/commands/cluster-slots/."""


def slot_of(key: bytes) -> int:
    """The slot of a key: that of the text in its first braces, if any, else of the whole key."""
    _, opened, rest = key.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return crc_hqx(tag if opened and closed and tag else key, 0) % SLOTS


@lru_cache(1)
def tags() -> list[str]:
    """For each slot, the smallest number whose decimal text hashes to that slot."""
    found: dict[int, str] = {}
    for text in map(str, count()):
        found.setdefault(crc_hqx(text.encode(), 0) % SLOTS, text)
        if len(found) == SLOTS:
            break
    return [found[slot] for slot in range(SLOTS)]


class SlotRange(NamedTuple):
    """Slots from `first` to `last`, which one primary serves."""

    first: int
    last: int
    address: Address


class Nodes:
    """Which primary serves which slot; read on demand, and again after `forget`.

    Args:
        seeds: the nodes that name the other nodes.
        connect: returns a client of one node.
    """

    def __init__(self, seeds: Sequence[Address], connect: Callable[[Address], redis.Redis]) -> None:
        self.connect, self._given, self.seeds = connect, tuple(seeds), list(seeds)
        self._known: list[SlotRange] = []
        self._lock = threading.Lock()

    def ranges(self) -> list[SlotRange]:
        """All slots in ascending order; RedisError if no node reports them."""
        with self._lock:
            if not self._known:
                self._known = self._ask()
            return self._known

    def of(self, slot: int) -> redis.Redis:
        """The client of the primary that serves the slot."""
        return self.connect(self.range_of(slot).address)

    def range_of(self, slot: int) -> SlotRange:
        """The range of slots that contains this one; ClusterDownError if no primary serves it."""
        ranges = self.ranges()
        found = ranges[bisect_right(ranges, slot, key=lambda one: one.first) - 1]
        if not found.first <= slot <= found.last:
            self.forget()
            raise redis.exceptions.ClusterDownError(f"CLUSTERDOWN slot {slot} is not served")
        return found

    def primaries(self) -> list[redis.Redis]:
        """A client of each primary."""
        return [self.connect(one) for one in sorted({one.address for one in self.ranges()})]

    def forget(self) -> None:
        """Read the slots again at the next request, from another node: this one may be stale."""
        with self._lock:
            self._known = []
            self.seeds = [*self.seeds[1:], *self.seeds[:1]]

    def _ask(self) -> list[SlotRange]:
        error: redis.RedisError = redis.ConnectionError("no node is known")
        for address in self.seeds:
            try:
                slots: Any = self.connect(address).execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
            except redis.RedisError as failure:  # the node may have left the cluster
                error = failure
                continue
            if ranges := sorted(_ranges(slots, address[0])):
                now = {one.address for one in ranges}
                asked = [seed for seed in self.seeds if seed in now or seed in self._given]
                self.seeds = [*asked, *sorted(now.difference(asked))]
                return ranges
        raise error


def _ranges(slots: Any, asked: str) -> Iterator[SlotRange]:
    for first, last, (host, port, *_), *_ in slots:
        name = host.decode() if isinstance(host, bytes) else host
        yield SlotRange(int(first), int(last), (asked if name in UNKNOWN else name, int(port)))


class ClusterSession(RedisSession):
    """Requests to the primary of the slot that holds the ledger and the staged rows."""

    def __init__(self, nodes: Nodes, prefix: str, durability: Durability) -> None:
        super().__init__(self._primary, prefix, durability)
        self.nodes, self.slot = nodes, slot_of(self.key("").encode())

    def _primary(self) -> redis.Redis:
        with translated("asking for the nodes of the cluster"):
            return self.nodes.of(self.slot)

    @contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """See `translated`. After a failure a slot may have moved, or a replica taken over."""
        try:
            with super().asking(doing):
                yield
        except StoreUnreachable:
            self.nodes.forget()
            raise
