"""The keys of a split, each once: SCAN gives some twice where its table grows or shrinks.

A key that is there from the beginning to the end is given at least once, see
https://redis.io/docs/latest/commands/scan/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from zlib import crc32

from pyspark_redis.read.wire import Wire
from pyspark_redis.server.own_keys import is_own
from pyspark_redis.server.slots import SLOTS

AT_ONCE = b"1000"
"""Keys that the server looks at for one reply: about a millisecond of its time."""

Ranges = tuple[tuple[int, int], ...]
"""Slots, from each first one to each last one."""

ALL: Ranges = ((0, SLOTS - 1),)


@dataclass(frozen=True)
class Part:
    """A split: the keys in some slots, or those that are named.

    Attributes:
        ranges: of slots.
        keys: that alone are asked for; None for all that match.
    """

    ranges: Ranges
    keys: tuple[bytes, ...] | None = None


def divided(ranges: Iterable[tuple[int, int]], many: int) -> Iterator[Part]:
    """At most so many splits of about as many of these slots each."""
    slots = [slot for first, last in ranges for slot in range(first, last + 1)]
    borders = [len(slots) * at // many for at in range(many + 1)]
    for low, high in pairwise(borders):
        if low < high:
            yield Part(_ranges(slots[low:high]))


def _ranges(slots: Sequence[int]) -> Ranges:
    ends = [at for at, slot in enumerate(slots) if slots[at + 1 : at + 2] != [slot + 1]]
    begins = [0, *(end + 1 for end in ends)]
    return tuple((slots[low], slots[high]) for low, high in zip(begins, ends, strict=False))


share = crc32
"""Where a key of a server without slots lies, modulo `SLOTS`; hash tags keep nothing together."""


class Scan:
    """The keys that match a pattern and lie in some slots.

    Args:
        pattern: as the server has it.
        own: what the connector's own keys begin with.
        place: gives the slot of a key, modulo `SLOTS`.
    """

    def __init__(
        self, pattern: bytes, own: Iterable[bytes], place: Callable[[bytes], int] = share
    ) -> None:
        self.pattern, self.own, self.place = pattern, tuple(own), place

    def is_own(self, key: bytes) -> bool:
        """Whether a key is one of the connector's, of any prefix."""
        return is_own(key, *self.own)

    def keys(self, wire: Wire, ranges: Ranges = ALL) -> Iterator[list[bytes]]:
        """The keys, block by block, each once.

        Raises:
            redis.RedisError: the server says no, or the connection broke.
        """
        seen: set[bytes] = set()
        place, mine = self.place, _table(ranges)
        cursor = b"0"
        while True:
            words = b"SCAN", cursor, b"MATCH", self.pattern, b"COUNT", AT_ONCE
            cursor, keys = wire.one(*words)
            if ranges != ALL:
                keys = [key for key in keys if mine[place(key) % SLOTS]]
            fresh = [key for key in dict.fromkeys(keys) if key not in seen]
            seen.update(fresh)
            yield [key for key in fresh if not self.is_own(key)]
            if cursor == b"0":
                return


def _table(ranges: Ranges) -> bytearray:
    """For each slot, whether it is one of these."""
    found = bytearray(SLOTS)
    for first, last in ranges:
        found[first : last + 1] = b"\x01" * (last + 1 - first)
    return found
