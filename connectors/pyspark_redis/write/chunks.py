"""The bytes of a chunk: columnar MessagePack; for a cluster in segments; letters of refused rows.

A chunk is ``[keys, has_nulls, column, ..., flags, expiries, letters]``. Keys and columns are arrays
of texts or nils; `has_nulls` has a boolean for each column. Flags (of rows that delete), expiries
and letters are there where the plan or the rows have them; see `PlanDetail.places`. A letter is an
array of reason, key, row, and JSON of its base64.

A chunk for a cluster begins with a line of JSON that says what follows it: segments, each with the
lanes of a part of all slots. A node gets those segments whole of which it serves a slot, and
applies its own lanes alone.
"""

from __future__ import annotations

import json
import struct
from array import array
from binascii import crc_hqx
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.server.nodes import SLOTS, slot_of, tags
from pyspark_redis.write.detail import JOINED, PlanDetail
from sparkonce.values import from_json, letters
from sparkonce.values.json_text import all_bytes
from sparkonce.values.letters import Letter

SEGMENTS = 24  # of a chunk: their borders are those of 1, 2, 3, 4, 6, 8 or 12 primaries alike

LONGEST = 64 * 1024 * 1024
"""Bytes of a row that a dead letter has whole, where the server takes so many."""

TRUE, FALSE, NIL = b"\xc3", b"\xc2", b"\xc0"
"""Of MessagePack, https://github.com/msgpack/msgpack/blob/master/spec.md, as the lengths below."""

LetterTexts = tuple[str, str, str, str]  # reason, key, row and base64 of a letter


def pack_rows(texts: Sequence[pa.BinaryArray], aside: Sequence[LetterTexts] = ()) -> bytes:
    """The MessagePack of keys and columns, and of letters of rows that a task puts aside."""
    row_keys, *columns = texts
    # In Lua a column without nulls takes the faster way.
    nulls = [TRUE if column.null_count else FALSE for column in columns]
    packed = _pack_texts([row_keys, *columns])
    parts = [packed[0], _pack_array(nulls), *packed[1:]]
    if aside:
        each = (pa.array(one, pa.string()).cast(pa.binary()) for one in aside)
        parts.append(_pack_array([_pack_texts([one])[0] for one in each]))
    return _pack_array(parts)


def _pack_array(packed: Sequence[bytes]) -> bytes:
    return b"".join([_array_header(len(packed)), *packed])


def _pack_texts(columns: Sequence[pa.BinaryArray]) -> list[bytes]:
    """Columns of equal length, each as an array; a null becomes nil."""
    # All at once: a kernel costs more than the values of a column, where there are hundreds.
    whole = pa.concat_arrays(columns)
    # A header is made once for each length, not for each value.
    lengths = pc.dictionary_encode(pc.binary_length(whole))
    known = [_text_header(length) for length in lengths.dictionary.to_pylist()]
    headers = pa.array([*known, NIL], pa.binary()).take(pc.fill_null(lengths.indices, len(known)))
    values = pc.fill_null(whole, b"") if whole.null_count else whole
    joined = pc.binary_join_element_wise(headers, values, pa.scalar(b"", pa.binary()))
    rows = len(columns[0])
    header = _array_header(rows)
    return [
        b"".join((header, all_bytes(joined.slice(at * rows, rows)))) for at in range(len(columns))
    ]


def _array_header(length: int) -> bytes:
    if length < 16:
        return bytes([0x90 | length])
    return struct.pack(">BH", 0xDC, length) if length < 65536 else struct.pack(">BI", 0xDD, length)


def _text_header(length: int) -> bytes:
    if length < 32:
        return bytes([0xA0 | length])
    if length < 256:
        return bytes([0xD9, length])
    return struct.pack(">BH", 0xDA, length) if length < 65536 else struct.pack(">BI", 0xDB, length)


