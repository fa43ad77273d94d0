"""MessagePack, as far as a chunk needs it: https://github.com/msgpack/msgpack/blob/master/spec.md."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TRUE, FALSE, NIL = b"\xc3", b"\xc2", b"\xc0"


def array(packed: Sequence[bytes]) -> bytes:
    """An array of values, each of them packed."""
    return b"".join([_array_header(len(packed)), *packed])


def texts(column: pa.BinaryArray) -> bytes:
    """One column as a MessagePack array; a null becomes nil."""
    # A header is made once for each length, not for each row.
    lengths = pc.dictionary_encode(pc.binary_length(column))
    known = [_text_header(length) for length in lengths.dictionary.to_pylist()]
    headers = pa.array([*known, NIL], pa.binary()).take(pc.fill_null(lengths.indices, len(known)))
    values = pc.fill_null(column, b"") if column.null_count else column
    body = pc.binary_join_element_wise(headers, values, pa.scalar(b"", pa.binary()))
    return b"".join([_array_header(len(column)), _bytes(body)])


def _bytes(values: Any) -> memoryview | bytes:
    _, offsets, data = values.buffers()
    at = memoryview(offsets).cast("i")
    start, end = at[values.offset], at[values.offset + len(values)]
    return memoryview(data)[start:end] if data is not None else b""


def _array_header(length: int) -> bytes:
    return _header(length, 0x90, 15, b"\xdc", b"\xdd")


def _text_header(length: int) -> bytes:
    if 31 < length < 256:
        return b"\xd9" + struct.pack(">B", length)
    return _header(length, 0xA0, 31, b"\xda", b"\xdb")


def _header(length: int, fixed: int, most: int, two: bytes, four: bytes) -> bytes:
    if length <= most:
        return bytes([fixed | length])
    if length < 65536:
        return two + struct.pack(">H", length)
    return four + struct.pack(">I", length)
