"""Conditions of a query as SQL: only those that server and Spark understand alike, as a list.

Any other is left to Spark. A server compares YEAR with 50 as 2050, JSON as JSON or as text, ENUM by
number or by text, and an index leaves rows out of `LIKE 'a%'` in some collations.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types
from pymysql.constants import FIELD_TYPE

from pyspark_mysql.reading.described import DAYS, DECIMALS, WHOLE, Described
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.literals import identifier, literals
from sparkonce.change import Names
from sparkonce.filters import Compare, Filter, Filters, Like, Null, OneOf

LONGEST = 1000
"""Values of a list that the server is asked for."""

PROVEN = {
    *(f"utf8mb4_0900_{one}" for one in ("ai_ci", "as_ci", "as_cs", "bin")),
    *(f"utf8mb4_{one}" for one in ("general_ci", "unicode_ci", "unicode_520_ci", "bin")),
    *(f"{one}_{two}" for one in ("utf8mb3", "utf8") for two in ("general_ci", "unicode_ci", "bin")),
    *("utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_cs"),
    *("latin1_swedish_ci", "latin1_general_ci", "latin1_bin", "ascii_general_ci", "ascii_bin"),
}
"""Collations by which the server finds each text that is equal to another, character by character.

In character sets as cp932 some characters have several places: the server looks for one of them.
"""

TEXTS = """
SELECT column_name, collation_name
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = %s AND table_name = %s
  AND data_type IN ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext')
  AND table_type = 'BASE TABLE' AND create_options NOT LIKE '%%partitioned%%'
"""
"""MySQL looks for some texts in the wrong partition, by utf8mb4_0900_as_cs for one."""


def equal_texts(session: Session, table: Names) -> frozenset[str]:
    """The columns of a table whose texts the server compares as Spark does; none of a view.

    Raises:
        pymysql.MySQLError: the server does not answer.
    """
    return frozenset(name for name, collation in session.run(TEXTS, *table) if collation in PROVEN)


def has_texts(filters: Filters) -> bool:
    """Whether a condition compares texts."""
    return any(isinstance(value, str) for one in filters for value in _values(one))


def conditions(
    filters: Filters, columns: Mapping[str, Described], texts: Collection[str]
) -> Iterator[str]:
    """Those that the server can be asked for.

    Args:
        filters: on columns that are read as what they are.
        columns: by their names in the query.
        texts: names of the columns whose texts the server compares as Spark does.
    """
    for one in filters:
        column = columns.get(one.column)
        if column and all(_is_proven(value, column, texts) for value in _values(one)):
            yield from _condition(one, column)


def _values(one: Filter) -> tuple[Any, ...]:
    match one:
        case Compare(value=value):
            return (value,)
        case OneOf(values=values):
            return values
    return ()


def _condition(one: Filter, column: Described) -> Iterator[str]:
    name = identifier(column.name)
    match one:
        case Null(inverted=inverted):
            yield f"{name} IS {'NOT ' if inverted else ''}NULL"
        case Compare(operator=operator, value=value):
            yield f"{name} {operator} {_literal(value, column)}"
        case OneOf(values=values) if len(values) <= LONGEST:
            yield f"{name} IN ({', '.join(_literal(value, column) for value in values)})"
        case Like():  # an index may leave out rows that match
            return


def _is_proven(value: Any, column: Described, texts: Collection[str]) -> bool:
    """Whether the server compares the column with the value as Spark does."""
    if isinstance(value, str):
        return column.name in texts and types.is_string(column.natural)
    if types.is_boolean(column.natural) != isinstance(value, bool):
        return False
    return column.code in _codes(value)


def _codes(value: Any) -> Collection[int]:
    match value:
        case bool() | int() | Decimal():
            return (*WHOLE, *DECIMALS)
        case float() if math.isfinite(value):
            return (FIELD_TYPE.DOUBLE,)
        case dt.datetime():  # an instant is compared with one in UTC, a wall clock with another
            return (FIELD_TYPE.DATETIME if value.tzinfo is None else FIELD_TYPE.TIMESTAMP,)
        case dt.date():
            return DAYS
    return ()


def _literal(value: Any, column: Described) -> str:
    if isinstance(value, int | Decimal):
        return format(Decimal(value), "f")  # with an exponent it would be a double
    text: bytes = literals(pa.array([value], column.natural))[0].as_py()
    return text.decode()
