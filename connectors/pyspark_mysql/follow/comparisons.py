"""Columns that option ``snapshotWhere`` compares: their values in its text, and as literals.

A server compares a literal as it compares the column if the literal has the column's type and
collation. FLOAT, YEAR, TIME, BIT, SET, JSON and bytes lack such literals on some server. So do
texts in character sets with several codes for a character, or with codes without one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.binlog.tokens import Cursor
from pyspark_mysql.read.columns import ResultColumn, as_logged
from pyspark_mysql.read.where import PARTED, Comparable
from pyspark_mysql.server.literals import literal, literals
from pyspark_mysql.target.columns import INTEGERS, TEXTS, TableColumn

CHARSETS = ("utf8mb4", "utf8mb3", "utf8", "ucs2", "utf16", "utf16le", "utf32", "latin1", "ascii")
"""Character sets whose texts are the same bytes after a way through Unicode."""

DAY, SECOND = "%Y-%m-%d", "%Y-%m-%d %H:%M:%S"
MOMENTS = (DAY, SECOND, f"{SECOND}.%f")


@dataclass(frozen=True)
class ComparedColumn:
    """A column of the condition.

    Attributes:
        name: as the table has it.
        logged: its type in the log.
        cast: the SQL before and after a literal that gives it the type of the column; None if the
            condition only needs to know whether a value is null.
        by_index: an index finds the same rows as a comparison of each row. Of texts it may not.
            MySQL drops blanks from what it searches in a CHAR. MariaDB searches one text, not those
            BETWEEN two, if the collation of the connection calls the two equal.
    """

    name: str
    logged: pa.DataType
    cast: tuple[str, str] | None = None
    by_index: bool = True

    def literals(self, values: pa.Array) -> pa.Array:
        """The SQL of each value, as bytes."""
        if self.cast is None:
            return pc.if_else(pc.is_null(values), b"NULL", b"1")
        before, after = map(str.encode, self.cast)
        return pc.binary_join_element_wise(before, literals(values), after, b"")


class Family(NamedTuple):
    """Types of columns that are compared in the same way.

    Attributes:
        kinds: the types.
        value: takes a value from the condition and returns its literal; None if none follows.
        cast: see `ComparedColumn`; from the column and its collation.
        form: of the values, in errors.
        is_text: whether the values have a collation.
    """

    kinds: Sequence[str]
    value: Callable[[Cursor], str | None]
    cast: Callable[[TableColumn, str], tuple[str, str]]
    form: str
    is_text: bool = False

    def compared(
        self, column: ResultColumn, declared: TableColumn, how: Comparable
    ) -> ComparedColumn:
        """A column of the family."""
        by_index = not self.is_text and (not how.parted or column.code in PARTED)
        logged, cast = as_logged(column).type, self.cast(declared, how.collation)
        return ComparedColumn(column.name, logged, cast, by_index)


def family_of(column: TableColumn) -> Family | None:
    """The family of a column; None if its values can't be compared."""
    found = next((one for one in FAMILIES if column.kind in one.kinds), None)
    return found if found and not (found.is_text and column.charset not in CHARSETS) else None


def _number(found: Cursor) -> str | None:
    if word := found.word("TRUE", "FALSE"):
        return word
    sign = "-" if found.sign("-") else ""
    whole = found.number()
    fraction = f".{found.number()}" if whole and found.sign(".") else ""
    digits = whole + fraction.replace(".", "", 1)
    is_number = digits.isascii() and digits.isdecimal() and fraction != "."
    return sign + whole + fraction if is_number else None


def _text(found: Cursor) -> str | None:
    """A text in single quotes. The meaning of a backslash depends on a setting of the server."""
    text = found.text
    if not text.startswith("'") or "\\" in text or not found.string():
        return None
    return text[1:-1].replace("''", "'")


def _quoted(found: Cursor) -> str | None:
    text = _text(found)
    return None if text is None else literal(text, pa.string())


def _day(found: Cursor) -> str | None:
    found.word("DATE")
    when = _time(_text(found), DAY)
    return None if when is None else f"DATE'{when.date()}'"


def _moment(found: Cursor) -> str | None:
    found.word("TIMESTAMP")
    when = _time(_text(found), *MOMENTS)
    return None if when is None else f"TIMESTAMP'{when}'"


def _time(text: str | None, *forms: str) -> dt.datetime | None:
    for form in forms if text is not None else ():
        try:
            return dt.datetime.strptime(text or "", form)
        except ValueError:
            continue
    return None


def _cast_number(column: TableColumn, _: str) -> tuple[str, str]:
    if column.kind == "double":
        return "(", " + 0e0)"
    if column.kind == "decimal":
        digits = column.sql_type.partition("(")[2].partition(")")[0]
        return "CAST(", f" AS DECIMAL({digits}))"
    return "CAST(", f" AS {'UNSIGNED' if 'unsigned' in column.sql_type.lower() else 'SIGNED'})"


def _cast_text(column: TableColumn, collation: str) -> tuple[str, str]:
    return "(CONVERT(", f" USING {column.charset}) COLLATE {collation})"


FAMILIES = (
    Family((*INTEGERS, "decimal", "double"), _number, _cast_number, "numbers such as -1.5"),
    Family(("date",), _day, lambda *_: ("CAST(", " AS DATE)"), "dates such as '2026-01-31'"),
    Family(
        ("datetime", "timestamp"),
        _moment,
        lambda *_: ("CAST(", " AS DATETIME(6))"),
        "times such as '2026-01-31 08:15:00', those of a TIMESTAMP in UTC",
    ),
    Family(
        ("char", "varchar", "enum", *TEXTS),
        _quoted,
        _cast_text,
        "texts in single quotes, without backslashes",
        is_text=True,
    ),
)
"""The families; other columns may only be null or not."""
