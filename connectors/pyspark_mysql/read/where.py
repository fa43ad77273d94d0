"""Conditions of a query as SQL: only those with the same meaning for the server and for Spark.

Spark applies all others. A server compares YEAR with 50 as 2050, JSON as JSON or as text, ENUM by
number or by text. In some collations an index omits rows of `LIKE 'a%'`.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from pyarrow import types
from pymysql.constants import FIELD_TYPE

from pyspark_mysql.read.columns import DAYS, DECIMALS, WHOLE, ResultColumn
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier, literal
from sparkonce.change import Names
from sparkonce.reading import Compare, Filter, Filters, Like, Null, OneOf

LONGEST = 1000
"""The maximum number of values in a list that is sent to the server."""

PROVEN = {
    *(f"utf8mb4_0900_{one}" for one in ("ai_ci", "as_ci", "as_cs", "bin")),
    *(f"utf8mb4_{one}" for one in ("general_ci", "unicode_ci", "unicode_520_ci", "bin")),
    *(f"{one}_{two}" for one in ("utf8mb3", "utf8") for two in ("general_ci", "unicode_ci", "bin")),
    *("utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_cs"),
    *("latin1_swedish_ci", "latin1_general_ci", "latin1_bin", "ascii_general_ci", "ascii_bin"),
}
"""Collations in which the server finds every text that equals another, character by character.

In character sets like cp932 some characters have several codes: the server searches only one.
"""

ASKED = """
SELECT column_name, data_type, collation_name, create_options LIKE '%%partitioned%%'
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = %s AND table_name = %s
  AND table_type = 'BASE TABLE' AND engine = 'InnoDB' AND extra NOT LIKE '%%VIRTUAL%%'
"""
"""Columns whose stored values equal the values that are read.

For an expression, in a view or a query, a server compares more digits than it shows. The index of a
virtual column has its value in the time zone of the session that wrote the row. Engines other than
InnoDB, and partitions by KEY, treat -0.0 and 0.0 as two values.
"""

TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
PARTED = (*WHOLE, *DECIMALS, *DAYS)
"""Types that the server searches in the right partition. Exceptions are some texts, for example by
utf8mb4_0900_as_cs, and moments with fractions of a second, by TO_SECONDS."""


class Comparable(NamedTuple):
    """How the server compares the values of a column."""

    text: bool  # it compares texts as Spark does
    parted: bool  # it also compares them to find the partition of a row
    collation: str  # of its texts; empty if it has none
    bytes: bool  # it compares bytes as numbers


def comparable(session: MySqlSession, table: Names) -> dict[str, Comparable]:
    """The columns that the server compares by their stored values; none for a view or a query."""
    return {
        name: Comparable(
            kind in TEXTS and collation in PROVEN and not parted,
            bool(parted),
            collation or "",
            kind in ("binary", "varbinary") and not parted,
        )
        for name, kind, collation, parted in (session.run(ASKED, *table) if table else ())
    }


def conditions(
    session: MySqlSession, table: Names, filters: Filters, columns: Mapping[str, ResultColumn]
) -> Iterator[str]:
    """The conditions that the server can apply; none for a view or a query.

    Args:
        session: queries how the server compares values.
        table: database and name of the table; empty for a query.
        filters: the filters of Spark.
        columns: columns that are read as their own types, by their names in the query.
    """
    known = comparable(session, table)
    for one in filters:
        column = columns.get(one.column)
        how = known.get(column.name) if column else None
        if column and how and all(_is_proven(value, column, how) for value in _values(one)):
            yield from _condition(one, column)


def _values(one: Filter) -> tuple[Any, ...]:
    match one:
        case Compare(value=value):
            return (value,)
        case OneOf(values=values):
            return values
    return ()


def _condition(one: Filter, column: ResultColumn) -> Iterator[str]:
    name = identifier(column.name)
    match one:
        case Null(inverted=inverted):
            yield f"{name} IS {'NOT ' if inverted else ''}NULL"
        case Compare(operator=operator, value=value):
            yield f"{name} {operator} {_literal(value, column)}"
        case OneOf(values=values) if len(values) <= LONGEST:
            yield f"{name} IN ({', '.join(_literal(value, column) for value in values)})"
        case Like():  # an index may omit rows that match
            return


def _is_proven(value: Any, column: ResultColumn, how: Comparable) -> bool:
    """Whether the server compares the column with the value as Spark does."""
    if isinstance(value, str):
        return how.text and types.is_string(column.natural)
    if types.is_boolean(column.natural) != isinstance(value, bool):
        return False
    return column.code in _codes(value) and (not how.parted or column.code in PARTED)


def _codes(value: Any) -> Collection[int]:
    match value:
        case bool() | int() | Decimal():
            return (*WHOLE, *DECIMALS)
        case float() if math.isfinite(value):
            return (FIELD_TYPE.DOUBLE,)
        case dt.datetime():  # instants are compared in UTC, wall clocks with wall clocks
            return (FIELD_TYPE.DATETIME if value.tzinfo is None else FIELD_TYPE.TIMESTAMP,)
        case dt.date():
            return DAYS
    return ()


def _literal(value: Any, column: ResultColumn) -> str:
    if isinstance(value, int | Decimal):
        return format(Decimal(value), "f")  # with an exponent SQL would read a double
    return literal(value, column.natural)
