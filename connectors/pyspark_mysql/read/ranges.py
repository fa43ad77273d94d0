"""Splits by ranges: of equal width as in Spark's JDBC, or by the server's estimates."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

from pyspark_mysql.read.axes import Axis, Numbers, Texts
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier, string
from sparkonce.errors import OptionError

log = logging.getLogger("sparkonce")

PROBES = 16
"""The number of ranges for each split whose rows the server estimates."""

FEW = 10_000
"""The number of rows below which a separate split is not worthwhile."""

Border: TypeAlias = tuple[str, ...]
"""Where a range begins: literals of the first columns of a key."""


def strides(session: MySqlSession, axis: Axis, bounds: Sequence[str], parts: int) -> list[str]:
    """Conditions of `parts` ranges of equal width between two bounds, which options name.

    The first and the last range are unbounded. Nulls are in the first, as in Spark's JDBC.

    Raises:
        OptionError: a bound is no value of the column.
    """
    if isinstance(axis, Numbers):
        low, high = (_bound(axis, text) for text in bounds)
        borders = axis.strides(low, high, parts)
    elif isinstance(axis, Texts):
        _require_of_charset(session, axis, bounds)
        borders = _sorted(session, axis.strides(bounds[0], bounds[1], parts), axis.collation)
    else:
        borders = []
    return between([axis], [(one,) for one in borders])


def _bound(axis: Numbers, text: str) -> int:
    try:
        return axis.bound(text)
    except ValueError:
        raise OptionError(
            f"A bound of option partitionColumn={axis.column.name} is {text!r}",
            why="lowerBound and upperBound must be numbers, dates, timestamps or texts, like the"
            " column",
            todo="set values of that column; they need not be its lowest and its highest",
        ) from None


def _require_of_charset(session: MySqlSession, axis: Texts, bounds: Sequence[str]) -> None:
    """Reject a bound that the column can't hold, and with which the server compares no value."""
    charset = axis.collation.partition("_")[0]
    for text in bounds:
        there = f"CONVERT(CONVERT({string(text)} USING {charset}) USING utf8mb4)"
        ((same,),) = session.run(f"SELECT {there} = BINARY {string(text)}")
        if not same:
            raise OptionError(
                f"A bound of option partitionColumn={axis.column.name} is {text!r}",
                why=f"character set {charset} of the column lacks some of its letters",
                todo="set a bound that the column can hold",
            )


def _sorted(session: MySqlSession, texts: Sequence[str], collation: str) -> list[str]:
    """Literals of texts in the order of a collation, without those that are equal."""
    charset = collation.partition("_")[0]
    asked = [
        f"SELECT {at} AS at, CONVERT({one} USING {charset}) COLLATE {collation} AS v"
        for at, one in enumerate(texts)
    ]
    if not asked:
        return []
    found = session.run(
        f"SELECT MIN(at) FROM ({' UNION ALL '.join(asked)}) AS texts GROUP BY v ORDER BY v"
    )
    return [texts[int(at)] for (at,) in found]


def between(axes: Sequence[Axis], borders: Sequence[Border]) -> list[str]:
    """Conditions of the ranges between borders. Nulls of the first column are in the first."""
    names = [identifier(one.column.name) for one in axes]
    if not borders:
        return [""]
    first = f"({_compared(names, borders[0], '<')} OR {names[0]} IS NULL)"
    middle = [
        f"{_compared(names, low, '>=')} AND {_compared(names, high, '<')}"
        for low, high in pairwise(borders)
    ]
    return [first, *middle, _compared(names, borders[-1], ">=")]


def _compared(names: Sequence[str], border: Border, operator: str) -> str:
    """The condition of the rows on one side of a border; servers search an index by this form."""
    *begin, (name, value) = zip(names, border, strict=False)
    found = f"{name} {operator} {value}"
    for name, value in reversed(begin):
        found = f"({name} {operator[0]} {value} OR ({name} = {value} AND {found}))"
    return found


@dataclass(frozen=True)
class _Range:
    """Rows between two values of a column, which have the same values in the columns before it.

    Attributes:
        begin: where it begins; empty for the first range.
        same: the literals of those equal values.
        low, high: its lowest and its highest value, as the client returns them.
        rows: the server's estimate.
        above: the literal that its values reach or exceed; empty if any does.
        below: the literal that its values stay below; empty if any does.
        whole: it can't be divided further.
    """

    begin: Border
    same: Border
    low: Any
    high: Any
    rows: float
    above: str = ""
    below: str = ""
    whole: bool = False


