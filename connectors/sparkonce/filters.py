"""Conditions on rows that are read, as a store may be asked for them.

They narrow what is read and decide nothing: Spark applies each of them again to the rows that come.
So a store may give more rows than match, and must never give fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    """The column has a value, and it compares so with another; texts are compared for equality.

    Attributes:
        value: as Python has it: bool, int, float, Decimal, str, bytes, date or datetime.
    """

    column: str
    operator: Operator
    value: Any


@dataclass(frozen=True)
class OneOf:
    """The column has one of these values."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Null:
    """The column has no value; or, `inverted`, it has one."""

    column: str
    inverted: bool = False


@dataclass(frozen=True)
class Like:
    """The column is a text that begins with another, ends with it, or contains it."""

    column: str
    how: Literal["begins", "ends", "contains"]
    text: str


Filter: TypeAlias = Compare | OneOf | Null | Like
Filters: TypeAlias = Sequence[Filter]
