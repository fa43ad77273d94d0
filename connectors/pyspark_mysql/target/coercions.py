"""Values of which the server would make others in silence, found in a task as Arrow.

It takes the text '2' for the second member of an ENUM, makes 2005 of the YEAR 5, the time of day of
a NULL for a TIMESTAMP that is NOT NULL, and leaves white space out for which a column has no room.
What it refuses by itself, as numbers that are too large, is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.target.columns import INTEGERS, TEXTS, TableColumn
from sparkonce.values.text import to_json

Array = Any
BEYOND_PLANE_0 = "[\U00010000-\U0010ffff]"
UNICODE = ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")
"""Character sets that have all characters."""

MIXED = ("eucjpms", "gb18030", "ujis")
"""Those of whose characters only a table tells the bytes: texts are taken for as long as can be."""

CHANGED = {"cp932": "\u6661", "tis620": BEYOND_PLANE_0}
"""Characters for which both servers store another one, without a warning; a test tries all."""

ONE_BYTE = {
    "cp932": r"[\x00-\x7F\x{FF61}-\x{FF9F}]",
    "sjis": r"[\x00-\x5B\x5D-\x7F\x{FF61}-\x{FF9F}]",
}
"""Of sets of two bytes, the characters of one byte, where these are not those of ASCII."""

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


def coercions(column: TableColumn, kind: str, *, in_key: bool) -> list[Coercion]:
    """What a column makes of values of a kind, in a key of stored rows; of nulls see `of_null`."""
    found = [*_of_texts(column, kind), *_of_characters(column, kind), *_of_numbers(column, kind)]
    return [*found, *(_of_keys(column, kind) if in_key else ())]


def of_null(column: TableColumn) -> Coercion | None:
    """What a column makes of a null."""
    if column.numbered:
        why = "the column is auto-increment: the server would put a new number there"
        return Coercion(pc.is_null, why, "leave the column out of the query, or fill it")
    if column.kind == "timestamp" and not column.nullable:
        why = "the column is NOT NULL, and the server would put the time of day there"
        return Coercion(pc.is_null, why, "fill it before the sink, or declare the column NULL")
    return None


def _of_texts(column: TableColumn, kind: str) -> Iterator[Coercion]:
    if kind != "string":
        return
    if column.kind in ("char", "varchar", *TEXTS) and column.kind != "longtext":
        todo = "trim or cut the text before the sink, or widen the column"
        why = f"it is longer than the column, a {column.sql_type}"
        yield Coercion(partial(_is_longer, column=column), why, todo)
    if column.kind == "char":
        why = "the column is a CHAR, which keeps no spaces at the end"
        todo = "trim the text before the sink, or make the column a VARCHAR"
        yield Coercion(lambda texts: pc.ends_with(texts, " "), why, todo)
    if column.kind in ("enum", "set"):
        yield Coercion(
            partial(_is_no_member, column=column),
            f"the text is no member of the {column.kind.upper()}, and the server would take it for"
            f" the number of one, or put a ? in place of characters that {column.charset} lacks",
            "mend the row before the sink, or add the member",
        )


def _of_characters(column: TableColumn, kind: str) -> Iterator[Coercion]:
    changed = CHANGED.get(column.charset)
    if changed and (kind == "string" or kind.startswith("json")):
        yield Coercion(
            lambda values: pc.match_substring_regex(
                to_json(values) if pa.types.is_nested(values.type) else values, changed
            ),
            f"the server would store another character of {column.charset} for one of it",
            "mend the row before the sink, or alter the column to utf8mb4",
        )


def _of_numbers(column: TableColumn, kind: str) -> Iterator[Coercion]:
    if kind in INTEGERS and column.kind == "year":
        yield Coercion(
            lambda years: pc.and_(pc.greater_equal(years, 0), pc.less(years, FEW_DIGITS)),
            "years are 1901 to 2155, and the server would add a century to a number of two digits",
            "write it in full",
        )
    if kind in INTEGERS and column.sql_type == "bit(64)":
        yield Coercion(
            lambda numbers: pc.less(numbers, pa.scalar(0, numbers.type)),
            "bits have no sign",
            "mend the row before the sink",
        )


def _of_keys(column: TableColumn, kind: str) -> Iterator[Coercion]:
    """The same of a column in which a stored row is looked up by values of a kind."""
    if kind == "binary" and column.kind in ("binary", "bit"):
        yield Coercion(
            lambda data: pc.not_equal(pc.binary_length(data), column.room),
            f"a {column.sql_type} is filled up with zeros, which would make one key of several",
            f"fill it up to {column.room} bytes before the sink, or make the column VARBINARY",
        )
    if kind == "string" and column.kind in SPELLED:
        words, pattern = SPELLED[column.kind]
        yield Coercion(
            lambda texts: pc.invert(pc.match_substring_regex(texts, pattern)),
            f"a {column.kind.upper()} is spelled in one way, which would make one key of several",
            f"write it {words} before the sink",
        )


def _is_longer(texts: Array, column: TableColumn) -> Array:
    in_bytes = column.kind.endswith("text")
    length = bytes_of(texts, column) if in_bytes else pc.utf8_length(texts)
    longer = pc.greater(length, column.room)
    if in_bytes and column.charset in MIXED:  # the server refuses all others itself
        return pc.and_(longer, pc.match_substring_regex(texts, WHITE_END))
    return longer


def bytes_of(texts: Array, column: TableColumn) -> Array:
    """How many bytes each text takes in a column; in one of a `MIXED` set, at most."""
    if column.charset.startswith("utf8"):
        return pc.binary_length(texts)
    characters = pc.utf8_length(texts)
    if column.charset in ("utf16", "utf16le"):
        pairs = pc.count_substring_regex(texts, BEYOND_PLANE_0)
        return pc.multiply(pc.add(characters, pairs), 2)
    if column.width != 2 or column.charset == "ucs2":
        return pc.multiply(characters, column.width)
    single = ONE_BYTE.get(column.charset, r"[\x00-\x7F]")
    return pc.subtract(pc.multiply(characters, 2), pc.count_substring_regex(texts, single))


def _is_no_member(texts: Array, column: TableColumn) -> Array:
    """Which texts are spelled as no member is, and more than letters may differ."""
    known = members(column)
    marked = "?" in column.sql_type and column.charset not in UNICODE

    def is_none(text: str) -> bool:
        given = text.split(",") if column.kind == "set" and text else [text]
        is_odd = NUMBER.fullmatch(text) is not None or (marked and not text.isascii())
        return is_odd and not known.issuperset(given)

    # Each distinct one is looked at once.
    found = [*filter(is_none, pc.unique(texts).drop_null().to_pylist())]
    return pc.is_in(texts, value_set=pa.array(found, texts.type))


def members(column: TableColumn) -> set[str]:
    """The members of an ENUM or a SET, as the server lists them."""
    return {text.replace("''", "'") for text in MEMBER.findall(column.sql_type)}
