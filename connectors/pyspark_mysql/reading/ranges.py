"""Splits by ranges of a column: as Spark's JDBC makes them, or by what the server estimates."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.reading.described import Described
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.literals import identifier, literals
from sparkonce.errors import OptionError

PROBES = 16
"""Ranges, for each split, of which the server estimates how many rows they have."""

FEW = 10_000
"""Rows that are not worth a split of their own."""


@dataclass(frozen=True)
class Bounds:
    """What options say of ranges.

    Attributes:
        column: whose values are divided.
        low: where the second half of the first range begins, roughly; ranges at the ends are open.
        high: likewise at the other end.
    """

    column: Described
    low: Any
    high: Any


def read_bound(text: str, column: Described) -> Any:
    """The number that a bound stands for: of a date its days, of a moment its microseconds.

    Raises:
        OptionError: it is no value of the column.
    """
    kind = column.natural
    try:
        if types.is_date(kind):
            return datetime.date.fromisoformat(text).toordinal()
        if types.is_timestamp(kind):
            return pa.scalar(text).cast(pa.timestamp("us")).value
        return int(text)
    except (ValueError, pa.ArrowInvalid):
        raise OptionError(
            f"A bound of option partitionColumn={column.name} is {text!r}",
            why="lowerBound and upperBound are numbers, dates or timestamps, as the column is",
            todo="write values of that column; they need not be its least and its largest",
        ) from None


def strides(bounds: Bounds, parts: int) -> list[str]:
    """Conditions of so many ranges of one width; null is in the first, as with Spark's JDBC."""
    count = max(1, min(parts, bounds.high - bounds.low))
    step = (bounds.high - bounds.low) / count
    borders = [bounds.low + round(step * at) for at in range(1, count)]
    return between(bounds.column, borders)


def between(column: Described, borders: Sequence[int]) -> list[str]:
    """Conditions of the ranges that borders make."""
    name = identifier(column.name)
    texts = [_literal(border, column) for border in dict.fromkeys(borders)]
    if not texts:
        return [""]
    first, last = f"({name} < {texts[0]} OR {name} IS NULL)", f"{name} >= {texts[-1]}"
    middle = [f"{name} >= {low} AND {name} < {high}" for low, high in pairwise(texts)]
    return [first, *middle, last]


def balanced(session: Session, relation: str, column: Described, parts: int) -> list[str]:
    """Conditions of the ranges that `borders` gives. Raises as that."""
    return between(column, borders(session, relation, column, parts))


def borders(session: Session, relation: str, column: Described, parts: int) -> list[int]:
    """Where at most so many ranges begin, but for the first, with about as many rows each.

    The server's estimates come from dives into the index, which read a few pages each: see
    https://dev.mysql.com/doc/refman/8.4/en/range-optimization.html.

    Raises:
        pymysql.MySQLError: the server does not answer.
    """
    name = identifier(column.name)
    ((low, high),) = session.run(f"SELECT MIN({name}), MAX({name}) FROM {relation}")
    if low is None or parts == 1 or _estimate(session, relation, "") <= FEW:
        return []
    low, high = _number(low), _number(high)
    count = max(1, min(parts * PROBES, high - low))
    probes = [low + (high - low) * at // count for at in range(count + 1)]
    rows = [_estimate(session, relation, one) for one in between(column, probes[1:-1])]
    share = max(FEW, sum(rows) / parts)
    begins = list[int]()
    found = 0.0
    for border, one in zip(probes[1:], rows, strict=False):
        found += one
        if found >= share * (len(begins) + 1) and border < high:
            begins.append(border)
    return begins[: parts - 1]


def _estimate(session: Session, relation: str, condition: str) -> float:
    with session.connected() as live:
        how = "" if live.mariadb else "FORMAT=TRADITIONAL "
        query = f"SELECT 1 FROM {relation} WHERE {condition or 'TRUE'}"
        cursor = live.sent(f"EXPLAIN {how}{query}")
        (row,), names = cursor.fetchall(), [one[0] for one in cursor.description]
    return float(row[names.index("rows")] or 0)


def _number(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return int(pa.scalar(value, pa.timestamp("us")).value)
    return value.toordinal() if isinstance(value, datetime.date) else int(value)


def _literal(number: int, column: Described) -> str:
    kind = column.natural
    if types.is_date(kind):
        return _quoted(datetime.date.fromordinal(number), pa.date32())
    if types.is_timestamp(kind):
        return _quoted(number, pa.timestamp("us"))
    return str(number)


def _quoted(value: Any, kind: pa.DataType) -> str:
    text: bytes = literals(pa.array([value], kind))[0].as_py()
    return text.decode()
