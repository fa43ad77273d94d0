"""Chunks as columnar MessagePack: ``[keys, has_nulls, column, ...]``.

Keys and columns are arrays of texts or nils; `has_nulls` has a boolean for each column.

Numbers travel as decimal texts, since Lua's numbers lose integers above 2^53. No Python object
is made for a row: headers and values are joined by Arrow.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_redis.models.model import Values
from pyspark_redis.models.template import keys, utf8
from sparkonce.change import Increment
from sparkonce.errors import BadRow
from sparkonce.values.rows import shown, shown_value


class ChunkEncoder:
    """Encodes rows for one plan."""

    def __init__(self, values: Values) -> None:
        self.key, self.fields = values.key, values.fields
        self.finite = isinstance(values.change, Increment)
        self.reserved = f"{{{values.prefix}}}:".encode()

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a key is null or reserved, or a number to add is not finite.
            ValueError: a value has no text, or a string is not UTF-8.
        """
        row_keys = keys(self.key, rows, self.reserved)
        columns = [self._column(rows, name) for name in self.fields]
        # MessagePack has true as 0xc3: in Lua a column without nulls takes the faster way.
        nulls = b"".join(b"\xc3" if column.null_count else b"\xc2" for column in columns)
        return b"".join(
            [
                _array_header(2 + len(columns)),
                pack_texts(row_keys),
                _array_header(len(columns)) + nulls,
                *(pack_texts(column) for column in columns),
            ]
        )

    def _column(self, rows: pa.RecordBatch, name: str) -> Any:
        column = rows.column(name)
        if self.finite and pa.types.is_floating(column.type):
            self._require_finite(rows, name)
        try:
            return utf8(column)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None

    def _require_finite(self, rows: pa.RecordBatch, name: str) -> None:
        finite = pc.fill_null(pc.is_finite(rows.column(name)), True)
        if not pc.all(finite).as_py():
            row = pc.index(finite, False).as_py()
            raise BadRow(
                f"Column {name!r} holds {shown_value(rows.column(name)[row])}, which can't be"
                f" added; the row: {shown(rows, row)}",
                why="a counter that once took it would stay it for ever",
                todo=f"filter such rows out, or replace the value, for example nanvl({name}, 0)",
            )


def pack_texts(column: pa.BinaryArray) -> bytes:
    """One column as a MessagePack array; a null becomes nil."""
    # A header is made once for each length, not for each row.
    lengths = pc.dictionary_encode(pc.binary_length(column))
    known = [_text_header(length) for length in lengths.dictionary.to_pylist()]
    headers = pa.array([*known, b"\xc0"], pa.binary()).take(
        pc.fill_null(lengths.indices, len(known))
    )
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
