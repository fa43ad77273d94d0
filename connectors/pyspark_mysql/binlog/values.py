"""Values of fixed size as Arrow has them, column by column.

How moments and decimals are stored: ``my_time.cc`` and ``decimal.cc`` in
https://dev.mysql.com/doc/dev/mysql-server/latest/.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import dropwhile
from operator import not_
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_mysql.binlog import types
from pyspark_mysql.binlog.images import Buffer, Numbers, Place
from sparkonce.errors import StoreRefused

SECOND, DAY = 1_000_000, 86_400_000_000


class ZeroDateError(ValueError):
    """A date is there that is none, such as 0000-00-00."""

    def __init__(self) -> None:
        super().__init__("it is no day, as 0000-00-00 is none")


def fixed(place: Place, buffer: Buffer) -> pa.Array:
    """The values of a column whose values have one size.

    Raises:
        ZeroDateError: one is a date that is none.
    """
    at = place.at if place.valid is None else np.where(place.valid, place.at, 0)
    return FORMS[place.column.type.code](place, buffer, at)


def made(values: Numbers, valid: Numbers | None, kind: pa.DataType | None = None) -> pa.Array:
    """An array of numbers."""
    values = np.ascontiguousarray(values)
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = kind or pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(values)])


def _number(signed: str, unsigned: str) -> Callable[[Place, Buffer, Numbers], pa.Array]:
    def read(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
        return made(buffer.exact(at, unsigned if place.column.unsigned else signed), place.valid)

    return read


def _int24(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    found = buffer.little(at, 3)
    if not place.column.unsigned:
        found = (found ^ 0x800000) - 0x800000
    return made(found.astype(np.int32), place.valid)


def _year(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    found = buffer.little(at, 1)
    return made(np.where(found, found + 1900, 0).astype(np.int32), place.valid)


def _bit(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    return made(buffer.big(at, place.column.type.size).view(np.uint64), place.valid)


def _date(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    """Five bits of day, four of month, the year; the lowest byte first."""
    found = buffer.little(at, 3)
    year, month, day = found >> 9, found >> 5 & 15, found & 31
    _require_dates(year, month, day, place.valid)
    return made(_days(year, month, day).astype(np.int32), place.valid, pa.date32())


def _datetime(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    """A bit of sign, 17 of 13 * year + month, 5 of day, 5 of hour, 6, 6; then the fraction."""
    whole = buffer.big(at, 5) - (1 << 39)
    date, clock = whole >> 17, whole & 0x1FFFF
    year, month, day = (date >> 5) // 13, (date >> 5) % 13, date & 31
    _require_dates(year, month, day, place.valid)
    micros = _days(year, month, day) * DAY + _seconds(clock) * SECOND
    return made(micros + _fraction(place, buffer, at + 5), place.valid, pa.timestamp("us"))


def _timestamp(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    """Seconds since 1970; zero is no moment."""
    micros = buffer.big(at, 4) * SECOND + _fraction(place, buffer, at + 4)
    _require(micros != 0, place.valid)
    return made(micros, place.valid, pa.timestamp("us", "UTC"))


def _time(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    """A bit of sign, one unused, 10 of hours, 6, 6, the fraction: one number, less its middle."""
    width = (place.column.type.meta + 1) // 2
    whole = buffer.big(at, 3 + width) - (1 << 23 + 8 * width)
    sign, whole = np.sign(whole), np.abs(whole)
    clock, rest = whole >> 8 * width, whole & ((1 << 8 * width) - 1)
    seconds = (clock >> 12 & 0x3FF) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
    micros = sign * (seconds * SECOND + rest * 100 ** (3 - width))
    return made(micros, place.valid, pa.duration("us"))


def _decimal(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    """Groups of nine digits, the highest first; all bits are inverted of a negative number.

    The first bit is, of the others.
    """
    precision, scale = place.column.type.meta & 255, place.column.type.meta >> 8
    negative = buffer.little(at, 1) < 128
    limbs = [np.zeros(len(at), np.uint64) for _ in range(8)]
    for number, digits in enumerate(_groups(precision, scale)):
        width = types.DIGITS[digits]
        part = buffer.big(at, width)
        if number == 0:
            part ^= 1 << 8 * width - 1
        part = np.where(negative, part ^ ((1 << 8 * width) - 1), part)
        _multiply(limbs, 10**digits, part)
        at = at + width
    kind = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return made(_words(limbs, negative, kind.bit_width // 64), place.valid, kind).slice(0, len(at))


def _groups(precision: int, scale: int) -> list[int]:
    """How many digits lie in each group; the first one before the point has fewer."""
    whole = precision - scale
    groups = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9)
    return groups + [9] * (scale // 9) + [scale % 9] * (scale % 9 > 0)


def _multiply(limbs: list[Numbers], factor: int, added: Numbers) -> None:
    """Numbers of eight times 32 bits: times a factor, and a number more."""
    carry = added.astype(np.uint64)
    for number, limb in enumerate(limbs):
        total = limb * np.uint64(factor) + carry
        limbs[number] = total & np.uint64(0xFFFFFFFF)
        carry = total >> np.uint64(32)


def _words(limbs: list[Numbers], negative: Numbers, many: int) -> Numbers:
    """Words of 64 bits, the lowest first, in two's complement."""
    words, borrow = [], negative.astype(np.uint64)
    for low, high in zip(limbs[: 2 * many : 2], limbs[1 : 2 * many : 2], strict=True):
        word = low | high << np.uint64(32)
        inverted = ~word + borrow
        borrow = borrow & (inverted == 0)
        words.append(np.where(negative, inverted, word))
    return np.stack(words, 1)


