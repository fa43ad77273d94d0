"""The primaries of a Redis Cluster, and a session that follows the ledger's slot among them."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import redis

from pyspark_redis.server.durability import Durability
from pyspark_redis.server.failures import translated
from pyspark_redis.server.session import Session
from pyspark_redis.server.slots import slot_of
from sparkonce.errors import StoreUnreachable

Address = tuple[str, int]


class Range(NamedTuple):
    """Slots from `first` to `last` of one primary."""

    first: int
    last: int
    address: Address


class Nodes:
    """Which primary serves which slot; asked for when it is needed, and again once it is wrong.

    Args:
        seeds: some nodes of the cluster, by which the others are found.
        connect: gives the client of a node; no other is asked by it.
    """

    def __init__(self, seeds: Sequence[Address], connect: Callable[[Address], redis.Redis]) -> None:
        self.connect, self._given, self.seeds = connect, tuple(seeds), list(seeds)
        self._known: list[Range] = []
        self._lock = threading.Lock()

    def ranges(self) -> list[Range]:
        """All slots, in their order.

        Raises:
            RedisError: no node tells them.
        """
        with self._lock:
            if not self._known:
                self._known = self._ask()
            return self._known

    def of(self, slot: int) -> redis.Redis:
        """The client of the primary that serves a slot."""
        return self.connect(self.range_of(slot).address)

    def range_of(self, slot: int) -> Range:
        """The slots around one that have the same primary.

        Raises:
            ClusterDownError: no primary serves it.
        """
        ranges = self.ranges()
        found = ranges[bisect_right(ranges, slot, key=lambda one: one.first) - 1]
        if not found.first <= slot <= found.last:
            self.forget()
            raise redis.exceptions.ClusterDownError(f"CLUSTERDOWN slot {slot} is not served")
        return found

    def primaries(self) -> list[redis.Redis]:
        """A client of each."""
        return [self.connect(one) for one in sorted({one.address for one in self.ranges()})]

    def forget(self) -> None:
        """Ask anew at the next request, another node first: the last one may know too little."""
        with self._lock:
            self._known = []
            self.seeds = [*self.seeds[1:], *self.seeds[:1]]

    def _ask(self) -> list[Range]:
        error: redis.RedisError = redis.ConnectionError("no node is known")
        for address in self.seeds:
            try:
                told: Any = self.connect(address).execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call]
            except redis.RedisError as failure:  # it may be of another cluster now, or of none
                error = failure
                continue
            if ranges := sorted(_ranges(told, address[0])):
                now = {one.address for one in ranges}
                asked = [seed for seed in self.seeds if seed in now or seed in self._given]
                self.seeds = [*asked, *sorted(now.difference(asked))]
                return ranges
        raise error


UNKNOWN = (None, "", "?")
"""What a node says that knows no name of another: https://redis.io/docs/latest/commands/cluster-slots/."""


def _ranges(told: Any, asked: str) -> Iterator[Range]:
    for first, last, (host, port, *_), *_ in told:
        name = host.decode() if isinstance(host, bytes) else host
        yield Range(int(first), int(last), (asked if name in UNKNOWN else name, int(port)))


class ClusterSession(Session):
    """Requests to the primary of the slot where ledger and staged rows lie."""

    def __init__(self, nodes: Nodes, prefix: str, durability: Durability) -> None:
        super().__init__(self._primary, prefix, durability)
        self.nodes, self.slot = nodes, slot_of(self.key("").encode())

    def _primary(self) -> redis.Redis:
        with translated("asking for the nodes of the cluster"):
            return self.nodes.of(self.slot)

    @contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """See `translated`. Where it fails, a slot may have moved, or a replica taken over."""
        try:
            with super().asking(doing):
                yield
        except StoreUnreachable:
            self.nodes.forget()
            raise