@dataclass(frozen=True)
class Segment:
    """Lanes whose slots lie side by side; a lane is one slot's share of the rows."""

    slots: array[int]  # of the lanes, in their order
    payload: bytes  # MessagePack of a chunk, the tags of its lanes, and the last row of each


def segments_of(texts: Sequence[pa.BinaryArray]) -> Iterator[Segment]:
    """Keys and columns by lane, in the order in which their rows come."""
    slots = _slots_of(texts[0])
    order = pc.sort_indices(slots)  # a stable sort
    slots, texts = slots.take(order), [column.take(order) for column in texts]
    in_order = slots.to_pylist()
    borders = [bisect_left(in_order, SLOTS * at // SEGMENTS) for at in range(SEGMENTS + 1)]
    for first, end in pairwise(borders):
        if first < end:
            rows = [column.slice(first, end - first) for column in texts]
            yield _segment(slots.slice(first, end - first), pack_rows(rows))


def _slots_of(keys: pa.BinaryArray) -> pa.Array:
    # Python's CRC16 is as fast as Arrow's kernels would be: 100 ns a row.
    texts = keys.to_pylist()
    if pc.any(pc.match_substring(keys, "{")).as_py():
        return pa.array(map(slot_of, texts), pa.uint16())
    return pa.array([crc_hqx(text, 0) % SLOTS for text in texts], pa.uint16())


def _segment(slots: pa.Array, chunk: bytes) -> Segment:
    runs = pc.run_end_encode(slots)
    ends = runs.run_ends.cast(pa.string()).cast(pa.binary())
    payload = _pack_array([chunk, *_pack_texts([_all_tags().take(runs.values), ends])])
    return Segment(array("H", runs.values.to_pylist()), payload)


@lru_cache(1)
def _all_tags() -> pa.BinaryArray:
    return pa.array(tags(), pa.string()).cast(pa.binary())


def join_segments(segments: Sequence[Segment], aside: Sequence[LetterTexts]) -> bytes:
    """A chunk as it is staged for a cluster: its rows, and letters of those put aside."""
    sizes = [[len(one.slots), len(one.payload)] for one in segments]
    head = json.dumps({"segments": sizes, "letters": aside}).encode()
    return b"".join([head, b"\n", *(one.slots.tobytes() + one.payload for one in segments)])


def split_segments(chunk: bytes) -> tuple[list[Segment], list[LetterTexts]]:
    """What `join_segments` was given."""
    head, _, body = chunk.partition(b"\n")
    about, at, found = json.loads(head), 0, []
    for lanes, size in about["segments"]:
        middle = at + 2 * lanes
        found.append(Segment(array("H", body[at:middle]), body[middle : middle + size]))
        at = middle + size
    return found, [(reason, key, row, armored) for reason, key, row, armored in about["letters"]]


def letter_texts(letter: Letter, longest: Callable[[int], int] = lambda _: LONGEST) -> LetterTexts:
    """As the stream of dead letters has it; `longest` says what a row of so many bytes may have."""
    reason, row, key, armored = letter
    size = len(row.encode())
    most = longest(size)
    if size > most:
        row, key = (text.encode()[:most].decode(errors="ignore") for text in (row, key))
        reason = f"larger than a dead letter may be, and cut: {reason}"
    return reason, key, row, json.dumps(armored)


def refused_letter(reason: str, texts: Sequence[bytes | None], detail: PlanDetail) -> Letter:
    """The letter of a row that the server refused, which is known by its texts in a chunk alone."""
    named = dict(zip(detail.columns, texts, strict=True))
    joined = named.pop(JOINED, None)
    schema = detail.arrow
    trees = {name: _tree(text, schema.field(name).type) for name, text in named.items()}
    if joined is not None:
        trees = {**from_json.parse_tree(joined), **trees}
    return letters.of_trees(reason, trees, schema, detail.key.columns)


def _tree(text: bytes | None, kind: pa.DataType) -> Any:
    if text is None or pa.types.is_binary(kind):
        return text
    return from_json.parse_tree(text) if pa.types.is_nested(kind) else text.decode()