def _choice(place: Place, buffer: Buffer, at: Numbers) -> pa.Array:
    """Of an ENUM the number of its word, from 1; of a SET a bit for each."""
    found, column = buffer.little(at, place.column.type.size), place.column
    if column.words is None:
        raise words_unknown(column.name)
    words = pa.array(column.words, pa.binary())
    words = words if column.charset is None else column.charset.texts(words)
    if column.type.code == types.ENUM:  # 0 is a text that was none of them
        nothing = pa.array([b""], pa.binary()).cast(words.type)
        return pa.concat_arrays([nothing, words]).take(made(found.astype(np.int32), place.valid))
    each, which = np.unique(found, return_inverse=True)
    texts = pa.array(_sets(each.tolist(), words.to_pylist()), words.type)
    return texts.take(made(which.astype(np.int32), place.valid))


def words_unknown(column: str) -> StoreRefused:
    """The error for an ENUM or a SET of which the log has numbers alone."""
    return StoreRefused(
        f"Not all words of column {column!r} are known",
        why="the log does not have them (binlog_row_metadata), and the server shows question marks"
        " instead of some, or may do so",
        todo="SET GLOBAL binlog_row_metadata=FULL, and begin a new query behind that; or leave the"
        " column out by option columns",
    )


def _sets(numbers: list[int], words: list[Any]) -> list[Any]:
    """The words of each SET. Before the first one that is not empty there is no comma."""
    comma = b"," if words and isinstance(words[0], bytes) else ","
    chosen = ([w for at, w in enumerate(words) if one >> at & 1] for one in numbers)
    return [comma.join(dropwhile(not_, each)) for each in chosen]


def _fraction(place: Place, buffer: Buffer, at: Numbers) -> Numbers:
    """Microseconds: hundredths, ten-thousandths or millionths of a second are stored."""
    width = (place.column.type.meta + 1) // 2
    found: Numbers = buffer.big(at, width) * 100 ** (3 - width)
    return found


def _seconds(clock: Numbers) -> Numbers:
    found: Numbers = (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
    return found


def _days(year: Numbers, month: Numbers, day: Numbers) -> Numbers:
    """Days since 1970; of a null it may be any date."""
    found: Numbers = _months()[np.clip(year * 12 + month - 1, 0, 120_011)] + day - 1
    return found


@lru_cache(maxsize=1)
def _months() -> Numbers:
    """The first day of each month of the years 0 to 10000."""
    months = np.arange(-1970 * 12, (10_001 - 1970) * 12).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.int64)


def _require_dates(year: Numbers, month: Numbers, day: Numbers, valid: Numbers | None) -> None:
    """Refuse what is no day: the server stores 0000-00-00, and with some modes 2024-02-31."""
    there = (month > 0) & (month < 13) & (day > 0)
    following = _days(year + month // 12, month % 12 + 1, np.ones_like(day))
    _require(there & (_days(year, month, day) < following), valid)


def _require(good: Numbers, valid: Numbers | None) -> None:
    if not (good if valid is None else good | ~valid).all():
        raise ZeroDateError


FORMS: dict[int, Callable[[Place, Buffer, Numbers], pa.Array]] = {
    types.TINY: _number("i1", "u1"),
    types.SHORT: _number("<i2", "<u2"),
    types.INT24: _int24,
    types.LONG: _number("<i4", "<u4"),
    types.LONGLONG: _number("<i8", "<u8"),
    types.FLOAT: _number("<f4", "<f4"),
    types.DOUBLE: _number("<f8", "<f8"),
    types.YEAR: _year,
    types.BIT: _bit,
    types.DATE: _date,
    types.NEWDATE: _date,
    types.DATETIME2: _datetime,
    types.TIMESTAMP2: _timestamp,
    types.TIME2: _time,
    types.NEWDECIMAL: _decimal,
    types.ENUM: _choice,
    types.SET: _choice,
}
"""By the number of a type."""
