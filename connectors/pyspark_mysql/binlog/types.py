"""The types of columns, by the numbers that the log has for them, and how long their values are.

See ``enum_field_types`` and "Table_map_event: column types" in
https://dev.mysql.com/doc/dev/mysql-server/latest/.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkonce.errors import StoreRefused

TINY, SHORT, LONG, FLOAT, DOUBLE = 1, 2, 3, 4, 5
LONGLONG, INT24, DATE, YEAR, NEWDATE, VARCHAR, BIT = 8, 9, 10, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
JSON, NEWDECIMAL, ENUM, SET = 245, 246, 247, 248
BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255
BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR = 140, 141, 242
UNREAD = (BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR)
"""Of these only is known how long values are."""

FIXED = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8, FLOAT: 4, DOUBLE: 8, YEAR: 1}
FIXED |= {DATE: 3, NEWDATE: 3}
NUMBERS = (TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, YEAR, NEWDECIMAL)
OF_CHARACTERS = (VARCHAR, VAR_STRING, STRING, BLOB, *UNREAD)
CHOICES = (ENUM, SET)
MOMENTS = {TIMESTAMP2: 4, DATETIME2: 5, TIME2: 3}
"""Bytes before the fraction of a second."""

METADATA = {FLOAT: 1, DOUBLE: 1, BLOB: 1, GEOMETRY: 1, JSON: 1, TIMESTAMP2: 1, DATETIME2: 1}
METADATA |= {TIME2: 1, VARCHAR: 2, BIT: 2, NEWDECIMAL: 2, VAR_STRING: 2, STRING: 2}
METADATA |= {ENUM: 2, SET: 2, BLOB_COMPRESSED: 1, VARCHAR_COMPRESSED: 2, VECTOR: 1}
"""Bytes that tell more of a type."""

DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of so many decimal digits."""

BINARY = 63
"""The character set of bytes."""


@dataclass(frozen=True)
class Type:
    """How values of a column are stored.

    Attributes:
        code: see the module.
        meta: of a decimal its digits and those behind the point, of a moment the digits of its
            fraction, of a text its longest length.
        size: bytes of each value; 0 if each has its own.
        prefix: bytes of the length before a value that has its own; else 0.
    """

    code: int
    meta: int
    size: int = 0
    prefix: int = 0


def lengths(code: int, meta: bytes) -> Type:
    """The type by its number and what more the log tells of it.

    Raises:
        StoreRefused: nothing is known of such a type, so that what stands behind it can't be found.
    """
    number = int.from_bytes(meta, "little")
    if code == STRING:
        return _string(*meta)
    if code in (VARCHAR, VAR_STRING, VARCHAR_COMPRESSED):
        return Type(code, number, prefix=2 if number > 255 else 1)
    if code in (BLOB, JSON, GEOMETRY, BLOB_COMPRESSED, VECTOR):
        return Type(code, number, prefix=number)
    if size := _size(code, meta, number):
        return Type(code, number, size)
    raise StoreRefused(
        f"The binary log has a column of type {code}",
        why="how such values are stored is not known here, so that others can't be found",
        todo="change that column's type, and begin anew behind that",
    )


def _size(code: int, meta: bytes, number: int) -> int:
    """Bytes of each value of a type; 0 of one that is not known."""
    if code in MOMENTS:
        return MOMENTS[code] + (number + 1) // 2
    if code == NEWDECIMAL:
        return decimal_size(*meta)
    if code == BIT:
        return meta[1] + (meta[0] > 0)
    return FIXED.get(code, 0)


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a decimal: nine digits take four."""
    whole = precision - scale
    return whole // 9 * 4 + DIGITS[whole % 9] + scale // 9 * 4 + DIGITS[scale % 9]


def _string(real: int, size: int) -> Type:
    """What is logged as a string: first comes the real type, with two bits of a text's size."""
    if real in CHOICES:
        return Type(real, size, size)
    if real & 0x30 != 0x30:
        size |= (real & 0x30 ^ 0x30) << 4
    return Type(STRING, size, prefix=2 if size > 255 else 1)
