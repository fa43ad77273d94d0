"""Slots of a Redis Cluster: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/."""

from __future__ import annotations

from binascii import crc_hqx
from functools import lru_cache
from itertools import count

SLOTS = 16_384


def slot_of(key: bytes) -> int:
    """The slot of a key: by what stands between its first braces, if anything does."""
    _, opened, rest = key.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return crc_hqx(tag if opened and closed and tag else key, 0) % SLOTS


@lru_cache(1)
def tags() -> list[str]:
    """For each slot the least number whose text lies there."""
    found: list[str] = [""] * SLOTS
    left = SLOTS
    for number in count():
        text = str(number)
        slot = crc_hqx(text.encode(), 0) % SLOTS
        if not found[slot]:
            found[slot], left = text, left - 1
            if not left:
                return found
    raise AssertionError  # count() never ends
