"""Columns that say something about a row and are not written: operation, order, score, expiry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce import checks
from sparkonce.errors import BadRow, OptionError
from sparkonce.values import spark_types
from sparkonce.values.rows import null_key, shown, shown_value

if TYPE_CHECKING:
    from sparkonce.options import Options

OF_SOME = ("opColumn", "sequenceColumn", "scoreColumn", "maxLength", "nulls")
"""Options that say something about some models only."""

WHOLE = 2**53
"""Up to it a double, which a score is, holds every whole number."""

LATEST = 10**15
"""Milliseconds beyond which the server may refuse an expiry."""


@dataclass(frozen=True)
class Special:
    """The columns, by what they say of a row; None where none does.

    Attributes:
        op: whether it is written or deleted.
        order: the higher one of two rows with one key stays; it is written, too.
        by_number: whether `order` is compared as a number, and not as a date.
        score: of a member of a sorted set.
        whole: whether scores are whole numbers.
        expiry: when its key expires.
        expires_at: whether that is an instant, and not a time from now.
    """

    op: str | None = None
    order: str | None = None
    by_number: bool = False
    score: str | None = None
    whole: bool = False
    expiry: str | None = None
    expires_at: bool = False

    @property
    def unwritten(self) -> set[str | None]:
        """Columns that are no part of what is written."""
        return {self.op, self.score, self.expiry}


def parse(options: Options, schema: pa.Schema) -> Special:
    """The columns that options name.

    Raises:
        OptionError: one is not there, or has a type that says nothing.
    """
    op = options["opColumn"] and checks.column("opColumn", options["opColumn"], schema)
    order, by_number = _typed(
        "sequenceColumn", options, schema, types.is_integer, (types.is_date, types.is_timestamp)
    )
    score, whole = _typed("scoreColumn", options, schema, types.is_integer, (types.is_floating,))
    expiry, expires_at = _typed(
        "ttlColumn", options, schema, _is_instant, (types.is_integer, types.is_duration)
    )
    found = {"sequenceColumn": order, "scoreColumn": score, "ttlColumn": expiry}
    checks.refuse(_twice({"opColumn": op, **found}))
    return Special(op, order, by_number, score, whole, expiry, expires_at)


def _twice(found: Mapping[str, str | None]) -> Iterator[checks.Contradiction]:
    for (one, name), (other, same) in combinations(found.items(), 2):
        yield (
            name is not None and name == same,
            f"Options {one} and {other} both name column {name!r}",
            "each says something else about a row",
            "name a column of its own in each",
        )


def _is_instant(kind: pa.DataType) -> bool:
    return bool(types.is_timestamp(kind) and kind.tz)


_MEANT = {
    "sequenceColumn": "it orders by whole numbers, dates and timestamps",
    "scoreColumn": "a score is a whole number or a float",
    "ttlColumn": "a key expires after whole seconds or an interval, or at a timestamp",
}


def _typed(
    option: str, options: Options, schema: pa.Schema, first: Any, others: tuple[Any, ...]
) -> tuple[str | None, bool]:
    """The column of an option, and whether its type is of the first kind.

    Raises:
        OptionError: it is of no kind.
    """
    if not options[option]:
        return None, False
    name = checks.column(option, options[option], schema)
    field = schema.field(name)
    if not any(is_one(field.type) for is_one in (first, *others)):
        raise OptionError(
            f"Option {option} names column {name!r} of type {spark_types.spark_type(field)}",
            why=_MEANT[option],
            todo="name another column, or cast it before the sink",
        )
    return name, bool(first(field.type))


def require_ordered(name: str, rows: pa.RecordBatch) -> None:
    """See that each row has a place in the order.

    Raises:
        BadRow: one has none.
    """
    if rows.column(name).null_count:
        raise null_key(name, rows, "sequenceColumn", "a row without it has no place in the order")


def require_score(name: str, rows: pa.RecordBatch) -> None:
    """See that each row has a score.

    Raises:
        BadRow: one has none.
    """
    if rows.column(name).null_count:
        raise null_key(name, rows, "scoreColumn", "a member has a place by its score alone")


def require_exact(name: str, rows: pa.RecordBatch) -> None:
    """See that the server takes each score as it is.

    Raises:
        BadRow: one would be another, or is none.
    """
    column = rows.column(name)
    if types.is_integer(column.type):
        numbers = column.cast(pa.int64())
        exact = pc.and_(pc.less_equal(numbers, WHOLE), pc.greater_equal(numbers, -WHOLE))
    else:
        exact = pc.invert(pc.is_nan(column))
    _require_all(
        exact,
        name,
        rows,
        "a score is a double, which holds no such number",
        "cast it to double where that does not matter, or filter such rows out",
    )


def require_finite(name: str, rows: pa.RecordBatch) -> None:
    """See that each number can be added; a null adds nothing.

    Raises:
        BadRow: one is none, or infinite.
    """
    column = rows.column(name)
    if types.is_floating(column.type):
        _require_all(
            pc.is_finite(column),
            name,
            rows,
            "a counter that once took it would stay it for ever",
            f"filter such rows out, or replace the value, for example nanvl({name}, 0)",
            said=", which can't be added",
        )


def expiries(name: str, rows: pa.RecordBatch) -> pa.Array:
    """When each key expires, in milliseconds; null where `ttl` says so, or nothing does.

    Raises:
        BadRow: a time is not positive, or too long.
    """
    column = rows.column(name)
    at = types.is_timestamp(column.type)
    if types.is_integer(column.type):
        seconds = column.cast(pa.int64())
        capped = pc.min_element_wise(seconds, LATEST, skip_nulls=False)
        millis = pc.multiply(pc.max_element_wise(capped, -LATEST, skip_nulls=False), 1000)
    else:
        millis = pc.divide(column.cast(pa.int64()), 1000)
    good = pc.and_(pc.less_equal(millis, LATEST), pc.greater(millis, -LATEST if at else 0))
    _require_all(
        good,
        name,
        rows,
        "a key expires after a millisecond or more, and 31,000 years at most",
        "filter such rows out, or delete their keys by opColumn",
    )
    return millis


def _require_all(
    good: pa.Array, name: str, rows: pa.RecordBatch, why: str, todo: str, said: str = ""
) -> None:
    good = pc.fill_null(good, True)
    if pc.all(good).as_py() is False:  # of no rows it is null
        row = pc.index(good, False).as_py()
        raise BadRow(
            f"Column {name!r} holds {shown_value(rows.column(name)[row])}{said}; the row:"
            f" {shown(rows, row)}",
            why=why,
            todo=todo,
        )
