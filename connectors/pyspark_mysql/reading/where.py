"""Conditions of a query as SQL: rows that match are among those that it finds."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.reading.described import Described
from pyspark_mysql.server.literals import identifier, literals
from sparkonce.filters import Compare, Filter, Filters, Like, Null, OneOf

LONGEST = 1000
"""Values of a list that the server is asked for."""

WILD = str.maketrans({"!": "!!", "%": "!%", "_": "!_"})


def conditions(filters: Filters, columns: Mapping[str, Described]) -> Iterator[str]:
    """Those that the server can be asked for.

    Args:
        filters: on columns that are read as what they are.
        columns: by their names in the query.
    """
    for one in filters:
        if one.column in columns and (sql := _condition(one, columns[one.column])):
            yield sql


def _condition(one: Filter, column: Described) -> str | None:
    name = identifier(column.name)
    match one:
        case Null(inverted=inverted):
            return f"{name} IS {'NOT ' if inverted else ''}NULL"
        case Compare(operator=operator, value=value):
            found = _literal(value, column.natural)
            return found and f"{name} {operator} {found}"
        case OneOf(values=values) if len(values) <= LONGEST:
            texts = [text for value in values if (text := _literal(value, column.natural))]
            return f"{name} IN ({', '.join(texts)})" if len(texts) == len(values) else None
        case Like(how=how, text=text) if types.is_string(column.natural):
            begin, end = {"begins": ("", "%"), "ends": ("%", ""), "contains": ("%", "%")}[how]
            return f"{name} LIKE {_of(begin + text.translate(WILD) + end, pa.string())} ESCAPE '!'"
    return None


COMPARED: tuple[tuple[type | tuple[type, ...], Callable[[pa.DataType], bool]], ...] = (
    (bool, types.is_boolean),
    ((int, Decimal), lambda kind: types.is_integer(kind) or types.is_decimal(kind)),
    (float, types.is_float64),
    (str, types.is_string),
    (datetime.datetime, types.is_timestamp),
    (datetime.date, types.is_date),
)
"""Values, and the columns with which the server compares them as Spark does.

Texts that are the same are equal in every collation; others may be, too.
"""


def _literal(value: Any, kind: pa.DataType) -> str | None:
    """A value in SQL; None if the server compares it otherwise than Spark."""
    fits = next((fits for of, fits in COMPARED if isinstance(value, of)), None)
    if fits is None or not fits(kind) or (isinstance(value, float) and math.isinf(value)):
        return None
    # An instant is compared with one in UTC, and a wall clock with another.
    if isinstance(value, datetime.datetime) and (value.tzinfo is None) != (kind.tz is None):
        return None
    return str(Decimal(value)) if isinstance(value, int | Decimal) else _of(value, kind)


def _of(value: Any, kind: pa.DataType) -> str:
    text: bytes = literals(pa.array([value], kind))[0].as_py()
    return text.decode()
