"""The servers that hold the keys of a read, one or the primaries of a cluster; SCAN of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from zlib import crc32

import redis

from pyspark_redis.read.wire import Wire, command, good
from pyspark_redis.server.failures import moves
from pyspark_redis.server.nodes import SLOTS, Nodes, slot_of
from pyspark_redis.server.preflight import require_alone
from pyspark_redis.target.keys import is_own

READING = "reading keys"

SCANNED = b"1000"  # keys that the server examines for one reply: about a millisecond of its time

FEWEST = 2
"""The fewest splits of one server. Each split scans all keys of this single-threaded server."""

LARGEST = 2_000_000  # keys of a split: a task holds all their names in memory
Ranges = tuple[tuple[int, int], ...]  # ranges of slots, each with its first and its last slot

ALL: Ranges = ((0, SLOTS - 1),)


@dataclass(frozen=True)
class KeySplit:
    """A split: the keys in some ranges of slots, or only those in `keys`, if set."""

    ranges: Ranges
    keys: tuple[bytes, ...] | None = None


class OneServer:
    """A server without slots: a checksum divides the keys; hash tags have no effect."""

    place = staticmethod(crc32)  # returns the slot of a key, modulo `SLOTS`

    def __init__(self, client: redis.Redis) -> None:
        self.client = client

    def splits(self, parts: int | None) -> Iterator[KeySplit]:
        """The splits: `parts` of them, or a number that fits the count of keys."""
        return _divided(ALL, parts or max(FEWEST, _large(self.client)))

    def of(self, split: KeySplit) -> Iterator[tuple[redis.Redis, KeySplit]]:
        """The servers of a split, one after the other, each with its part of the split."""
        require_alone(self.client.info("cluster"))
        yield self.client, split

    def holder(self, key: bytes) -> redis.Redis:  # noqa: ARG002 (this server has all keys)
        """The server that has a key."""
        return self.client


class ClusterServers:
    """The primaries of a cluster. Each split reads one primary, unless a slot moves."""

    place = staticmethod(slot_of)

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def splits(self, parts: int | None) -> Iterator[KeySplit]:
        """See `OneServer.splits`. The primaries share the splits."""
        owners = self._owners(ALL)
        for address, ranges in owners.items():
            each = -(-parts // len(owners)) if parts else _large(self.nodes.connect(address))
            yield from _divided(ranges, each)

    def of(self, split: KeySplit) -> Iterator[tuple[redis.Redis, KeySplit]]:
        """See `OneServer.of`. Raises StoreUnreachable if a slot moves: two nodes share its keys."""
        self.nodes.forget()
        owners = self._owners(split.ranges)
        self._require_still(owners)
        for address, ranges in owners.items():
            keys = split.keys
            if keys is not None:
                keys = tuple(key for key in keys if _within(ranges, slot_of(key)))
            yield self.nodes.connect(address), KeySplit(ranges, keys)
        self.nodes.forget()
        if self._owners(split.ranges) != owners:
            raise moves(READING, "other nodes have its slots now")
        self._require_still(owners)

    def holder(self, key: bytes) -> redis.Redis:
        """See `OneServer.holder`. Reads the slots each time: a replica may have taken over."""
        self.nodes.forget()
        return self.nodes.of(slot_of(key))

    def _owners(self, wanted: Ranges) -> dict[Any, Ranges]:
        found: dict[Any, Ranges] = {}
        for low, high, address in self.nodes.ranges():
            cut = ((max(low, first), min(high, last)) for first, last in wanted)
            found[address] = (*found.get(address, ()), *(one for one in cut if one[0] <= one[1]))
        return {address: ranges for address, ranges in found.items() if ranges}

    def _require_still(self, owners: dict[Any, Ranges]) -> None:
        """Raise StoreUnreachable while one of these slots moves.

        See https://redis.io/docs/latest/commands/cluster-nodes/, "Special slot entries".
        """
        for address, ranges in owners.items():
            reply: Any = self.nodes.connect(address).execute_command("CLUSTER", "NODES")  # type: ignore[no-untyped-call]
            for slot in _moving(reply.decode() if isinstance(reply, bytes) else str(reply)):
                if _within(ranges, slot):
                    raise moves(READING, f"slot {slot} is moving")


Servers = OneServer | ClusterServers


def _divided(ranges: Ranges, many: int) -> Iterator[KeySplit]:
    """At most `many` splits, each with about the same number of slots."""
    slots = [slot for first, last in ranges for slot in range(first, last + 1)]
    borders = [len(slots) * at // many for at in range(many + 1)]
    for low, high in pairwise(borders):
        if low < high:
            yield KeySplit(_ranges(slots[low:high]))


def _ranges(slots: Sequence[int]) -> Ranges:
    ends = [at for at, slot in enumerate(slots) if slots[at + 1 : at + 2] != [slot + 1]]
    begins = [0, *(end + 1 for end in ends)]
    return tuple((slots[low], slots[high]) for low, high in zip(begins, ends, strict=False))


def _large(client: redis.Redis) -> int:
    """The number of splits for the keys of a server."""
    return 1 + int(client.dbsize()) // LARGEST


def _within(ranges: Ranges, slot: int) -> bool:
    return any(first <= slot <= last for first, last in ranges)


def _moving(nodes: str) -> Iterator[int]:
    """The slots that move to or from the node that reported `nodes`."""
    for words in map(str.split, nodes.splitlines()):
        if "myself" in words[2].split(","):
            yield from (int(word[1:].split("-")[0]) for word in words[8:] if word[0] == "[")


@dataclass(frozen=True)
class KeyScan:
    """Scans the keys that match a pattern in some slots, except the keys of sparkonce."""

    pattern: bytes  # in the syntax of SCAN
    own: Sequence[bytes]  # prefixes of the connector's keys
    place: Callable[[bytes], int] = crc32  # returns the slot of a key, modulo `SLOTS`

    def is_own(self, key: bytes) -> bool:
        """Whether a key belongs to sparkonce, with any prefix."""
        return is_own(key, *self.own)

    def keys(self, wire: Wire, ranges: Ranges = ALL) -> Iterator[list[bytes]]:
        """The keys, block by block, each once; SCAN repeats some keys if the table grows.

        SCAN returns at least once each key that exists during the whole scan, see
        https://redis.io/docs/latest/commands/scan/.
        """
        seen, place, cursor = set[bytes](), self.place, b"0"
        mine = bytearray(SLOTS)  # for each slot, whether it is in `ranges`
        for first, last in ranges:
            mine[first : last + 1] = b"\x01" * (last + 1 - first)
        while True:
            words = b"SCAN", cursor, b"MATCH", self.pattern, b"COUNT", SCANNED
            cursor, keys = good(wire.ask([command(*words)])[0])
            if ranges != ALL:
                keys = [key for key in keys if mine[place(key) % SLOTS]]
            fresh = [key for key in dict.fromkeys(keys) if key not in seen]
            seen.update(fresh)
            yield [key for key in fresh if not self.is_own(key)]
            if cursor == b"0":
                return
