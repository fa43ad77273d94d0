"""Where rows and their columns lie in the body of an event, without an object for a row.

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

# Behind rows, so that eight bytes may be looked at where fewer are meant, also within the longest
# value of one size (a DECIMAL of 30 bytes), which is looked for at the beginning where it is null.
PADDING = b"\0" * 40

Steps: TypeAlias = tuple[tuple[tuple[int, int], ...], int]


@dataclass
class ColumnCells:
    """Where the values of a column are, of many rows."""

    column: BinlogColumn
    valid: Numbers | None  # which are not null; None if all are
    at: Numbers  # where each begins; of a null anywhere
    size: Numbers | None  # bytes of each; None if all have those of their type

    def of(self, rows: Numbers) -> ColumnCells:
        """The same of some rows, by their numbers or as a mask."""
        valid = None if self.valid is None else self.valid[rows]
        size = None if self.size is None else self.size[rows]
        return ColumnCells(self.column, valid, self.at[rows], size)


class RowImage:
    """The form of rows that have all columns of a table."""

    # A row begins with a bit for each column, the lowest of the first byte for the first one: it is
    # set where the value is null, which has no bytes then. The other values follow: those of one
    # size as they are, each of the others behind its length.

    def __init__(self, columns: tuple[BinlogColumn, ...]) -> None:
        self.columns = columns
        self._width = (len(columns) + 7) // 8
        self._known: dict[bytes, Steps] = {}

    def starts(self, data: bytes, end: int) -> Numbers:
        """Where each row begins, of those up to `end`. That is where the last one must end."""
        # The only loop over rows in Python: where a row ends its lengths alone tell. Rows with the
        # same nulls take the same steps, from one length to the next.
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
                f"A row of the binary log ends {at - end} bytes behind its event",
                why="its table has columns whose form is not known here",
                todo="report this with the table's definition and the server's version",
            )
        return np.array(found, np.int64)

    def cells(self, buffer: ByteBuffer, at: Numbers) -> list[ColumnCells]:
        """Where each column is, of rows that begin there."""
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
        """Bytes before each length, and its own, where these are null; and those behind all."""
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
    """Where a column is that begins there, and where the next one begins."""
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
    """Bytes with `PADDING` behind them, out of which numbers are taken at any places at once."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._bytes = np.frombuffer(data, np.uint8)

    def bytes_at(self, at: Numbers, width: int) -> Numbers:
        """So many bytes at each place."""
        if width == 1:
            return self._bytes[at][:, None]
        return np.lib.stride_tricks.sliding_window_view(self._bytes, width)[at]

    def little(self, at: Numbers, width: int) -> Numbers:
        """Unsigned numbers, the lowest byte first, as int64; of eight bytes their bits."""
        if width == 1:
            return self._bytes[at].astype(np.int64)
        if width in (2, 4):
            return self.exact(at, f"<u{width}").astype(np.int64)
        found = self.exact(at, "<i8")
        return found if width == 8 else found & ((1 << 8 * width) - 1)

    def big(self, at: Numbers, width: int) -> Numbers:
        """The same, the highest byte first."""
        if width == 0:
            return np.zeros(len(at), np.int64)
        found = self.exact(at, ">u8").astype(np.uint64)
        return (found >> np.uint64(64 - 8 * width)).astype(np.int64)

    def exact(self, at: Numbers, kind: str) -> Numbers:
        """Numbers as numpy names them: `<i4`."""
        width = int(kind[-1])
        if width == 1:
            return self._bytes[at].view(kind)
        # A view that has a number at each byte: no copy, and the places need no alignment.
        seen = np.ndarray((len(self.data) - width + 1,), kind, self.data, strides=(1,))
        return seen[at]
