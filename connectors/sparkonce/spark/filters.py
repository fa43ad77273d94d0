"""Conditions of a query in the words of `sparkonce.filters`."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, Literal

from sparkonce.filters import Compare, Filter, Like, Null, OneOf, Operator

COMPARED: dict[str, Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
TEXTS: dict[str, Literal["begins", "ends", "contains"]] = {
    "StringStartsWith": "begins",
    "StringEndsWith": "ends",
    "StringContains": "contains",
}
VALUES = (bool, int, float, Decimal, str, bytes, datetime.date, datetime.datetime)


def understood(filters: Iterable[Any]) -> Iterator[Filter]:
    """Those that a store can be asked for: of a column, not of a field inside it.

    Args:
        filters: Spark's. Each narrows rows, so that one which is left out widens what is read.
    """
    for one in filters:
        found = _understood(one)
        if found is not None:
            yield found


def _understood(one: Any) -> Filter | None:
    kind = type(one).__name__
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1:
        return None
    if kind in ("IsNull", "IsNotNull"):
        return Null(path[0], inverted=kind == "IsNotNull")
    return _compared(kind, path[0], one.value)


def _compared(kind: str, column: str, value: Any) -> Filter | None:
    if kind == "EqualNullSafe" and value is None:
        return Null(column)
    if kind == "In":
        values = tuple(each for each in value if each is not None)  # null is in no list
        return OneOf(column, values) if values and all(map(_is_plain, values)) else None
    if kind in TEXTS:
        return Like(column, TEXTS[kind], str(value))
    operator = COMPARED.get(kind)
    if operator is None or not _is_plain(value):
        return None
    ordered = isinstance(value, str | bytes) and operator != "="
    return None if ordered else Compare(column, operator, value)


def _is_plain(value: Any) -> bool:
    # NaN is the largest of Spark's doubles, and equal to itself.
    return isinstance(value, VALUES) and not (isinstance(value, float) and math.isnan(value))
