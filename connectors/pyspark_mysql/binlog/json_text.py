"""Converts MySQL's binary JSON of the log to the text that the server shows.

See ``json_binary.h`` in https://dev.mysql.com/doc/dev/mysql-server/latest/.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal

from pyspark_mysql.binlog import tables

LITERALS = {0: "null", 1: "true", 2: "false"}
NUMBERS = {5: ("<h", 2), 6: ("<H", 2), 7: ("<i", 4), 8: ("<I", 4), 9: ("<q", 8), 10: ("<Q", 8)}
SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = range(4)
LITERAL, DOUBLE, STRING = 4, 11, 12
DATE, TIME, DATETIME, TIMESTAMP = 10, 11, 12, 7

_quoted = json.JSONEncoder(ensure_ascii=False).encode


def json_text(value: bytes) -> str:
    """The text of a document; an empty one is null: a row of an INSERT IGNORE may have it."""
    return _value(value[0], value, 1) if value else "null"


def _value(kind: int, data: bytes, at: int) -> str:
    # A number has 2, 4 or 8 bytes, a string its length and UTF-8; any other value has a column
    # type, a length, and bytes.
    if kind <= LARGE_ARRAY:
        return _container(kind, data, at)
    if kind == LITERAL:
        return LITERALS[data[at]]
    if kind in NUMBERS:
        (number,) = struct.unpack_from(NUMBERS[kind][0], data, at)
        return str(number)
    if kind == DOUBLE:
        (double,) = struct.unpack_from("<d", data, at)
        return repr(double).replace("e+", "e")
    if kind == STRING:
        size, at = _length(data, at)
        return _quoted(data[at : at + size].decode())
    size, start = _length(data, at + 1)
    return _opaque(data[at], data[start : start + size])


def _container(kind: int, data: bytes, start: int) -> str:
    """An object or an array."""
    # The number of members, and of bytes; in an object the place of each key, and 2 bytes of its
    # size; then the type of each value, in a byte, and its place. Numbers have 2 bytes, in large
    # containers 4; places count from the container's beginning.
    width = 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2
    count = _offset(data, start, width)
    at = start + 2 * width
    if kind in (SMALL_ARRAY, LARGE_ARRAY):
        return f"[{', '.join(_members(data, start, at, count, width))}]"
    keys = [_key(data, start, at + one * (width + 2), width) for one in range(count)]
    values = _members(data, start, at + count * (width + 2), count, width)
    texts = (f"{key}: {value}" for key, value in zip(keys, values, strict=True))
    return f"{{{', '.join(texts)}}}"


def _members(data: bytes, start: int, at: int, count: int, width: int) -> Iterator[str]:
    """Values; a literal or a small number is stored in place of the offset of other values."""
    for _ in range(count):
        kind = data[at]
        is_here = kind == LITERAL or (kind in NUMBERS and NUMBERS[kind][1] <= width)
        yield _value(kind, data, at + 1 if is_here else start + _offset(data, at + 1, width))
        at += 1 + width


def _key(data: bytes, start: int, at: int, width: int) -> str:
    begin = start + _offset(data, at, width)
    return _quoted(data[begin : begin + _offset(data, at + width, 2)].decode())


def _offset(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the eighth bit is set if more bytes follow."""
    size = shift = 0
    while True:
        size |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return size, at
        shift += 7


def _opaque(kind: int, value: bytes) -> str:
    """A value of a type that JSON lacks."""
    if kind == tables.NEWDECIMAL:
        return _decimal(value)
    if kind in MOMENTS:
        return f'"{MOMENTS[kind](int.from_bytes(value, "little", signed=True))}"'
    return f'"base64:type{kind}:{base64.b64encode(value).decode()}"'


def _decimal(value: bytes) -> str:
    """A byte with the digits, one with those after the point, and the value as in a column."""
    precision, scale, data = value[0], value[1], bytearray(value[2:])
    negative = not data[0] & 0x80
    data[0] ^= 0x80
    if negative:
        data = bytearray(one ^ 0xFF for one in data)
    before, behind = tables.decimal_groups(precision, scale)
    number = at = 0
    for digits in (*before, *behind):
        width = tables.DIGITS[digits]
        number = number * 10**digits + int.from_bytes(data[at : at + width], "big")
        at += width
    sign = "-" if negative else ""
    return f"{Decimal(f'{sign}{number}e-{scale}'):f}"


# A moment has 8 bytes: the lowest 24 bits are microseconds, followed by 6 of seconds, 6 of minutes,
# 5 of hours, 5 of day, and the rest is 13 * year + month. A time has 10 bits of hours, and a sign.


def _date(packed: int) -> str:
    months, day = packed >> 46, packed >> 41 & 31
    return f"{months // 13:04d}-{months % 13:02d}-{day:02d}"


def _datetime(packed: int) -> str:
    return f"{_date(packed)} {_clock(packed, 31)}"


def _time(packed: int) -> str:
    return ("-" if packed < 0 else "") + _clock(abs(packed), 0x3FF)


def _clock(packed: int, hours: int) -> str:
    clock = packed >> 24
    whole = f"{clock >> 12 & hours:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
    return f"{whole}.{packed & 0xFFFFFF:06d}"


MOMENTS: dict[int, Callable[[int], str]] = {
    DATE: _date,
    TIME: _time,
    DATETIME: _datetime,
    TIMESTAMP: _datetime,
}
