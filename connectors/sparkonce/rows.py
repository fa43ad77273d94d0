"""Rows on their way into chunks: shown in errors, sorted out where they are bad, joined as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.errors import BadRow

T = TypeVar("T")


class Bad(NamedTuple):
    """A row that can't be stored.

    Attributes:
        number: its place among the rows that it was found in.
        row: what it holds, as JSON.
    """

    number: int
    reason: str
    row: str


def shown(rows: pa.RecordBatch, row: int) -> dict[str, str]:
    """What a row holds, in short, for an error: its first columns, and of each the first letters.

    A column without a name is a connector's own, and not shown.

    Args:
        rows: of a query.
        row: its place among them.
    """
    return {name: _text(rows.column(name)[row])[:40] for name in rows.schema.names[:8] if name}


def null_key(name: str, rows: pa.RecordBatch, key: str, why: str) -> BadRow:
    """The error for a row whose column `name` is null, and is needed in `key`."""
    row = pc.index(rows.column(name).is_null(), True).as_py()
    return BadRow(
        f"Column {name!r} is null in a row, and {key!r} must not be; the row: {shown(rows, row)}",
        why=why,
        todo=f"filter such rows out, for example where {name} is not null, or fill them",
    )


def unwritable(
    rows: pa.RecordBatch, encode: Callable[[pa.RecordBatch], object], error: ValueError
) -> BadRow:
    """The error for rows that can't be encoded; it shows the first of them that is at fault.

    Args:
        rows: of a query.
        encode: raised the error for them.
        error: what was raised; of rows that are at fault only together it is told as it is.
    """
    rest = rows
    while len(rest) > 1:
        half = rest.slice(0, len(rest) // 2)
        rest = half if _fails(half, encode) else rest.slice(len(half))
    row = f"; the row: {shown(rest, 0)}" if _fails(rest, encode) else ""
    return BadRow(
        f"A value can't be written: {error}{row}",
        why="it has no documented form in the store",
        todo="filter such rows out, or replace the value before the sink",
    )


def _fails(rows: pa.RecordBatch, encode: Callable[[pa.RecordBatch], object]) -> bool:
    try:
        encode(rows)
    except (BadRow, ValueError):
        return True
    return False


def sorted_out(
    rows: pa.RecordBatch, encode: Callable[[pa.RecordBatch], T], first: int = 0
) -> tuple[list[T], list[Bad]]:
    """What the good rows are encoded to, and the bad ones.

    Args:
        rows: of a query; those behind a bad one are encoded apart from those before it.
        encode: raises `BadRow` or ``ValueError`` if it can't encode one of the rows.
        first: the number of the first row.
    """
    try:
        return [encode(rows)], []
    except (BadRow, ValueError) as error:
        if len(rows) == 1:
            reason = error.what if isinstance(error, BadRow) else str(error)
            return [], [Bad(first, reason, _as_json(rows))]
    middle = len(rows) // 2
    before = sorted_out(rows.slice(0, middle), encode, first)
    behind = sorted_out(rows.slice(middle), encode, first + middle)
    return before[0] + behind[0], before[1] + behind[1]


def percent_encoded(texts: Any) -> Any:
    """Texts in which ``:``, which stands between the columns of a key, is no letter any more.

    Args:
        texts: an Arrow array of strings or of binary.
    """
    if not pc.any(pc.match_substring_regex(texts, "[:%]")).as_py():
        return texts
    return pc.replace_substring(pc.replace_substring(texts, "%", "%25"), ":", "%3A")


def all_bytes(texts: Any) -> memoryview:
    """The texts of an Arrow array of strings or of binary, one after the other, not copied."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return memoryview(b"")
    at = memoryview(offsets).cast("i")
    return memoryview(data)[at[texts.offset] : at[texts.offset + len(texts)]]


def _as_json(rows: pa.RecordBatch) -> str:
    return json.dumps({name: _text(rows.column(name)[0]) for name in rows.schema.names})


def _text(value: pa.Scalar) -> str:
    """A value for a reader, also one of which Python makes no text: it is bad for that reason."""
    try:
        return str(value)
    except (OverflowError, ValueError):
        if hasattr(value, "as_buffer"):
            return bytes(value.as_buffer()).decode(errors="replace")
        return f"{value.type} {getattr(value, 'value', '?')}"
