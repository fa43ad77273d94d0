"""Values of which the server would make others in silence, found in a task as Arrow.

It takes the text '2' for the second member of an ENUM, makes 2005 of the YEAR 5, the time of day of
a NULL for a TIMESTAMP that is NOT NULL, and leaves white space out for which a column has no room.
What it refuses by itself, as numbers that are too large, is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.target.charsets import CHANGED, MIXED, UNICODE, bytes_of
from pyspark_mysql.target.columns import INTEGERS, TEXTS, Column
from sparkonce.values.text import to_json

Array = Any
FEW_DIGITS = 100
"""Years below it are of one or two digits: the server adds a century."""
WHITE_END = r"[\t-\r ]\z"
"""What both servers cut in silence where a text is too long."""
NUMBER = re.compile(r"[\t-\r ]*[+-]?[0-9]+ *")
"""What the server reads as a number where it is no member: with the spaces of C, and a sign."""
MEMBER = re.compile("'((?:[^']|'')*)'")
SPELLED = {
    "uuid": ("in lower case, like 8-4-4-4-12", r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    "inet4": ("without zeros in front", r"^(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){3}$"),
}
"""How a text must be written that the server stores as it is: in words, and as a pattern."""


class Coercion(NamedTuple):
    """What a column makes of some values.

    Attributes:
        finds: which values of an array these are.
        why: they must not be sent.
        todo: against it.
    """

    finds: Callable[[Array], Array]
    why: str
    todo: str


def coercions(column: Column, kind: str, *, in_key: bool) -> list[Coercion]:
    """What a column makes of values of a kind; of nulls see `of_null`.

    Args:
        column: of the target.
        kind: of the query's column, see `columns.kind_of`.
        in_key: whether stored rows are looked up by it.
    """
    if kind == "string" and column.kind in _OF_TEXTS:
        found = [*_OF_TEXTS[column.kind](column), *_of_letters(column)]
    elif kind in INTEGERS and column.kind in _OF_NUMBERS:
        found = [*_OF_NUMBERS[column.kind](column)]
    else:
        found = [*(_of_letters(column) if kind == "json" else ())]
    return [*found, *(_of_key(column, kind) if in_key else ())]


def of_null(column: Column) -> Coercion | None:
    """What a column makes of a null."""
    if column.numbered:
        why = "the column is auto-increment: the server would put a new number there"
        return Coercion(pc.is_null, why, "leave the column out of the query, or fill it")
    if column.kind == "timestamp" and not column.nullable:
        why = "the column is NOT NULL, and the server would put the time of day there"
        return Coercion(pc.is_null, why, "fill it before the sink, or declare the column NULL")
    return None


def _of_text(column: Column) -> Iterator[Coercion]:
    if column.kind != "longtext":
        todo = "trim or cut the text before the sink, or widen the column"
        why = f"it is longer than the column, a {column.shown}"
        yield Coercion(partial(_is_longer, column=column), why, todo)


def _of_letters(column: Column) -> Iterator[Coercion]:
    if changed := CHANGED.get(column.charset):
        yield Coercion(
            lambda values: pc.match_substring_regex(_text(values), changed),
            f"the server would store another character of {column.charset} for one of it",
            "mend the row before the sink, or alter the column to utf8mb4",
        )


def _text(values: Array) -> Array:
    return to_json(values) if pa.types.is_nested(values.type) else values


def _of_char(column: Column) -> Iterator[Coercion]:
    yield from _of_text(column)
    why = "the column is a CHAR, which keeps no spaces at the end"
    todo = "trim the text before the sink, or make the column a VARCHAR"
    yield Coercion(lambda texts: pc.ends_with(texts, " "), why, todo)


def _is_longer(texts: Array, column: Column) -> Array:
    in_bytes = column.kind.endswith("text")
    length = bytes_of(texts, column) if in_bytes else pc.utf8_length(texts)
    longer = pc.greater(length, column.room)
    if in_bytes and column.charset in MIXED:  # the server refuses all others itself
        return pc.and_(longer, pc.match_substring_regex(texts, WHITE_END))
    return longer


def _of_year(_: Column) -> Iterator[Coercion]:
    yield Coercion(
        lambda years: pc.and_(pc.greater_equal(years, 0), pc.less(years, FEW_DIGITS)),
        "years are 1901 to 2155, and the server would add a century to a number of two digits",
        "write it in full",
    )


def _of_bits(column: Column) -> Iterator[Coercion]:
    if column.shown == "bit(64)":
        yield Coercion(_is_negative, "bits have no sign", "mend the row before the sink")


def _is_negative(numbers: Array) -> Array:
    return pc.less(numbers, pa.scalar(0, numbers.type))


def _of_members(column: Column) -> Iterator[Coercion]:
    told = column.kind.upper()
    which = partial(_is_no_member, column=column, known=members(column))
    yield Coercion(
        partial(_among, which=which),
        f"the text is no member of the {told}, and the server would take it for the number of one,"
        f" or put a ? in place of characters that {column.charset} lacks",
        "mend the row before the sink, or add the member",
    )


def members(column: Column) -> set[str]:
    """The members of an ENUM or a SET, as the server lists them."""
    return {text.replace("''", "'") for text in MEMBER.findall(column.shown)}


def _is_no_member(text: str, column: Column, known: set[str]) -> bool:
    """Whether it is spelled as no member is, and more than letters may differ."""
    given = text.split(",") if column.kind == "set" and text else [text]
    if known.issuperset(given):
        return False
    marked = "?" in column.shown and column.charset not in UNICODE
    return NUMBER.fullmatch(text) is not None or (marked and not text.isascii())


def _among(texts: Array, which: Callable[[str], bool]) -> Array:
    """Which texts have a property; each distinct one is looked at once."""
    distinct = pc.unique(texts).drop_null()
    found = [text for text in distinct.to_pylist() if which(text)]
    return pc.is_in(texts, value_set=pa.array(found, texts.type))


def _of_key(column: Column, kind: str) -> Iterator[Coercion]:
    """The same of a column in which a stored row is looked up by values of a kind."""
    if kind == "binary" and column.kind in ("binary", "bit"):
        yield Coercion(
            lambda data: pc.not_equal(pc.binary_length(data), column.room),
            f"a {column.shown} is filled up with zeros, which would make one key of several",
            f"fill it up to {column.room} bytes before the sink, or make the column VARBINARY",
        )
    if kind == "string" and column.kind in SPELLED:
        words, pattern = SPELLED[column.kind]
        yield Coercion(
            lambda texts: pc.invert(pc.match_substring_regex(texts, pattern)),
            f"a {column.kind.upper()} is spelled in one way, which would make one key of several",
            f"write it {words} before the sink",
        )


_OF_TEXTS: Mapping[str, Callable[[Column], Iterator[Coercion]]] = {
    "char": _of_char,
    **dict.fromkeys(("varchar", *TEXTS), _of_text),
    **dict.fromkeys(("enum", "set"), _of_members),
}
_OF_NUMBERS: Mapping[str, Callable[[Column], Iterator[Coercion]]] = {
    "year": _of_year,
    "bit": _of_bits,
}
