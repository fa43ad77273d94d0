"""MessagePack, as far as a chunk needs it: https://github.com/msgpack/msgpack/blob/master/spec.md."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.values.rows import all_bytes

TRUE, FALSE, NIL = b"\xc3", b"\xc2", b"\xc0"


def array(packed: Sequence[bytes]) -> bytes:
    """An array of values, each of them packed."""
    return b"".join([_array_header(len(packed)), *packed])


def texts(columns: Sequence[pa.BinaryArray]) -> list[bytes]:
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
