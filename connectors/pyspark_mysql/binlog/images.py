"""Where rows and their columns lie in the body of an event, without an object for a row.

A row begins with a bit for each column that is null, and then has the others. See
https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pyspark_mysql.binlog.tables import Column
from sparkonce.errors import StoreRefused

Numbers: TypeAlias = npt.NDArray[Any]

PADDING = b"\0" * 40
"""Behind rows, so that eight bytes may be looked at where fewer are meant, also within the longest
value of one size (a DECIMAL of 30 bytes), which is looked for at the beginning where it is null."""

Steps: TypeAlias = tuple[tuple[tuple[int, int], ...], int]


@dataclass
class Place:
    """Where the values of a column are, of many rows.

    Attributes:
        valid: which are not null; None if all are.
        at: where each begins; of a null anywhere.
        size: bytes of each; None if all have those of their type.
    """

    column: Column
    valid: Numbers | None
    at: Numbers
    size: Numbers | None

    def of(self, rows: Numbers) -> Place:
        """The same of some rows, by their numbers or as a mask."""
        valid = None if self.valid is None else self.valid[rows]
        return Place(
            self.column, valid, self.at[rows], None if self.size is None else self.size[rows]
        )


class Image:
    """The form of rows that have all columns of a table."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._width = (len(columns) + 7) // 8
        self._known: dict[bytes, Steps] = {}

    def starts(self, data: bytes, end: int) -> Numbers:
        """Where each row begins, of those up to `end`.

        Raises:
            StoreRefused: the last one ends elsewhere, so that nothing here is read rightly.
        """
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

    def places(self, buffer: Buffer, at: Numbers) -> list[Place]:
        """Where each column of rows is."""
        bits = buffer.bytes_at(at, self._width)
        nulls = np.unpackbits(bits, axis=1, bitorder="little")[:, : len(self.columns)].astype(bool)
        some: Numbers = np.any(nulls, axis=0)
        at, found = at + self._width, list[Place]()
        for number, column in enumerate(self.columns):
            valid: Numbers | None = ~nulls[:, number] if some[number] else None
            place, at = _place(column, valid, buffer, at)
            found.append(place)
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


def _place(
    column: Column, valid: Numbers | None, buffer: Buffer, at: Numbers
) -> tuple[Place, Numbers]:
    """Where a column is that begins there, and where the next one begins."""
    kind = column.type
    if not kind.prefix:
        return Place(column, valid, at, None), at + kind.size * (1 if valid is None else valid)
    size = buffer.little(at, kind.prefix)
    start, width = at + kind.prefix, kind.prefix + size
    if valid is not None:
        start, size, width = np.where(valid, start, at), size * valid, width * valid
    return Place(column, valid, start, size), at + width


class Buffer:
    """Bytes, out of which numbers are taken at any places at once.

    Args:
        data: ends with `PADDING`.
    """

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
        seen = np.ndarray((len(self.data) - width + 1,), kind, self.data, strides=(1,))
        return seen[at]
