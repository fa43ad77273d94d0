"""Whole columns as JSON text, for documents. No Python object is made for a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.values import json_text
from sparkonce.values.text import to_json, to_text

Column = Any


def texts(rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, Column]:
    """These columns as JSON; a null stays null.

    A decimal is a string, which keeps all its digits: a reader of JSON, and a field without an
    explicit mapping, would take a number for a binary float.

    Raises:
        ValueError: a value has no place in a document: NaN, an infinity, a string that is not
            UTF-8, a date outside the years 0001 to 9999.
    """
    _require_storable([(name, rows.column(name)) for name in names])
    found: dict[str, Column] = {}
    for name in names:
        column = rows.column(name)
        try:
            if types.is_decimal(column.type):
                found[name] = json_text.quoted(to_text(column).cast(pa.string()))
            else:
                found[name] = to_json(column)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None
    return found


def routing(rows: pa.RecordBatch, name: str, quoted: Column) -> Column:
    """A column as JSON strings, of which none may be null or empty.

    Args:
        rows: that have it.
        name: of the column.
        quoted: its values as JSON.

    Raises:
        ValueError: one is.
    """
    if quoted.null_count:
        raise ValueError(f"column {name!r} is null in a row, and option routing names it")
    if pc.any(pc.equal(quoted, '""')).as_py():
        raise ValueError(
            f"column {name!r} is empty in a row, and option routing names it: Elasticsearch would"
            " take that for no routing"
        )
    kind = rows.column(name).type
    bare = types.is_boolean(kind) or types.is_duration(kind)
    bare = bare or types.is_integer(kind) or types.is_floating(kind)
    return pc.binary_join_element_wise('"', quoted, '"', "") if bare else quoted


def versions(rows: pa.RecordBatch, name: str) -> Any:
    """The version of each row, of option ``versionColumn``: a whole number that is not negative.

    Of a date or timestamp it is the microseconds since 1970.

    Raises:
        ValueError: one is null or negative.
    """
    column = rows.column(name)
    numbers = column.cast(pa.timestamp("us")) if types.is_date(column.type) else column
    if types.is_timestamp(numbers.type):
        numbers = numbers.view(pa.int64())
    lowest = pc.min(numbers).as_py()
    if column.null_count or (lowest is not None and lowest < 0):
        timed = types.is_temporal(column.type)
        raise ValueError(
            f"column {name!r}, of option versionColumn, is null or"
            f" {'before 1970' if timed else 'negative'} in a row"
        )
    return numbers.cast(pa.string())


def of_version(version: int, kind: pa.DataType) -> str:
    """The text of the value that a version was made from."""
    if not types.is_temporal(kind):
        return str(version)
    at = pa.array([version], pa.int64()).view(pa.timestamp("us"))
    shown = to_text(at.cast(pa.date32()) if types.is_date(kind) else at.view(kind))
    return str(shown.cast(pa.string())[0].as_py())


def joined(*pieces: Column | str) -> Column:
    """The pieces of each row, one after the other; a null is the word `null`."""
    parts = [pa.scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(
        *parts, pa.scalar(""), null_handling="replace", null_replacement="null"
    )


def _require_storable(within: list[tuple[str, Column]]) -> None:
    """Refuse values that JSON has not, wherever in these columns they are."""
    for name, column in within:
        kind = column.type
        if types.is_floating(kind):
            finite = pc.is_finite(column)
            if pc.all(finite).as_py() is False:
                wrong = column.filter(pc.invert(pc.fill_null(finite, True)))[0]
                raise ValueError(f"column {name!r}: {wrong} has no place in a document of JSON")
        elif types.is_string(kind) or types.is_large_string(kind):
            try:  # Arrow does not look; the server would refuse the whole request.
                column.cast(pa.binary()).cast(pa.string())
            except pa.ArrowInvalid:
                raise ValueError(f"column {name!r}: a string is not valid UTF-8") from None
        elif types.is_map(kind) and len(column):
            # Of keys and items those that its slice shows.
            first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
            both = column.keys, column.items
            within += [(name, each.slice(first, last - first)) for each in both]
        elif types.is_struct(kind):
            within += [(name, child) for child in column.flatten()]
        elif types.is_nested(kind) and not types.is_map(kind):
            within.append((name, column.flatten()))
