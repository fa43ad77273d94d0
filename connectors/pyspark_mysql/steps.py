"""Statements that do in the target what a temporary table of numbered rows says."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pyspark_mysql.literals import identifier

OWN = ("sparkonce_flag", "sparkonce_row")
"""Columns of a temporary table besides those of the query."""
FLAG, ROW = map(identifier, OWN)
FEWEST, MOST = 500, 50_000


class Step(NamedTuple):
    """A statement about some rows of the temporary table.

    Attributes:
        head: what stands before the condition.
        alias: of the temporary table.
        which: a further condition, true of the rows that the statement is for.
        tail: what stands behind the condition.
    """

    head: str
    alias: str
    which: str = "TRUE"
    tail: str = ""

    def sql(self, rows: range, without: Collection[int] = ()) -> str:
        """The statement for the rows of these numbers."""
        number = f"{self.alias}.{ROW}"
        where = f"{number} BETWEEN {rows.start} AND {rows[-1]} AND {self.which}"
        if without:
            where += f" AND {number} NOT IN ({', '.join(map(str, without))})"
        return f"{self.head} WHERE {where}{self.tail}"


class Pace:
    """How many rows a statement is given, so that it ends long before the time-out.

    Args:
        timeout: of a statement, in seconds.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout, self.rows = timeout, FEWEST

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Learn from the statement of the block."""
        began = time.monotonic()
        yield
        share = (time.monotonic() - began) / self.timeout
        if share < 0.05:
            self.rows = min(2 * self.rows, MOST)
        elif share > 0.2:
            self.rows = max(self.rows // 2, 1)

    def ranges(self, last: int) -> Iterator[range]:
        """The numbers from 1 to the last one, some at a time."""
        first = 1
        while first <= last:
            part = range(first, min(first + self.rows, last + 1))
            yield part
            first = part.stop


def halves(rows: range) -> tuple[range, range]:
    """The same numbers, as two ranges."""
    middle = rows.start + len(rows) // 2
    return range(rows.start, middle), range(middle, rows.stop)
