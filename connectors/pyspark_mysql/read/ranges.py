"""Splits by ranges of a column: of equal width as in Spark's JDBC, or by the server's estimates."""

from __future__ import annotations

import datetime as dt
import heapq
import logging
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.read.columns import DAYS, DECIMALS, MOMENTS, WHOLE, ResultColumn
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier, literal
from sparkonce.errors import OptionError

log = logging.getLogger("sparkonce")

PROBES = 16
"""The number of ranges for each split whose rows the server estimates."""

FEW = 10_000
"""The number of rows below which a separate split is not worthwhile."""

MICROS = 1_000_000
FIRST = pa.scalar(dt.datetime.min, pa.timestamp("us"))


def divides(column: ResultColumn) -> bool:
    """Whether the column has ranges: the connector knows its order, arithmetic and literals."""
    whole = column.code in WHOLE and not types.is_boolean(column.natural)
    number = column.code in DECIMALS and column.scale == 0 and types.is_decimal(column.natural)
    return whole or number or column.code in (*DAYS, *MOMENTS)


def read_bound(text: str, column: ResultColumn) -> Any:
    """The number of a bound: days for a date, seconds for a moment.

    With TO_SECONDS, both servers search fractions of a second in the wrong partition.
    """
    kind = column.natural
    try:
        if types.is_date(kind):
            return dt.date.fromisoformat(text).toordinal()
        if types.is_timestamp(kind):
            return _seconds(max(pa.scalar(text).cast(pa.timestamp("us")), FIRST, key=_seconds))
        return int(text)
    except (ValueError, pa.ArrowInvalid):
        raise OptionError(
            f"A bound of option partitionColumn={column.name} is {text!r}",
            why="lowerBound and upperBound must be numbers, dates or timestamps, like the column",
            todo="set values of that column; they need not be its lowest and its highest",
        ) from None


def strides(column: ResultColumn, low: int, high: int, parts: int) -> list[str]:
    """Conditions of `parts` ranges of equal width; nulls are in the first, as in Spark's JDBC.

    The first and the last range are unbounded; `low` and `high` are inside them.
    """
    count = max(1, min(parts, high - low))
    return between(column, [low + (high - low) * at // count for at in range(1, count)])


def between(column: ResultColumn, borders: Sequence[int]) -> list[str]:
    """Conditions of the ranges between borders."""
    name = identifier(column.name)
    texts = [_literal(border, column) for border in dict.fromkeys(borders)]
    if not texts:
        return [""]
    first, last = f"({name} < {texts[0]} OR {name} IS NULL)", f"{name} >= {texts[-1]}"
    middle = [f"{name} >= {low} AND {name} < {high}" for low, high in pairwise(texts)]
    return [first, *middle, last]


def borders(session: MySqlSession, relation: str, column: ResultColumn, parts: int) -> list[int]:
    """The begins, except the first, of at most `parts` ranges with roughly equal numbers of rows.

    The range with the most rows is halved repeatedly, so that a few remote values cost no split.
    The server estimates the rows of a range by index dives, which read a few pages each: see
    https://dev.mysql.com/doc/refman/8.4/en/range-optimization.html.

    The result is empty if ranges are impossible, for example with an invalid date; a log line
    says so.
    """
    if parts == 1 or (whole := _estimate(session, relation, "")) <= FEW:
        return []
    name = identifier(column.name)
    (ends,) = session.run(f"SELECT MIN({name}), MAX({name}) FROM {relation}")
    low, high = map(_number, ends)
    if low is None or high is None:
        log.info("%s is read in one split: its ends %s can't be divided", relation, ends)
        return []

    def rows(low: int, high: int) -> float:
        first, last = (_literal(one, column) for one in (low, high - 1))
        return _estimate(session, relation, f"{name} >= {first} AND {name} <= {last}")

    small, most = max(FEW, whole / parts) / PROBES, parts * PROBES * 2
    return _joined(_halved(rows, low, high + 1, small, most), parts)


def _halved(
    rows: Callable[[int, int], float], low: int, high: int, small: float, most: int
) -> list[tuple[int, float]]:
    """The begins of ranges, and their rows: halved until all are small, at most `most` times."""
    heap = [(-math.inf, low, high)]
    for _ in range(most):
        minus_rows, low, high = heap[0]
        if -minus_rows <= small or high - low < 2:
            break
        heapq.heappop(heap)
        middle = (low + high) // 2
        for part in ((low, middle), (middle, high)):
            heapq.heappush(heap, (-rows(*part), *part))
    return sorted((low, -rows) for rows, low, _ in heap)


def _joined(ranges: Sequence[tuple[int, float]], parts: int) -> list[int]:
    """The begins of `parts` ranges, joined from smaller ones."""
    share = sum(rows for _, rows in ranges) / parts
    begins, found = list[int](), 0.0
    for (_, rows), (border, _) in pairwise(ranges):
        found += rows
        if found >= share * (len(begins) + 1):
            begins.append(border)
    return begins[: parts - 1]


def _estimate(session: MySqlSession, relation: str, condition: str) -> float:
    with session.connected() as live:
        how = "" if live.mariadb else "FORMAT=TRADITIONAL "
        # The server might scan another index. With FORCE INDEX MySQL would not dive at all.
        query = f"SELECT 1 FROM {relation} USE INDEX (PRIMARY) WHERE {condition or 'TRUE'}"
        cursor = live.sent(f"EXPLAIN {how}{query}")
        (row,), names = cursor.fetchall(), [one[0] for one in cursor.description]
    return float(row[names.index("rows")] or 0)


def _number(value: Any) -> int | None:
    """The number of a value, for arithmetic; None for an invalid date, or without rows."""
    match value:
        case dt.datetime():
            return _seconds(pa.scalar(value, pa.timestamp("us")))
        case dt.date():
            return value.toordinal()
        case int() | Decimal():
            return int(value)
    return None


def _seconds(moment: Any) -> int:
    return int(moment.value // MICROS)


def _literal(number: int, column: ResultColumn) -> str:
    kind = column.natural
    if types.is_date(kind):
        return literal(dt.date.fromordinal(number), pa.date32())
    if types.is_timestamp(kind):
        return literal(number * MICROS, pa.timestamp("us"))
    return str(number)
