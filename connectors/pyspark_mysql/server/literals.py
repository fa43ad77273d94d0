"""SQL literals of whole Arrow columns.

A literal means the same whatever the session's ``sql_mode`` says: within quotes stand neither
backslashes nor quotes other than doubled ones, and a text that has a backslash is hexadecimal. So
no value can ever be SQL, with or without ``NO_BACKSLASH_ESCAPES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.values import text
from sparkonce.values.text import to_json, to_text

Column = Any
HEX_TEXT = b"_utf8mb4 X'"
"""What a text that has a backslash begins with."""

_ROUNDED_TWICE = pa.array([3.4028234663852886e38, 7.038531e-26], pa.float32())

LITERAL = re.compile(rb"NULL|_utf8mb4 X'[0-9a-f]*'|X'[0-9a-f]*'|'(?:[^']|'')*'|[^,'()]+")
"""One literal, where one begins; it has no comma or parenthesis outside quotes."""

NAME = re.compile(r"[\x01-\uffff]{0,63}[\x01-\x1f\x21-\uffff]")
NAME_RULE = "a name of 1 to 64 characters, none above U+FFFF (as emojis are), no space at its end"
"""See "Schema Object Names" in MySQL's manual; the server makes question marks of some others."""


def identifier(*names: str) -> str:
    """A name, qualified by the ones before it, that any characters may be in."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def value(literal: str) -> str | bytes | None:
    """The text, or the bytes, that a literal stands for."""
    if literal == "NULL":
        return None
    if literal.startswith("X'"):
        return bytes.fromhex(literal[2:-1])
    if literal.startswith(HEX_TEXT.decode()):
        return bytes.fromhex(literal[len(HEX_TEXT) : -1]).decode()
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def literal(value: Any, kind: pa.DataType) -> str:
    """One value as a literal. Raises as `literals`."""
    text: bytes = literals(pa.array([value], kind))[0].as_py()
    return text.decode()


def string(text: str) -> str:
    """One text as a literal."""
    return literal(text, pa.string())


def literals(column: Column) -> Column:
    """The literal of each value, as bytes; a null is the word NULL.

    Dates and times are quoted texts: LOAD DATA takes none that say what they are.

    Raises:
        ValueError: a value has no literal: NaN, an infinity, a string that is not UTF-8, or a
            date outside the years 0001 to 9999.
    """
    text = _form(column.type).write(column)
    return pc.fill_null(text.cast(pa.binary()), b"NULL")


def _text(column: Column) -> Column:
    data = column.cast(pa.binary())
    try:
        # Arrow looks at the bytes of a text only in this cast, and Spark's may be any.
        data.cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError("a string is not valid UTF-8") from None
    escaped = _has(data, b"\\")
    quoted = _quoted(pc.replace_substring(data, b"'", b"''") if _any(data, b"'") else data)
    if escaped is None:
        return quoted
    return pc.if_else(escaped, _wrapped(text.encoded(data), HEX_TEXT, b"'"), quoted)


def _binary(column: Column) -> Column:
    return _wrapped(text.encoded(column.cast(pa.binary())), b"X'", b"'")


def _json(column: Column) -> Column:
    return _text(to_json(column))


def _float(column: Column) -> Column:
    """Floats always have an exponent: without one, MySQL would read a decimal."""
    if pc.all(pc.is_finite(column)).as_py() is False:
        wrong = column.filter(pc.invert(pc.is_finite(column)))[0]
        raise ValueError(f"{wrong} has no place in a column of MySQL")
    text = to_text(column)
    if types.is_float32(column.type):
        text = _read_as_double(column, text)
    return pc.if_else(pc.match_substring(text, b"e"), text, _wrapped(text, b"", b"e0"))


def _read_as_double(column: Column, text: Column) -> Column:
    """The texts, but of two floats the double: MySQL reads a double, and rounds that to a float.

    The shortest text of the largest float lies above it, and is refused; that of the other one is
    rounded twice, to its neighbour. There are no others.
    """
    odd = pc.is_in(pc.abs(column), value_set=_ROUNDED_TWICE)
    if not pc.any(odd).as_py():
        return text
    return pc.if_else(odd, to_text(column.cast(pa.float64())), text)


def _boolean(column: Column) -> Column:
    return column.cast(pa.int8()).cast(pa.string())


def _date_or_time(column: Column) -> Column:
    return _quoted(to_text(column))


def _timestamp(column: Column) -> Column:
    """An instant in UTC, which is the zone of every session; or the wall clock as it is."""
    return _date_or_time(column.view(pa.timestamp("us")))


def _quoted(data: Column) -> Column:
    return _wrapped(data, b"'", b"'")


def _wrapped(data: Column, opening: bytes, closing: bytes) -> Column:
    pieces = [pa.scalar(piece, pa.binary()) for piece in (opening, closing, b"")]
    return pc.binary_join_element_wise(pieces[0], data.cast(pa.binary()), *pieces[1:])


def _any(data: Column, byte: bytes) -> bool:
    return byte in text.joined(data)


def _has(data: Column, byte: bytes) -> Column | None:
    """Which values hold that byte; None if none does."""
    return pc.match_substring(data, byte) if _any(data, byte) else None


class _Form(NamedTuple):
    accepts: Callable[[pa.DataType], bool]
    write: Callable[[Column], Column]


_FORMS = (
    _Form(types.is_boolean, _boolean),
    _Form(types.is_floating, _float),
    _Form(lambda t: types.is_string(t) or types.is_large_string(t), _text),
    _Form(lambda t: types.is_binary(t) or types.is_large_binary(t), _binary),
    _Form(types.is_date32, _date_or_time),
    _Form(types.is_timestamp, _timestamp),
    _Form(types.is_time, _date_or_time),
    _Form(types.is_nested, _json),
)


def _form(kind: pa.DataType) -> _Form:
    """How values of this type are written; numbers and durations are their text."""
    return next((form for form in _FORMS if form.accepts(kind)), _Form(lambda _: True, to_text))
