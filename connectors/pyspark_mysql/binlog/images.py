"""Locates rows and their columns in the body of an event, without an object for each row.

See https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pyspark_mysql.binlog.tables import BinlogColumn
from sparkonce.errors import StoreRefused

Numbers: TypeAlias = npt.NDArray[Any]

# Follows the rows, so that eight bytes are readable where fewer are meant. That holds also within
# the longest value of fixed size (a DECIMAL of 30 bytes), which is read even where it is null.
PADDING = b"\0" * 40

Steps: TypeAlias = tuple[tuple[tuple[int, int], ...], int]


@dataclass
class ColumnCells:
    """The places of a column's values in many rows."""

    column: BinlogColumn
    valid: Numbers | None  # which are not null; None if none is null
    at: Numbers  # where each begins; arbitrary for a null
    size: Numbers | None  # bytes of each; None if all have the size of their type

    def of(self, rows: Numbers) -> ColumnCells:
        """The places in some rows, selected by their numbers or a mask."""
        valid = None if self.valid is None else self.valid[rows]
        size = None if self.size is None else self.size[rows]
        return ColumnCells(self.column, valid, self.at[rows], size)


class RowImage:
    """The layout of rows that have all columns of a table."""

    # A row begins with a bit for each column, the lowest bit of the first byte for the first
    # column. The bit is set if the value is null; a null has no bytes. The other values follow;
    # a length precedes each value of varying size.

    def __init__(self, columns: tuple[BinlogColumn, ...]) -> None:
        self.columns = columns
        self._width = (len(columns) + 7) // 8
        self._known: dict[bytes, Steps] = {}

    def starts(self, data: bytes, end: int) -> Numbers:
        """Where each row up to `end` begins. The last row must end there."""
        # The only loop over rows in Python, because only its lengths determine the end of a row.
        # Rows with the same nulls take the same steps, from one length to the next.
        known, width = self._known.get, self._width
        at, found = 0, list[int]()
        append = found.append
        while at < end:
            append(at)
            bits = data[at : at + width]
            steps, tail = known(bits) or self._steps(bits)
            for gap, prefix in steps:
                at += gap
                if prefix == 1:
                    at += 1 + data[at]
                elif prefix == 2:
                    at += 2 + data[at] + (data[at + 1] << 8)
                else:
                    at += prefix + int.from_bytes(data[at : at + prefix], "little")
            at += tail
        if at != end:
            raise StoreRefused(
                f"A row of the binary log ends {at - end} bytes after its event",
                why="its table has columns whose form the connector does not know",
                todo="report this with the table's definition and the server's version",
            )
        return np.array(found, np.int64)

    def cells(self, buffer: ByteBuffer, at: Numbers) -> list[ColumnCells]:
        """The places of each column in the rows that begin at `at`."""
        bits = buffer.bytes_at(at, self._width)
        nulls = np.unpackbits(bits, axis=1, bitorder="little")[:, : len(self.columns)].astype(bool)
        some: Numbers = np.any(nulls, axis=0)
        at, found = at + self._width, list[ColumnCells]()
        for number, column in enumerate(self.columns):
            valid: Numbers | None = ~nulls[:, number] if some[number] else None
            cells, at = _cells(column, valid, buffer, at)
            found.append(cells)
        return found

    def _steps(self, bits: bytes) -> Steps:
        """For a null bitmap: the gap before each length and its size; and the bytes at the end."""
        steps, gap = list[tuple[int, int]](), self._width
        for number, column in enumerate(self.columns):
            if bits[number // 8] >> number % 8 & 1:
                continue
            if column.type.prefix:
                steps.append((gap, column.type.prefix))
                gap = 0
            else:
                gap += column.type.size
        self._known[bits] = tuple(steps), gap
        return self._known[bits]


def _cells(
    column: BinlogColumn, valid: Numbers | None, buffer: ByteBuffer, at: Numbers
) -> tuple[ColumnCells, Numbers]:
    """The places of the column that begins at `at`, and where the next column begins."""
    kind = column.type
    if not kind.prefix:
        width = kind.size if valid is None else kind.size * valid
        return ColumnCells(column, valid, at, None), at + width
    size = buffer.little(at, kind.prefix)
    start, width = at + kind.prefix, kind.prefix + size
    if valid is not None:
        start, size, width = np.where(valid, start, at), size * valid, width * valid
    return ColumnCells(column, valid, start, size), at + width


class ByteBuffer:
    """Bytes followed by `PADDING`, from which vectorised reads take numbers at any places."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._bytes = np.frombuffer(data, np.uint8)

    def bytes_at(self, at: Numbers, width: int) -> Numbers:
        """The `width` bytes at each place."""
        if width == 1:
            return self._bytes[at][:, None]
        return np.lib.stride_tricks.sliding_window_view(self._bytes, width)[at]

    def little(self, at: Numbers, width: int) -> Numbers:
        """Unsigned little-endian numbers as int64; numbers of eight bytes keep their bits."""
        if width == 1:
            return self._bytes[at].astype(np.int64)
        if width in (2, 4):
            return self.exact(at, f"<u{width}").astype(np.int64)
        found = self.exact(at, "<i8")
        return found if width == 8 else found & ((1 << 8 * width) - 1)

    def big(self, at: Numbers, width: int) -> Numbers:
        """See `little`; big-endian."""
        if width == 0:
            return np.zeros(len(at), np.int64)
        found = self.exact(at, ">u8").astype(np.uint64)
        return (found >> np.uint64(64 - 8 * width)).astype(np.int64)

    def exact(self, at: Numbers, kind: str) -> Numbers:
        """Numbers of a numpy type, for example `<i4`."""
        width = int(kind[-1])
        if width == 1:
            return self._bytes[at].view(kind)
        # A view with a number at each byte: no copy, and places need no alignment.
        seen = np.ndarray((len(self.data) - width + 1,), kind, self.data, strides=(1,))
        return seen[at]