def borders(session: MySqlSession, relation: str, axes: Sequence[Axis], parts: int) -> list[Border]:
    """The begins, except the first, of at most `parts` ranges with roughly equal numbers of rows.

    The range with the most rows is halved repeatedly, so that a few remote values cost no split.
    One of a single value is halved by the next column of the key. The server estimates the rows
    of a range by index dives, which read a few pages each: see
    https://dev.mysql.com/doc/refman/8.4/en/range-optimization.html.

    The result is empty if ranges are impossible, for example with an invalid date; a log line
    says so.
    """
    index = _Index(session, relation, axes)
    if parts == 1 or (whole := index.rows(())) <= FEW:
        return []
    first = index.range((), ())
    ranges = [replace(first, rows=whole)] if first else []
    small = max(FEW, whole / parts) / PROBES
    for _ in range(parts * PROBES * 2 if ranges else 0):
        at = max(range(len(ranges)), key=lambda at: 0.0 if ranges[at].whole else ranges[at].rows)
        if ranges[at].whole or ranges[at].rows <= small:
            break
        ranges[at : at + 1] = index.halves(ranges[at]) or [replace(ranges[at], whole=True)]
    found = _joined(ranges, parts)
    if not found:
        ends = first and (first.low, first.high)
        log.info("%s is read in one split: its ends %s can't be divided", relation, ends)
    return found


def _joined(ranges: Sequence[_Range], parts: int) -> list[Border]:
    """The begins of `parts` ranges, joined from smaller ones."""
    share = sum(one.rows for one in ranges) / parts
    begins, found = list[Border](), 0.0
    for one, following in pairwise(ranges):
        found += one.rows
        if found >= share * (len(begins) + 1):
            begins.append(following.begin)
    return begins[: parts - 1]


class _Index:
    """The primary key of a table, in which the server looks up values and estimates rows."""

    def __init__(self, session: MySqlSession, relation: str, axes: Sequence[Axis]) -> None:
        self._session, self._axes = session, axes
        # The server might scan another index. With FORCE INDEX MySQL would not dive at all.
        self._from = f"FROM {relation} USE INDEX (PRIMARY)"
        self._names = [identifier(one.column.name) for one in axes]

    def range(self, begin: Border, same: Border, above: str = "", below: str = "") -> _Range | None:
        """The range of the rows with these values and limits; None if it has no rows."""
        name, axis = self._names[len(same)], self._axes[len(same)]
        equal = [f"{one} = {value}" for one, value in zip(self._names, same, strict=False)]
        limits = [f"{name} >= {above}"] if above else []
        limits += [f"{name} < {below}"] if below else []
        low, high = (self._end([*equal, *limits], len(same), by) for by in ("ASC", "DESC"))
        if low is None or high is None:
            return None
        # The server estimates ranges between stored values best.
        ends = zip((">=", "<="), map(axis.exactly, (low, high)), strict=True)
        tight = [f"{name} {by} {one}" for by, one in ends if one]
        return _Range(begin, same, low, high, self.rows([*equal, *limits, *tight]), above, below)

    def halves(self, one: _Range) -> Sequence[_Range]:
        """Two ranges with the same rows; empty if they are impossible."""
        column = len(one.same)
        if one.low == one.high:
            value = self._axes[column].exactly(one.low)
            if value is None or column + 1 == len(self._axes):
                return ()
            within = self.range(one.begin, (*one.same, value))
            return self.halves(within) if within else ()
        for middle in self._axes[column].middles(one.low, one.high):
            left = self.range(one.begin, one.same, one.above, middle)
            right = self.range((*one.same, middle), one.same, middle, one.below)
            if left and right:
                return left, right
        return ()

    def rows(self, conditions: Sequence[str]) -> float:
        """The estimated number of rows that fulfil all conditions."""
        where = " AND ".join(conditions) or "TRUE"
        with self._session.connected() as live:
            how = "" if live.mariadb else "FORMAT=TRADITIONAL "
            cursor = live.sent(f"EXPLAIN {how}SELECT 1 {self._from} WHERE {where}")
            (row,), names = cursor.fetchall(), [one[0] for one in cursor.description]
        return float(row[names.index("rows")] or 0)

    def _end(self, conditions: Sequence[str], column: int, order: str) -> Any:
        """The first value of a column in an order; None without rows."""
        where = " AND ".join(conditions) or "TRUE"
        by = ", ".join(f"{name} {order}" for name in self._names[: column + 1])
        asked = f"SELECT {self._names[column]} {self._from} WHERE {where} ORDER BY {by} LIMIT 1"
        found = self._session.run(asked)
        return found[0][0] if found else None
