"""Finds, in a task, values that the server would silently change; see coercion in the glossary.

The server reads the text '2' as the second member of an ENUM, and stores the YEAR 5 as 2005. It
stores the current time for a NULL in a TIMESTAMP that is NOT NULL, and cuts trailing white space
that exceeds a column. Values that the server itself rejects, such as numbers out of range, need no
coercion.
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
"""Character sets whose bytes per character need a table: each text counts with its maximum."""

CHANGED = {"cp932": "\u6661", "tis620": BEYOND_PLANE_0}
"""Characters that both servers replace without a warning; a test tries all characters."""

ONE_BYTE = {
    "cp932": r"[\x00-\x7F\x{FF61}-\x{FF9F}]",
    "sjis": r"[\x00-\x5B\x5D-\x7F\x{FF61}-\x{FF9F}]",
}
"""In sets of two bytes, the characters of one byte, unless these are ASCII."""

FEW_DIGITS = 100
"""Years below it have one or two digits: the server adds a century."""
WHITE_END = r"[\t-\r ]\z"
"""White space that both servers silently cut if a text is too long."""
NUMBER = re.compile(r"[\t-\r ]*[+-]?[0-9]+ *")
"""A text that the server reads as a number if it is not a member: with C's spaces, and a sign."""
MEMBER = re.compile("'((?:[^']|'')*)'")
SPELLED = {
    "uuid": ("in lower case, like 8-4-4-4-12", r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    "inet4": ("without zeros in front", r"^(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){3}$"),
}
"""The spelling of texts that the server stores unchanged: in words, and as a pattern."""


DIGITS = {
    "time": ("-?[0-9]{2,3}:[0-5][0-9]:[0-5][0-9]", "-12:34:56"),
    "decimal": ("-?[0-9]+", "-12.34"),
}
"""Texts of numbers and times, as reads return them: a pattern, to which a fraction is added."""


class Coercion(NamedTuple):
    """A silent change that a column makes to some values.

    Attributes:
        finds: marks these values in an array.
        why: the reason to reject them.
        todo: the cure.
    """

    finds: Callable[[Array], Array]
    why: str
    todo: str


def coercions(column: TableColumn, kind: str, *, in_key: bool) -> list[Coercion]:
    """The coercions of a column for values of a kind; for nulls see `of_null`."""
    rules = _of_texts, _of_characters, _of_digits, _of_numbers
    found = [one for rule in rules for one in rule(column, kind)]
    return [*found, *(_of_keys(column, kind) if in_key else ())]


def of_null(column: TableColumn) -> Coercion | None:
    """The coercion of a null."""
    if column.numbered:
        why = "the column is auto-increment: the server would store a new number in it"
        return Coercion(pc.is_null, why, "drop the column from the query, or fill it")
    if column.kind == "timestamp" and not column.nullable:
        why = "the column is NOT NULL, and the server would store the current time in it"
        return Coercion(pc.is_null, why, "fill it before the sink, or declare the column NULL")
    return None


def _of_texts(column: TableColumn, kind: str) -> Iterator[Coercion]:
    if kind != "string":
        return
    if column.kind in ("char", "varchar", *TEXTS) and column.kind != "longtext":
        todo = "trim or cut the string before the sink, or widen the column"
        why = f"the string is longer than the column, a {column.sql_type}"
        yield Coercion(partial(_is_longer, column=column), why, todo)
    if column.kind == "char":
        why = "the column is a CHAR, which drops spaces at the end"
        todo = "trim the string before the sink, or make the column a VARCHAR"
        yield Coercion(lambda texts: pc.ends_with(texts, " "), why, todo)
    if column.kind in ("enum", "set"):
        yield Coercion(
            partial(_is_no_member, column=column),
            f"the string is not a member of the {column.kind.upper()}, and the server would read it"
            f" as a member's number, or put a ? in place of characters that {column.charset} lacks",
            "correct the row before the sink, or add the member",
        )


def _of_characters(column: TableColumn, kind: str) -> Iterator[Coercion]:
    changed = CHANGED.get(column.charset)
    if changed and (kind == "string" or kind.startswith("json")):
        yield Coercion(
            lambda values: pc.match_substring_regex(
                to_json(values) if pa.types.is_nested(values.type) else values, changed
            ),
            f"the server would replace one of its characters by another one of {column.charset}",
            "correct the row before the sink, or alter the column to utf8mb4",
        )


def _of_digits(column: TableColumn, kind: str) -> Iterator[Coercion]:
    """The coercions of texts that a column stores as numbers or times."""
    if kind == "string" and column.kind in DIGITS:
        form, like = DIGITS[column.kind]
        stated = re.search(r"(\d+)\)", column.sql_type)
        most = int(stated[1]) if stated else 0
        pattern = f"^{form}{rf'(?:[.][0-9]{{1,{most}}})?' if most else ''}$"
        yield Coercion(
            lambda texts: pc.invert(pc.match_substring_regex(texts, pattern)),
            f"the server would round it to a {column.sql_type}, or read another value",
            f"write it like {like}, with at most {most} digits after the point",
        )


def _of_numbers(column: TableColumn, kind: str) -> Iterator[Coercion]:
    if kind in INTEGERS and column.kind == "year":
        yield Coercion(
            lambda years: pc.and_(pc.greater(years, 0), pc.less(years, FEW_DIGITS)),
            "years are 0 and 1901 to 2155, and the server would add a century to a number of two"
            " digits",
            "write the year in full",
        )
    if (kind in INTEGERS or kind.startswith("decimal")) and column.sql_type == "bit(64)":
        yield Coercion(_is_no_64_bits, "it has a sign, or more bits", "correct it before the sink")


def _is_no_64_bits(numbers: Array) -> Array:
    wide = numbers.cast(pa.decimal128(38, 0))
    most = pa.scalar(2**64 - 1, wide.type)
    return pc.or_(pc.less(wide, pa.scalar(0, wide.type)), pc.greater(wide, most))


def _of_keys(column: TableColumn, kind: str) -> Iterator[Coercion]:
    """The coercions of a key column, by which the server looks up stored rows."""
    if kind == "binary" and column.kind in ("binary", "bit"):
        yield Coercion(
            lambda data: pc.not_equal(pc.binary_length(data), column.room),
            f"the server pads a {column.sql_type} with zeros, so several keys would become one",
            f"pad it to {column.room} bytes before the sink, or make the column VARBINARY",
        )
    if kind == "string" and column.kind in SPELLED:
        words, pattern = SPELLED[column.kind]
        yield Coercion(
            lambda texts: pc.invert(pc.match_substring_regex(texts, pattern)),
            f"a {column.kind.upper()} has one spelling, so several keys would become one",
            f"write it {words} before the sink",
        )


def _is_longer(texts: Array, column: TableColumn) -> Array:
    in_bytes = column.kind.endswith("text")
    length = bytes_of(texts, column) if in_bytes else pc.utf8_length(texts)
    longer = pc.greater(length, column.room)
    if in_bytes and column.charset in MIXED:  # the server itself rejects all others
        return pc.and_(longer, pc.match_substring_regex(texts, WHITE_END))
    return longer


def bytes_of(texts: Array, column: TableColumn) -> Array:
    """The number of bytes of each text in a column; the maximum in a `MIXED` set."""
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
    """Which texts are not members, and differ from members by more than case may explain."""
    known = members(column)
    marked = "?" in column.sql_type and column.charset not in UNICODE

    def is_none(text: str) -> bool:
        given = text.split(",") if column.kind == "set" and text else [text]
        is_odd = NUMBER.fullmatch(text) is not None or (marked and not text.isascii())
        return is_odd and not known.issuperset(given)

    # Checks each distinct text once.
    found = [*filter(is_none, pc.unique(texts).drop_null().to_pylist())]
    return pc.is_in(texts, value_set=pa.array(found, texts.type))


def members(column: TableColumn) -> set[str]:
    """The members of an ENUM or a SET, as the server lists them."""
    return {text.replace("''", "'") for text in MEMBER.findall(column.sql_type)}
