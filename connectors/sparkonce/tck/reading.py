"""What the rules of reads need of a connector under test: a `ReadSubject`."""

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
"""The rows of every check, by ids of their own; all other columns may be null."""

DRAWN = "v"
"""The column of what a subject draws."""

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
    """So many rows of all kinds of values."""

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
    """One connector with a place of its own to read from, made anew for each check.

    Attributes:
        limits: see `Limited`; ``spoil``, ``outage``, ``draw``, ``slow`` are methods here.
        many: rows that are enough for several splits and several batches each.
        columns: that are drawn in a check.
        words: names that answers of the store have for themselves, and columns may have, too.
    """

    abilities = frozenset({"spoil", "outage", "draw", "slow"})
    many: int = 20_000
    columns: int = 12
    words: Sequence[str] = ()

    @abstractmethod
    def fill(self, table: pa.Table) -> None:
        """Store rows of `SCHEMA`, and of whole numbers called as `words`, by a plain client."""

    @abstractmethod
    def infer(self) -> pa.Schema:
        """What the connector says of what is there."""

    @abstractmethod
    def source(self, scan: Scan) -> Source:
        """What reads it, as another process would make it."""

    @abstractmethod
    def churn(self) -> None:
        """Write by a plain client: insert rows with ids below zero, change and delete those."""

    def spoil(self) -> str:
        """Store a value that is none of its column's type; the column's name."""
        raise NotImplementedError

    def draw(self, random: Random) -> str:
        """Store, in place of all rows, others with column `DRAWN`: say what was drawn.

        The type of the column, how it is indexed and collated, and values from the edges of the
        type, in some hundred rows.
        """
        raise NotImplementedError

    def outage(self) -> AbstractContextManager[Callable[[], None]]:
        """Give a function after which the store can't be reached, until the block ends."""
        raise NotImplementedError

    def slow(self) -> AbstractContextManager[Callable[[], int]]:
        """Make the first answer of each read take longer than option `timeout`.

        The context gives a function that says how many reads the store works on.
        """
        raise NotImplementedError
