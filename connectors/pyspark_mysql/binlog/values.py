"""Decodes the values of a column to Arrow: numbers, moments, choices, texts, bytes and JSON.

For the stored forms of moments and decimals see ``my_time.cc`` and ``decimal.cc`` in
https://dev.mysql.com/doc/dev/mysql-server/latest/.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import lru_cache
from itertools import dropwhile
from operator import not_
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.binlog import tables
from pyspark_mysql.binlog.images import ByteBuffer, ColumnCells, Numbers
from pyspark_mysql.binlog.json_text import json_text
from sparkonce.errors import StoreRefused

SECOND, DAY = 1_000_000, 86_400_000_000


class ShownType(NamedTuple):
    """A type that MariaDB logs as BINARY of some size, and shows as text."""

    size: int
    text: Callable[[bytes], str]


def _inet6(data: bytes) -> str:
    """An address as MariaDB shows it: unlike others, it also leaves out a single group of zeros."""
    groups = [data[at] << 8 | data[at + 1] for at in range(0, 16, 2)]
    runs = [0] * 9  # by group: how many zeros begin there
    for at in reversed(range(8)):
        runs[at] = 0 if groups[at] else runs[at + 1] + 1
    many = max(runs)
    start = runs.index(many)
    if start == 0 and (many == 6 or (many == 5 and groups[5] == 0xFFFF)):
        return f"::{'' if many == 6 else 'ffff:'}{socket.inet_ntoa(data[12:])}"
    before, behind = (
        ":".join(f"{one:x}" for one in some) for some in (groups[:start], groups[start + many :])
    )
    return f"{before}::{behind}" if many else behind


SHOWN_TYPES = {
    "uuid": ShownType(16, lambda one: str(UUID(bytes=one))),
    "inet6": ShownType(16, _inet6),
    "inet4": ShownType(4, socket.inet_ntoa),
}
"""These types, whose bytes in the log have the order of their texts."""


def values(cells: ColumnCells, buffer: ByteBuffer) -> pa.Array:
    """The values of a column; raises `ValueError` for an invalid value or an unreadable type."""
    if cells.column.type.code in tables.UNREAD:
        raise ValueError("columns of this type (COMPRESSED) can't be followed")
    if cells.column.type.prefix:
        return _varying(cells, buffer)
    at = cells.at if cells.valid is None else np.where(cells.valid, cells.at, 0)
    return READERS[cells.column.type.code](cells, buffer, at)


def differ(one: ColumnCells, other: ColumnCells, buffer: ByteBuffer) -> Numbers:
    """Which values of a NOT NULL column differ in their stored bytes."""
    if one.size is None:
        was, became = (buffer.bytes_at(each.at, each.column.type.size) for each in (one, other))
        found: Numbers = (was != became).any(axis=1)
        return found
    unlike: pa.Array = pc.not_equal(_gathered(one, buffer), _gathered(other, buffer))
    return np.asarray(unlike)


def _varying(cells: ColumnCells, buffer: ByteBuffer) -> pa.Array:
    """Values of varying length."""
    found, column = _gathered(cells, buffer), cells.column
    if column.type.code == tables.JSON:
        return _each(found, json_text, pa.string())
    if column.padding:
        whole = _each(found, lambda one: one.ljust(column.padding, b"\0"), pa.binary())
        return _each(whole, SHOWN_TYPES[column.shown].text, pa.string()) if column.shown else whole
    if column.type.code == tables.GEOMETRY or column.charset is None:
        return found
    return column.charset.texts(found)


def _each(found: pa.Array, make: Callable[[bytes], object], kind: pa.DataType) -> pa.Array:
    return pa.array([None if one is None else make(one) for one in found.to_pylist()], kind)


def _gathered(cells: ColumnCells, buffer: ByteBuffer) -> pa.Array:
    """The bytes of values, gathered by Arrow."""
    # Offsets in Arrow are contiguous. So they describe values and the gaps between them in turn,
    # and `take` selects the values.
    many, size = len(cells.at), 0 if cells.size is None else cells.size
    offsets = np.zeros(2 * many + 1, np.int32)
    offsets[:-1:2], offsets[1::2] = cells.at, cells.at + size
    offsets[-1] = offsets[-2] if many else 0
    both = pa.Array.from_buffers(
        pa.binary(), 2 * many, [None, pa.py_buffer(offsets), pa.py_buffer(buffer.data)]
    )
    _, ends, data = both.take(pa.array(np.arange(0, 2 * many, 2))).buffers()
    return pa.Array.from_buffers(pa.binary(), many, [_bitmap(cells.valid), ends, data])


def _bitmap(valid: Numbers | None) -> pa.Buffer | None:
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _array(numbers: Numbers, valid: Numbers | None, kind: pa.DataType | None = None) -> pa.Array:
    numbers = np.ascontiguousarray(numbers)
    kind = kind or pa.from_numpy_dtype(numbers.dtype)
    return pa.Array.from_buffers(kind, len(numbers), [_bitmap(valid), pa.py_buffer(numbers)])


def _number(signed: str, unsigned: str) -> Callable[[ColumnCells, ByteBuffer, Numbers], pa.Array]:
    def read(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
        return _array(buffer.exact(at, unsigned if cells.column.unsigned else signed), cells.valid)

    return read


def _int24(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    found, sign = buffer.little(at, 3), 0 if cells.column.unsigned else 0x800000
    return _array(((found ^ sign) - sign).astype(np.int32), cells.valid)


def _year(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    found = buffer.little(at, 1)
    return _array(np.where(found, found + 1900, 0).astype(np.int32), cells.valid)


def _bit(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    return _array(buffer.big(at, cells.column.type.size).view(np.uint64), cells.valid)


def _date(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    # 3 bytes, the lowest first: 5 bits of day, 4 of month, and the year above them.
    found = buffer.little(at, 3)
    year, month, day = found >> 9, found >> 5 & 15, found & 31
    _require_dates(year, month, day, cells.valid)
    return _array(_days(year, month, day).astype(np.int32), cells.valid, pa.date32())


def _datetime(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    # 5 bytes, the highest first: a bit that is set, 17 bits of 13 * year + month, 5 of day, 5 of
    # hour, 6 of minute, 6 of second; then the fraction, in as many bytes as its digits need.
    whole = buffer.big(at, 5) - (1 << 39)
    date, clock = whole >> 17, whole & 0x1FFFF
    year, month, day = (date >> 5) // 13, (date >> 5) % 13, date & 31
    _require_dates(year, month, day, cells.valid)
    micros = _days(year, month, day) * DAY + _seconds(clock) * SECOND
    return _array(micros + _fraction(cells, buffer, at + 5), cells.valid, pa.timestamp("us"))


def _timestamp(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    # 4 bytes of seconds since 1970, the highest first, and the fraction. Zero is 0000-00-00.
    micros = buffer.big(at, 4) * SECOND + _fraction(cells, buffer, at + 4)
    _require(micros != 0, cells.valid)
    return _array(micros, cells.valid, pa.timestamp("us", "UTC"))


def _time(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    # 3 bytes and the fraction are one number, the highest byte first, offset by half its range: a
    # bit, 10 of hours, 6 of minutes, 6 of seconds, the fraction. A negative time negates them all.
    width = (cells.column.type.meta + 1) // 2
    whole = buffer.big(at, 3 + width) - (1 << 23 + 8 * width)
    sign, whole = np.sign(whole), np.abs(whole)
    clock, rest = whole >> 8 * width, whole & ((1 << 8 * width) - 1)
    micros = sign * (_seconds(clock & 0x3FFFFF) * SECOND + rest * 100 ** (3 - width))
    return _array(micros, cells.valid, pa.duration("us"))


def _decimal(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    # Groups of nine digits in four bytes, each the highest byte first. The first bit is inverted,
    # and in a negative number then all bits, so that bytes sort as the numbers do.
    precision, scale = cells.column.type.meta & 255, cells.column.type.meta >> 8
    negative = buffer.little(at, 1) < 128
    limbs = [np.zeros(len(at), np.uint64) for _ in range(8)]
    before, behind = tables.decimal_groups(precision, scale)
    for number, digits in enumerate((*before, *behind)):
        width = tables.DIGITS[digits]
        part = buffer.big(at, width)
        if number == 0:
            part ^= 1 << 8 * width - 1
        part = np.where(negative, part ^ ((1 << 8 * width) - 1), part)
        _multiply(limbs, 10**digits, part)
        at = at + width
    kind = (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
    return _array(_words(limbs, negative, kind.bit_width // 64), cells.valid, kind)


def _multiply(limbs: list[Numbers], factor: int, added: Numbers) -> None:
    """Multiply numbers of eight times 32 bits by a factor, and add a number."""
    carry = added.astype(np.uint64)
    for number, limb in enumerate(limbs):
        total = limb * np.uint64(factor) + carry
        limbs[number] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(32)


def _words(limbs: list[Numbers], negative: Numbers, many: int) -> Numbers:
    """Words of 64 bits, the lowest first, in two's complement: Arrow's form of decimals."""
    words, borrow = [], negative.astype(np.uint64)
    for low, high in zip(limbs[: 2 * many : 2], limbs[1 : 2 * many : 2], strict=True):
        word = low | high << np.uint64(32)
        inverted = ~word + borrow
        borrow = borrow & (inverted == 0)
        words.append(np.where(negative, inverted, word))
    return np.stack(words, 1)


def _choice(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> pa.Array:
    # ENUM: the number of the member, from 1. SET: a bit for each member, the lowest for the first.
    found, column = buffer.little(at, cells.column.type.size), cells.column
    if column.words is None:
        raise words_unknown(column.name)
    words = pa.array(column.words, pa.binary())
    words = words if column.charset is None else column.charset.texts(words)
    if column.type.code == tables.ENUM:  # 0 is the empty text that replaces an invalid one
        nothing = pa.array([b""], pa.binary()).cast(words.type)
        return pa.concat_arrays([nothing, words]).take(_array(found.astype(np.int32), cells.valid))
    each, which = np.unique(found, return_inverse=True)
    texts = pa.array(_sets(each.tolist(), words.to_pylist()), words.type)
    return texts.take(_array(which.astype(np.int32), cells.valid))


def words_unknown(column: str) -> StoreRefused:
    """The error for an ENUM or SET whose members the log has only as numbers."""
    return StoreRefused(
        f"Not all members of column {column!r} are known",
        why="the log lacks them (binlog_row_metadata), and the server shows question marks in some"
        " of them, or may do so",
        todo="SET GLOBAL binlog_row_metadata=FULL, and start a new query after that; or exclude the"
        " column with option columns",
    )


def _sets(numbers: list[int], words: list[Any]) -> list[Any]:
    """The text of each SET. No comma precedes its first non-empty member."""
    comma = b"," if words and isinstance(words[0], bytes) else ","
    chosen = ([w for at, w in enumerate(words) if one >> at & 1] for one in numbers)
    return [comma.join(dropwhile(not_, each)) for each in chosen]


def _fraction(cells: ColumnCells, buffer: ByteBuffer, at: Numbers) -> Numbers:
    """Microseconds; the log has hundredths, ten-thousandths or millionths of a second."""
    width = (cells.column.type.meta + 1) // 2
    found: Numbers = buffer.big(at, width) * 100 ** (3 - width)
    return found


def _seconds(clock: Numbers) -> Numbers:
    found: Numbers = (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
    return found


def _days(year: Numbers, month: Numbers, day: Numbers) -> Numbers:
    """Days since 1970; any number for a null."""
    found: Numbers = _months()[np.clip(year * 12 + month - 1, 0, 120_011)] + day - 1
    return found


@lru_cache(maxsize=1)
def _months() -> Numbers:
    """The first day of each month of the years 0 to 10000."""
    months = np.arange(-1970 * 12, (10_001 - 1970) * 12).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64)


def _require_dates(year: Numbers, month: Numbers, day: Numbers, valid: Numbers | None) -> None:
    """Reject invalid dates: the server stores 0000-00-00, and with some modes 2024-02-31."""
    there = (month > 0) & (month < 13) & (day > 0)
    following = _days(year + month // 12, month % 12 + 1, np.ones_like(day))
    _require(there & (_days(year, month, day) < following), valid)


def _require(good: Numbers, valid: Numbers | None) -> None:
    if not (good if valid is None else good | ~valid).all():
        raise ValueError("it is not a valid date, for example 0000-00-00")


READERS: dict[int, Callable[[ColumnCells, ByteBuffer, Numbers], pa.Array]] = {
    tables.TINY: _number("i1", "u1"),
    tables.SHORT: _number("<i2", "<u2"),
    tables.INT24: _int24,
    tables.LONG: _number("<i4", "<u4"),
    tables.LONGLONG: _number("<i8", "<u8"),
    tables.FLOAT: _number("<f4", "<f4"),
    tables.DOUBLE: _number("<f8", "<f8"),
    tables.YEAR: _year,
    tables.BIT: _bit,
    tables.DATE: _date,
    tables.NEWDATE: _date,
    tables.DATETIME2: _datetime,
    tables.TIMESTAMP2: _timestamp,
    tables.TIME2: _time,
    tables.NEWDECIMAL: _decimal,
    tables.ENUM: _choice,
    tables.SET: _choice,
}
"""The decoders by the number of a type."""
