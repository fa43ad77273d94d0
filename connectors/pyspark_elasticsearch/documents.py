"""Whole columns as JSON text, for documents. No Python object is made for a row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce import json_text
from sparkonce.text import to_json, to_text

Column = Any


def values(rows: pa.RecordBatch, name: str) -> Column:
    """The JSON text of each value of a column; a null stays null.

    A decimal is a string, which keeps all its digits: a reader of JSON, and a field without an
    explicit mapping, would take a number for a binary float.

    Raises:
        ValueError: a value has no place in a document: NaN, an infinity, a string that is not
            UTF-8, a date outside the years 0001 to 9999.
    """
    column = rows.column(name)
    try:
        _require_storable(column)
        if types.is_decimal(column.type):
            return json_text.quoted(to_text(column).cast(pa.string()))
        return to_json(column)
    except ValueError as error:
        raise ValueError(f"column {name!r}: {error}") from None


def member(name: str) -> str:
    """The name of a member of a JSON object, with its colon."""
    return f"{json.dumps(name, ensure_ascii=False)}:"


def joined(*pieces: Column | str) -> Column:
    """The pieces of each row, one after the other; a null is the word `null`."""
    parts = [pa.scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(
        *parts, pa.scalar(""), null_handling="replace", null_replacement="null"
    )


def _require_storable(column: Column) -> None:
    kind = column.type
    if types.is_floating(kind):
        _require_finite(column)
    elif types.is_string(kind) or types.is_large_string(kind):
        _require_utf8(column)
    elif types.is_struct(kind):
        for child in column.flatten():
            _require_storable(child)
    elif types.is_map(kind):
        _require_storable(_within(column, column.keys))
        _require_storable(_within(column, column.items))
    elif types.is_nested(kind):
        _require_storable(column.flatten())


def _within(column: Column, children: Column) -> Column:
    """Those keys or items of a map array that its slice shows."""
    offsets = column.offsets
    if not len(column):
        return children.slice(0, 0)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return children.slice(first, last - first)


def _require_finite(column: Column) -> None:
    finite = pc.is_finite(column)
    if pc.all(finite).as_py() is False:
        wrong = column.filter(pc.invert(pc.fill_null(finite, True)))[0]
        raise ValueError(f"{wrong} has no place in a document of JSON")


def _require_utf8(column: Column) -> None:
    """Arrow does not look; the server would refuse the whole request."""
    try:
        column.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError("a string is not valid UTF-8") from None
