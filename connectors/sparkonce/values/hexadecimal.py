"""Bytes and their hexadecimal digits: each by one call over all bytes of a column."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_END = 2**31 - 1


def encoded(data: pa.BinaryArray) -> pa.BinaryArray:
    """The hexadecimal digits of each value; null stays null.

    Raises:
        ValueError: they take more than 2 GiB.
    """
    filled = pc.fill_null(data, b"")
    lengths = pc.multiply(pc.binary_length(filled).cast(pa.int64()), 2)
    return _cut(joined(filled).hex().encode(), lengths, data.is_valid())


def decoded(digits: pa.BinaryArray) -> pa.BinaryArray:
    """The bytes that digits stand for; null stays null.

    Raises:
        ValueError: they are no hexadecimal numbers of whole bytes.
    """
    filled = pc.fill_null(digits, b"")
    lengths = pc.divide(pc.binary_length(filled).cast(pa.int64()), 2)
    return _cut(bytes.fromhex(joined(filled).decode()), lengths, digits.is_valid())


def joined(data: pa.BinaryArray) -> bytes:
    """The bytes of all values, one after the other; null values may leave some too."""
    _, starts, values = data.buffers()
    if not len(data) or values is None:
        return b""
    offsets = memoryview(starts).cast("i")
    first, last = offsets[data.offset], offsets[data.offset + len(data)]
    return memoryview(values)[first:last].tobytes()


def _cut(data: bytes, lengths: pa.Array, valid: pa.Array) -> pa.BinaryArray:
    """Values of these lengths, and null where one is not valid."""
    ends = pc.cumulative_sum(lengths)
    if len(ends) and ends[-1].as_py() > _END:
        raise ValueError("a column cannot have more than 2 GiB of text")
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    values = [None, offsets.buffers()[1], pa.py_buffer(data)]
    found = pa.Array.from_buffers(pa.binary(), len(lengths), values)
    return pc.if_else(valid, found, pa.nulls(len(found), pa.binary()))
