"""Arithmetic with the values of a column, to divide it into ranges.

Only the server compares values: a border in a bad place makes splits of unequal size, and loses no
row.
"""

from __future__ import annotations

import datetime as dt
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, DecimalException
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.read.columns import DAYS, DECIMALS, MOMENTS, WHOLE, ResultColumn
from pyspark_mysql.read.where import Comparable
from pyspark_mysql.server.literals import literal, string

MICROS = 1_000_000
FIRST = pa.scalar(dt.datetime.min, pa.timestamp("us"))
BLANK, MAX_CODE = 0x20, 0x10FFFF
LETTERS = 8
"""The number of letters that distinguish texts."""

EXACT = Context(prec=100)
SURROGATES = range(0xD800, 0xE000)
PLAIN = tuple(map(ord, "0123456789abcdefghijklmnopqrstuvwxyz"))


class Axis(ABC):
    """A column whose values can be divided into ranges."""

    def __init__(self, column: ResultColumn) -> None:
        self.column = column

    @abstractmethod
    def exactly(self, value: Any) -> str | None:
        """The literal of a value that the client returned; None if it has none."""

    @abstractmethod
    def middles(self, low: Any, high: Any) -> list[str]:
        """Literals that may halve the range from one value to another, which includes both."""


class Numbers(Axis):
    """Numbers, dates as days, and moments as seconds.

    With TO_SECONDS, both servers search fractions of a second in the wrong partition.
    """

    def exactly(self, value: Any) -> str | None:
        """See `Axis.exactly`."""
        number = self.number(value)
        whole = number is not None and not getattr(value, "microsecond", 0)
        return self._literal(number) if number is not None and whole else None

    def middles(self, low: Any, high: Any) -> list[str]:
        """See `Axis.middles`."""
        first, last = self.number(low), self.number(high)
        return [] if first is None or last is None else self.strides(first, last + 1, 2)

    def strides(self, low: int, high: int, parts: int) -> list[str]:
        """The literals between `parts` ranges of equal width, as in Spark's JDBC."""
        count = max(1, min(parts, high - low))
        numbers = (low + (high - low) * at // count for at in range(1, count))
        return [self._literal(one) for one in dict.fromkeys(numbers)]

    def number(self, value: Any) -> int | None:
        """The number of a value; None for an invalid date or a null."""
        match value:
            case dt.datetime():
                return _seconds(pa.scalar(value, pa.timestamp("us")))
            case dt.date():
                return value.toordinal()
            case int() | Decimal():
                return int(EXACT.scaleb(Decimal(value), self._digits))
        return None

    def bound(self, text: str) -> int:
        """The number of a bound that an option names. Raises ValueError."""
        kind = self.column.natural
        if types.is_date(kind):
            return dt.date.fromisoformat(text).toordinal()
        if types.is_timestamp(kind):
            return _seconds(max(pa.scalar(text).cast(pa.timestamp("us")), FIRST, key=_seconds))
        if not self._digits:
            return int(text)
        try:
            return int(EXACT.scaleb(Decimal(text), self._digits))
        except (DecimalException, OverflowError) as error:
            raise ValueError(text) from error

    @property
    def _digits(self) -> int:
        return self.column.scale if self.column.code in DECIMALS else 0

    def _literal(self, number: int) -> str:
        kind = self.column.natural
        if types.is_date(kind):
            return literal(dt.date.fromordinal(number), pa.date32())
        if types.is_timestamp(kind):
            return literal(number * MICROS, pa.timestamp("us"))
        return f"{EXACT.scaleb(Decimal(number), -self._digits):f}"


class Texts(Axis):
    """Texts, by the codes of their first letters behind a common beginning."""

    def __init__(self, column: ResultColumn, collation: str) -> None:
        super().__init__(column)
        self.collation = collation

    def exactly(self, value: Any) -> str | None:
        """See `Axis.exactly`."""
        return string(value)

    def middles(self, low: str, high: str) -> list[str]:
        """See `Axis.middles`."""
        return [one for found in self._divided(low, high, 2) for one in found]

    def strides(self, low: str, high: str, parts: int) -> list[str]:
        """The literals between `parts` ranges, in any order."""
        return max(self._divided(low, high, parts), key=len)

    def _divided(self, low: str, high: str, parts: int) -> list[list[str]]:
        """By digits and letters, as most collations order them, and by all codes."""
        most = MAX_CODE if self.collation.startswith("utf8mb4") else ord("~")
        codes = range(BLANK, min(max(map(ord, low + high), default=BLANK), most) + 1)
        ways = _texts(low.lower(), high.lower(), parts, PLAIN), _texts(low, high, parts, codes)
        return [[*map(string, found)] for found in ways]


class Bytes(Axis):
    """Bytes, which the server compares as numbers."""

    def exactly(self, value: bytes) -> str | None:
        """See `Axis.exactly`."""
        return literal(value, pa.binary())

    def middles(self, low: bytes, high: bytes) -> list[str]:
        """See `Axis.middles`."""
        texts = _texts(low.decode("latin-1"), high.decode("latin-1"), 2, range(256))
        return [literal(one.encode("latin-1"), pa.binary()) for one in texts]


def axis(column: ResultColumn, known: Mapping[str, Comparable]) -> Axis | None:
    """The axis of a column; None if it has no ranges.

    `known` are the columns of the table that the server compares by their stored values.
    """
    how = known.get(column.name)
    whole = column.code in WHOLE and not types.is_boolean(column.natural)
    number = column.code in DECIMALS and types.is_decimal(column.natural)
    if whole or number or column.code in (*DAYS, *MOMENTS):
        return Numbers(column)
    if how and how.text and types.is_string(column.natural):
        return Texts(column, how.collation)
    return Bytes(column) if how and how.bytes and types.is_binary(column.natural) else None


def _texts(low: str, high: str, parts: int, codes: Sequence[int]) -> list[str]:
    """Texts that divide a range, with letters of these codes behind a common beginning."""
    common = os.path.commonprefix([low, high])  # noqa: RUF071 (of texts)
    first, last = (_number(one[len(common) :], codes) for one in (low, high))
    between = [first + ((last - first) * at + parts - 1) // parts for at in range(1, parts)]
    return [common + _text(one, codes) for one in between if first < one <= last]


def _number(text: str, codes: Sequence[int]) -> int:
    number = 0
    for at in range(LETTERS):
        number *= len(codes) + 1
        if at < len(text):
            number += bisect_right(codes, ord(text[at]))
    return number


def _text(number: int, codes: Sequence[int]) -> str:
    letters = list[int]()
    for _ in range(LETTERS):
        number, letter = divmod(number, len(codes) + 1)
        if letter:
            letters.append(codes[letter - 1])
    found = (SURROGATES.start - 1 if one in SURROGATES else one for one in reversed(letters))
    return "".join(map(chr, found))


def _seconds(moment: Any) -> int:
    return int(moment.value // MICROS)
