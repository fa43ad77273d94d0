"""A `ReadSubject`: what the rules of reads need of a connector under test."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta, timezone
from random import Random

import pyarrow as pa

from sparkonce.reading import Compare, Filter, Like, Null, OneOf, Scan, Source
from sparkonce.tck.limits import Limited

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("flag", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
"""The rows of every check, with unique ids; all other columns may be null."""

DRAWN = "v"
"""The column of values that a subject draws at random."""

TEXTS = (
    *("", " ", "a", "A", "á", "a ", "a%", "a_b", "a!b", "50%", '"', "'", "\\", "a\\", ",", "\n"),
    *("a\nb", "null", "NULL", "\\N", "0", "ünï 東京 😀", "\t", "\r\n", "*", "a*b", "{}", "[1]"),
)
NUMBERS = (0, 1, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63))
DOUBLES = (0.0, -0.5, 0.1, 1 / 3, 1e22, 5e-324, -1.7976931348623157e308, 2.0**53)
MOMENTS = (
    datetime(1999, 12, 31, 23, 59, 59, tzinfo=timezone.utc),
    datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=timezone.utc),
    datetime(2026, 10, 25, 0, 59, 59, 999999, tzinfo=timezone.utc),
    datetime(2037, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=5, minutes=30))),
)
FILTERS: tuple[Filter, ...] = (
    Null("name"),
    Null("name", inverted=True),
    *(Compare("name", "=", text) for text in TEXTS),
    OneOf("name", ("a", "A", "50%", "nowhere")),
    *(Like("name", "begins", text) for text in ("a", "a%", "a_", "\\", "5")),
    *(Like("name", "ends", text) for text in ("%", "b", "\\", " ")),
    *(Like("name", "contains", text) for text in ("%", "_", "!", "'", '"', "*", "\n")),
    *(Compare("n", operator, one) for operator in ("=", "<", "<=", ">", ">=") for one in NUMBERS),
    *(Compare("x", operator, one) for operator in ("=", "<", ">=") for one in DOUBLES),
    Compare("x", "=", -0.0),
    Compare("x", ">", math.inf),
    OneOf("n", (1, 2**63 - 1)),
    Compare("flag", "=", value=True),
    Compare("flag", "=", value=False),
    *(Compare("at", operator, one) for operator in ("=", "<", ">=") for one in MOMENTS),
    Compare("at", ">", MOMENTS[1].replace(microsecond=123455)),
)


def rows(many: int) -> pa.Table:
    """`many` rows with all kinds of values."""

    def column(values: Iterable[object], each: int) -> list[object]:
        known = [*values, None]
        return [known[at // each % len(known)] for at in range(many)]

    columns = [
        list(range(many)),
        *(column(TEXTS, 1), column(NUMBERS, 2), column(DOUBLES, 3)),
        *(column((True, False), 1), column(MOMENTS, 2)),
    ]
    return pa.table(columns, schema=SCHEMA)


class ReadSubject(Limited, ABC):
    """One connector with its own table or index to read, created anew for each check.

    Attributes:
        limits: see `Limited`; ``spoil``, ``outage``, ``draw``, ``slow`` are methods here.
        many: a number of rows that makes several splits of several batches each.
        columns: the number of columns that a check draws.
        words: names of fields in the store's replies that columns may have, too.
    """

    abilities = frozenset({"spoil", "outage", "draw", "slow"})
    many: int = 20_000
    columns: int = 12
    words: Sequence[str] = ()

    @abstractmethod
    def fill(self, table: pa.Table) -> None:
        """Store rows of `SCHEMA`, plus integer columns named as `words`, with a plain client."""

    @abstractmethod
    def infer(self) -> pa.Schema:
        """The schema that the connector infers from the stored rows."""

    @abstractmethod
    def source(self, scan: Scan) -> Source:
        """A source for the scan, as another process would create it."""

    @abstractmethod
    def churn(self) -> None:
        """With a plain client, insert rows with negative ids, then update and delete these."""

    def spoil(self) -> str:
        """Store a value that its column's type does not include; return the column's name."""
        raise NotImplementedError

    def draw(self, random: Random) -> str:
        """Replace all rows by some hundred random ones with column `DRAWN`.

        It draws the type of the column, its index and collation, and values near the limits of
        the type. Return a description of the draw.
        """
        raise NotImplementedError

    def outage(self) -> AbstractContextManager[Callable[[], None]]:
        """A context with a function that makes the store unreachable until the block ends."""
        raise NotImplementedError

    def slow(self) -> AbstractContextManager[Callable[[], int]]:
        """Make the first reply of each read take longer than option `timeout`.

        The context yields a function that returns how many reads the store works on.
        """
        raise NotImplementedError
