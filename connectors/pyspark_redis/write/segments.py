"""Chunks for a Redis Cluster: rows by lane, which is a slot, as a script writes to one node alone.

A line of JSON tells what follows it: segments, each with the lanes of a part of all slots. A node
gets those segments whole of which it serves a slot, and applies its lanes alone.
"""

from __future__ import annotations

import json
from array import array
from binascii import crc_hqx
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.server.slots import SLOTS, slot_of, tags
from pyspark_redis.write import packing

SEGMENTS = 24
"""Of a chunk: their borders are those of 1, 2, 3, 4, 6, 8 or 12 primaries alike."""

Letters = list[tuple[str, str, str, str]]


@dataclass(frozen=True)
class Segment:
    """Lanes whose slots lie side by side.

    Attributes:
        slots: of the lanes, in their order.
        payload: MessagePack of a chunk, the tags of its lanes, and the last row of each.
    """

    slots: array[int]
    payload: bytes


def lanes_of(keys: pa.BinaryArray) -> pa.Array:
    """The lane of each key. Python's CRC16 is as fast as Arrow's kernels would be: 100 ns a row."""
    texts = keys.to_pylist()
    if pc.any(pc.match_substring(keys, "{")).as_py():
        return pa.array(map(slot_of, texts), pa.uint16())
    return pa.array([crc_hqx(text, 0) % SLOTS for text in texts], pa.uint16())


def segments(
    texts: Sequence[pa.BinaryArray], pack: Callable[[Sequence[pa.BinaryArray]], bytes]
) -> Iterator[Segment]:
    """Rows by lane, in the order in which they come.

    Args:
        texts: keys and columns.
        pack: makes a chunk of them.
    """
    lanes = lanes_of(texts[0])
    order = pc.sort_indices(lanes)  # a stable sort
    lanes, texts = lanes.take(order), [column.take(order) for column in texts]
    slots = lanes.to_pylist()
    borders = [bisect_left(slots, SLOTS * at // SEGMENTS) for at in range(SEGMENTS + 1)]
    for first, end in pairwise(borders):
        if first < end:
            rows = [column.slice(first, end - first) for column in texts]
            yield _segment(lanes.slice(first, end - first), pack(rows))


def _segment(lanes: pa.Array, chunk: bytes) -> Segment:
    runs = pc.run_end_encode(lanes)
    ends = runs.run_ends.cast(pa.string()).cast(pa.binary())
    payload = packing.array([chunk, *packing.texts([_named().take(runs.values), ends])])
    return Segment(array("H", runs.values.to_pylist()), payload)


@lru_cache(1)
def _named() -> pa.BinaryArray:
    return pa.array(tags(), pa.string()).cast(pa.binary())


def to_bytes(parts: Sequence[Segment], letters: Letters) -> bytes:
    """A chunk as it is staged.

    Args:
        parts: its rows.
        letters: of rows that its task can't write.
    """
    sizes = [[len(one.slots), len(one.payload)] for one in parts]
    head = json.dumps({"segments": sizes, "letters": letters})
    return b"".join([head.encode(), b"\n", *(b"".join(_in_order(one)) for one in parts)])


def _in_order(segment: Segment) -> tuple[bytes, bytes]:
    return segment.slots.tobytes(), segment.payload


def from_bytes(chunk: bytes) -> tuple[list[Segment], Letters]:
    """What `to_bytes` was given."""
    head, _, body = chunk.partition(b"\n")
    told, at, found = json.loads(head), 0, []
    for lanes, size in told["segments"]:
        middle = at + 2 * lanes
        found.append(Segment(array("H", body[at:middle]), body[middle : middle + size]))
        at = middle + size
    return found, [(reason, key, row, armored) for reason, key, row, armored in told["letters"]]
