"""Conditions of a query: random ones for the values of a column, and Spark's result for each."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any, get_args

import pyarrow as pa
from pyarrow import types

from sparkonce.reading import Compare, Filter, Like, Null, OneOf, Operator

COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
LIKE: dict[str, Callable[[str, str], bool]] = {
    "begins": str.startswith,
    "ends": str.endswith,
    "contains": str.__contains__,
}
MANY = 40
"""The number of conditions to draw for one column."""


def holds(value: Any, condition: Filter) -> bool:
    """Whether a value of the column matches, as Spark compares."""
    if isinstance(condition, Null):
        return (value is None) != condition.inverted
    if value is None:
        return False
    if isinstance(condition, OneOf):
        return value in condition.values
    if isinstance(condition, Like):
        return LIKE[condition.how](value, condition.text)
    return COMPARES[condition.operator](value, condition.value)


def drawn(random: Random, field: pa.Field, stored: Sequence[Any]) -> Iterator[Filter]:
    """Conditions as Spark pushes them, with stored values and their neighbours.

    Args:
        random: the random numbers.
        field: the column.
        stored: its values, without nulls.
    """
    yield Null(field.name)
    yield Null(field.name, inverted=True)
    values = [each for one in stored for each in (one, *_neighbours(one, field.type))]
    if types.is_nested(field.type) or not values:
        return
    values += [*_edges(field.type)] * (1 + len(values) // 10)
    for _ in range(MANY):
        value = random.choice(values)
        if random.random() < 0.2:
            yield OneOf(field.name, tuple({*random.choices(values, k=3), value}))
        elif isinstance(value, str) and random.random() < 0.7:
            yield _like(random, field.name, value)
        else:
            # Spark orders texts by bytes, so no condition of order on a text reaches a store.
            ordered = not isinstance(value, str | bytes)
            operators = get_args(Operator) if ordered else ("=",)
            yield Compare(field.name, random.choice(operators), value)


def _like(random: Random, name: str, value: str) -> Like:
    low, high = sorted(random.choices(range(len(value) + 1), k=2))
    parts = (
        Like(name, "begins", value[:high]),
        Like(name, "ends", value[low:]),
        Like(name, "contains", value[low:high]),
    )
    return random.choice(parts)


def _neighbours(value: Any, kind: pa.DataType) -> list[Any]:
    """The next lower and the next higher value of the type."""
    if isinstance(value, bool | bytes | str):
        return []
    if isinstance(value, float):
        return [math.nextafter(value, -math.inf), math.nextafter(value, math.inf)]
    near = []
    for step in (-_step(value), _step(value)):
        try:
            near.append(pa.scalar(value + step, kind).as_py())
        except (pa.ArrowInvalid, OverflowError):  # no such value
            continue
    return near


def _edges(kind: pa.DataType) -> Iterator[Any]:
    """The smallest and the largest value that a condition of Spark can have."""
    if types.is_signed_integer(kind):
        yield from (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
    elif types.is_decimal(kind):
        largest = Decimal((0, (9,) * kind.precision, -kind.scale))
        yield from (-largest, largest)
    elif types.is_date(kind):
        yield from (dt.date.min, dt.date.max)
    elif types.is_timestamp(kind):
        zone = dt.timezone.utc if kind.tz else None
        yield from (dt.datetime.min.replace(tzinfo=zone), dt.datetime.max.replace(tzinfo=zone))
    elif types.is_float64(kind):
        yield from (-math.inf, math.inf)


def _step(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Decimal((0, (1,), int(value.as_tuple().exponent)))
    if isinstance(value, dt.datetime):
        return dt.timedelta(microseconds=1)
    return dt.timedelta(days=1) if isinstance(value, dt.date) else 1
