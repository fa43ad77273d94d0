"""SQL literals of whole Arrow columns.

A literal has the same meaning under every ``sql_mode``: quoted texts contain no backslashes, and
only doubled quotes; a text with a backslash is hexadecimal. So no value can ever be SQL, with or
without ``NO_BACKSLASH_ESCAPES``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.values import text
from sparkonce.values.json_text import all_bytes
from sparkonce.values.text import to_json, to_text

Array = Any
HEX_TEXT = b"_utf8mb4 X'"
"""The begin of the literal of a text that has a backslash."""

_ROUNDED_TWICE = pa.array([3.4028234663852886e38, 7.038531e-26], pa.float32())

LITERAL = re.compile(rb"NULL|_utf8mb4 X'[0-9a-f]*'|X'[0-9a-f]*'|'(?:[^']|'')*'|[^,'()]+")
"""A literal at its begin; outside quotes it has no comma or parenthesis."""

NAME = re.compile(r"[\x01-\uffff]{0,63}[\x01-\x1f\x21-\uffff]")
NAME_RULE = "a name of 1 to 64 characters, none above U+FFFF (as emojis are), no space at its end"
"""See "Schema Object Names" in MySQL's manual; the server turns some others into question marks."""


def identifier(*names: str) -> str:
    """The quoted form of a name, qualified by the names before it; any character may occur."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def placeholders(values: Sized) -> str:
    """A placeholder for each value of a statement; the client inserts the values."""
    return ", ".join(["%s"] * len(values))


def value(literal: str) -> str | bytes | None:
    """The text, or the bytes, that a literal represents."""
    if literal == "NULL":
        return None
    if literal.startswith("X'"):
        return bytes.fromhex(literal[2:-1])
    if literal.startswith(HEX_TEXT.decode()):
        return bytes.fromhex(literal[len(HEX_TEXT) : -1]).decode()
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def literal(value: Any, kind: pa.DataType) -> str:
    """One value as a literal. Raises the errors of `literals`."""
    text: bytes = literals(pa.array([value], kind))[0].as_py()
    return text.decode()


def string(text: str) -> str:
    """One text as a literal."""
    return literal(text, pa.string())


def literals(column: Array) -> Array:
    """The literal of each value, as bytes; a null is the word NULL.

    Dates and times are quoted texts: LOAD DATA accepts no typed literals.

    Raises:
        ValueError: a value has no literal: NaN, an infinity, a string that is not UTF-8, or a
            date outside the years 0001 to 9999.
    """
    write = next(write for accepts, write in _WRITERS if accepts(column.type))
    return pc.fill_null(write(column).cast(pa.binary()), b"NULL")


def _text(column: Array) -> Array:
    data = column.cast(pa.binary())
    try:
        # Only this cast makes Arrow validate the bytes of a text, and Spark allows any bytes.
        data.cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError("a string is not valid UTF-8") from None
    joined = bytes(all_bytes(data))
    quoted = _quoted(pc.replace_substring(data, b"'", b"''") if b"'" in joined else data)
    if b"\\" not in joined:
        return quoted
    escaped = pc.match_substring(data, b"\\")
    return pc.if_else(escaped, _wrapped(text.to_hex(data), HEX_TEXT, b"'"), quoted)


def _float(column: Array) -> Array:
    """Floats always have an exponent: without one, MySQL would read a decimal."""
    if pc.all(pc.is_finite(column)).as_py() is False:
        wrong = column.filter(pc.invert(pc.is_finite(column)))[0]
        raise ValueError(f"{wrong} is not a value that MySQL can store")
    text = to_text(column)
    if types.is_float32(column.type):
        # Two floats need the text of the double: MySQL reads a double, and rounds it to a float.
        # The shortest text of the largest float is above it, and is rejected. That of the other
        # float is rounded twice, to its neighbour. No other float has this problem.
        odd = pc.is_in(pc.abs(column), value_set=_ROUNDED_TWICE)
        if pc.any(odd).as_py():
            text = pc.if_else(odd, to_text(column.cast(pa.float64())), text)
    return pc.if_else(pc.match_substring(text, b"e"), text, _wrapped(text, b"", b"e0"))


def _quoted(data: Array) -> Array:
    return _wrapped(data, b"'", b"'")


def _wrapped(data: Array, opening: bytes, closing: bytes) -> Array:
    pieces = [pa.scalar(piece, pa.binary()) for piece in (opening, closing, b"")]
    return pc.binary_join_element_wise(pieces[0], data.cast(pa.binary()), *pieces[1:])


_WRITERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Array], Array]], ...] = (
    (types.is_boolean, lambda flags: flags.cast(pa.int8()).cast(pa.string())),
    (types.is_floating, _float),
    (lambda kind: types.is_string(kind) or types.is_large_string(kind), _text),
    (
        lambda kind: types.is_binary(kind) or types.is_large_binary(kind),
        lambda data: _wrapped(text.to_hex(data.cast(pa.binary())), b"X'", b"'"),
    ),
    # An instant in UTC, which is the zone of every session; or the wall clock unchanged.
    (types.is_timestamp, lambda times: _quoted(to_text(times.view(pa.timestamp("us"))))),
    (lambda kind: types.is_date32(kind) or types.is_time(kind), lambda t: _quoted(to_text(t))),
    (types.is_nested, lambda values: _text(to_json(values))),
    (lambda _: True, to_text),
)
"""The writers of literals by type; the literal of a number or a duration is its text."""
