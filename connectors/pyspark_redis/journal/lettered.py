"""Rows of a chunk that Redis refused and that are dead letters, as the ledger's slot keeps them.

A failover can take a lane back to such a chunk. Its letters are not written again then, and these
rows are passed over, even if they could be stored now.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

Rows = frozenset[tuple[int, int]]
"""Of each row: which segment, from 0, and which row of it, from 1."""


def from_text(text: bytes) -> Rows:
    """What `to_text` was given."""
    numbers = array("I", text)
    return frozenset(zip(numbers[::2], numbers[1::2], strict=True))


def to_text(rows: Iterable[tuple[int, int]]) -> bytes:
    """Rows as they are kept."""
    return array("I", chain.from_iterable(sorted(rows))).tobytes()


def by_segment(rows: Rows) -> Mapping[int, bytes]:
    """For each segment its rows, in their order, as `lane_apply.lua` reads them."""
    found: dict[int, array[int]] = defaultdict(lambda: array("I"))
    for segment, row in sorted(rows):
        found[segment].append(row)
    return defaultdict(bytes, {segment: own.tobytes() for segment, own in found.items()})
