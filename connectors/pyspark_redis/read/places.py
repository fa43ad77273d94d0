"""Where keys lie: on one server, or by slots on the primaries of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import redis

from pyspark_redis.read.scan import ALL, Part, Ranges, divided, share
from pyspark_redis.server.failures import moves
from pyspark_redis.server.nodes import Nodes
from pyspark_redis.server.slots import slot_of
from pyspark_redis.write.preflight import require_alone

READING = "reading keys"

FEWEST = 2
"""Splits of one server, which does one thing at a time: each of them scans all of its keys."""

LARGEST = 2_000_000
"""Keys of a split: a task holds the names of all of them."""


class Places(Protocol):
    """The servers.

    Attributes:
        place: gives the slot of a key, modulo the number of slots.
    """

    place: Callable[[bytes], int]

    def splits(self, parts: int | None) -> Iterator[Part]:
        """So many splits, or as many as there should be."""

    def servers(self, part: Part) -> Iterator[tuple[redis.Redis, Part]]:
        """The servers of a split, one after the other, and what each has of it.

        Raises:
            StoreUnreachable: keys move between them meanwhile.
        """

    def holder(self, key: bytes) -> redis.Redis:
        """The server that has a key."""


class OneServer:
    """A server without slots: keys are divided by a checksum."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.place: Callable[[bytes], int] = share

    def splits(self, parts: int | None) -> Iterator[Part]:
        """See `Places.splits`."""
        return divided(ALL, parts or max(FEWEST, _large(self.client)))

    def servers(self, part: Part) -> Iterator[tuple[redis.Redis, Part]]:
        """See `Places.servers`."""
        require_alone(self.client.info("cluster"))
        yield self.client, part

    def holder(self, key: bytes) -> redis.Redis:  # noqa: ARG002 (it has all)
        """See `Places.holder`."""
        return self.client


class Cluster:
    """The primaries of a cluster. Each split is of one primary, as long as no slot moves."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.place: Callable[[bytes], int] = slot_of

    def splits(self, parts: int | None) -> Iterator[Part]:
        """See `Places.splits`."""
        owners = self._owners(ALL)
        for address, ranges in owners.items():
            each = -(-parts // len(owners)) if parts else _large(self.nodes.connect(address))
            yield from divided(ranges, each)

    def servers(self, part: Part) -> Iterator[tuple[redis.Redis, Part]]:
        """See `Places.servers`. A slot on its way has keys on two of them."""
        self.nodes.forget()
        owners = self._owners(part.ranges)
        self._require_still(owners)
        for address, ranges in owners.items():
            keys = part.keys
            if keys is not None:
                keys = tuple(key for key in keys if _within(ranges, slot_of(key)))
            yield self.nodes.connect(address), Part(ranges, keys)
        self.nodes.forget()
        if self._owners(part.ranges) != owners:
            raise moves(READING, "other nodes have its slots now")
        self._require_still(owners)

    def holder(self, key: bytes) -> redis.Redis:
        """See `Places.holder`. Asked for anew each time: a replica may have taken over."""
        self.nodes.forget()
        return self.nodes.of(slot_of(key))

    def _owners(self, wanted: Ranges) -> dict[Any, Ranges]:
        found: dict[Any, Ranges] = {}
        for low, high, address in self.nodes.ranges():
            cut = ((max(low, first), min(high, last)) for first, last in wanted)
            found[address] = (*found.get(address, ()), *(one for one in cut if one[0] <= one[1]))
        return {address: ranges for address, ranges in found.items() if ranges}

    def _require_still(self, owners: dict[Any, Ranges]) -> None:
        """Refuse to read while a slot of these is on its way.

        See https://redis.io/docs/latest/commands/cluster-nodes/, "Special slot entries".
        """
        for address, ranges in owners.items():
            told: Any = self.nodes.connect(address).execute_command("CLUSTER", "NODES")  # type: ignore[no-untyped-call]
            for slot in _moving(told):
                if _within(ranges, slot):
                    raise moves(READING, f"slot {slot} is on its way")


def _large(client: redis.Redis) -> int:
    """How many splits the keys of a server are worth."""
    return 1 + int(client.dbsize()) // LARGEST


def _within(ranges: Ranges, slot: int) -> bool:
    return any(first <= slot <= last for first, last in ranges)


def _moving(told: Any) -> Iterator[int]:
    """The slots that leave the node that was asked, or come to it."""
    lines = told.decode() if isinstance(told, bytes) else str(told)
    for line in lines.splitlines():
        words = line.split()
        if "myself" in words[2].split(","):
            yield from (int(word[1:].split("-")[0]) for word in words[8:] if word[0] == "[")
