"""Rows before their encoding as chunks: shown in errors, and separated if they are bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.errors import BadRow
from sparkonce.values.spark_types import type_name

T = TypeVar("T")

LONGEST_SHOWN = 40
"""Most characters of a value that an error shows."""


class Unfit(ValueError):
    """Rows with values that a column of the target cannot hold unchanged.

    Args:
        name: of the column.
        places: indexes of the rows in the encoded batch.
        why: the column can't hold them.
        todo: what to do about it.
    """

    def __init__(self, name: str, places: pa.Array, why: str, todo: str) -> None:
        super().__init__(f"column {name!r}: {why}")
        self.name, self.places, self.why, self.todo = name, places, why, todo

    def bad_row(self, rows: pa.RecordBatch, place: int, key: Sequence[str]) -> BadRow:
        """The error for one of the rows, which identifies it by its key."""
        row = rows.slice(place, 1)
        about = row.select([n for n in row.schema.names if n in key]) if key else row
        value = describe_value(row.column(self.name)[0])
        what = (
            f"The row with {describe_row(about, 0)} can't be stored: column {self.name!r} can't be"
        )
        return BadRow(f"{what} {value}", self.why, self.todo)


class RejectedRow(NamedTuple):
    """A bad row: the kind of reason, which other rows share, and the reason with its values."""

    kind: str
    reason: str
    row: pa.RecordBatch


def describe_row(rows: pa.RecordBatch, row: int) -> str:
    """A short form of a row for errors: the first columns, with the start of each value."""
    names = rows.schema.names[:8]
    return ", ".join(f"{name}={describe_value(rows.column(name)[row])}" for name in names)


def describe_value(value: pa.Scalar) -> str:
    """A short form of a value for errors: a string in quotes, escaped; null without quotes."""
    if not value.is_valid:
        return "null"
    text = _text(value)
    short = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
    is_text = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
    return repr(short) if is_text else short


def null_key(name: str, rows: pa.RecordBatch, key: str, why: str) -> BadRow:
    """The error for a row whose column `name` is null, although `key` needs it."""
    row = pc.index(rows.column(name).is_null(), True).as_py()
    return BadRow(
        f"Column {name!r} is null in a row, and {key!r} must not be; the row:"
        f" {describe_row(rows, row)}",
        why=why,
        todo=f"filter out these rows, for example where {name} is not null, or fill the column",
    )


def separate_bad_rows(
    rows: pa.RecordBatch, encode: Callable[[pa.RecordBatch], T], key: Sequence[str] = ()
) -> tuple[list[T], list[RejectedRow]]:
    """The encoded good rows, and the bad rows.

    Args:
        rows: of a query; rows after a bad one may be encoded separately from those before it.
        encode: raises `BadRow` or ``ValueError`` if it can't encode one of the rows, `Unfit` with
            all rows that are bad for one reason.
        key: columns by which reasons identify a row.
    """
    try:
        return [encode(rows)], []
    except Unfit as error:
        places = error.places.to_pylist()
        errors = ((place, error.bad_row(rows, place, key)) for place in places)
        bad = [
            RejectedRow(one.why, f"{one.what}: {one.why}", rows.slice(place, 1))
            for place, one in errors
        ]
        # The others may be bad for another reason, so they are encoded again.
        others = pc.invert(pc.is_in(pa.array(range(len(rows))), value_set=error.places))
        encoded, more = separate_bad_rows(rows.filter(others), encode, key)
        return encoded, bad + more
    except (BadRow, ValueError) as error:
        if len(rows) == 1:
            said = (error.why, error.what) if isinstance(error, BadRow) else (str(error),) * 2
            return [], [RejectedRow(*said, rows)]
    # The error names at most one row, so the rows are halved until each bad one is alone.
    middle = len(rows) // 2
    before = separate_bad_rows(rows.slice(0, middle), encode, key)
    behind = separate_bad_rows(rows.slice(middle), encode, key)
    return before[0] + behind[0], before[1] + behind[1]


def naming_rows(encode: Callable[[pa.RecordBatch], T], key: Sequence[str]) -> Callable[..., T]:
    """An encoder whose errors about a value identify the row.

    They show the columns of the key, or without a key the first columns.
    """

    def named(rows: pa.RecordBatch) -> T:
        try:
            return encode(rows)
        except Unfit as error:
            raise error.bad_row(rows, error.places[0].as_py(), key) from None
        except ValueError as error:
            row, error = _first_bad(rows, encode, error)
            if isinstance(error, Unfit):
                raise error.bad_row(row, 0, key) from None
            about = row.select([n for n in row.schema.names if n in key]) if key else row
            raise BadRow(
                f"A value can't be written: {error}; the row: {describe_row(about, 0)}",
                why="it has no documented form in the store",
                todo="filter out these rows, or replace the value before the sink",
            ) from None

    return named


def _first_bad(
    rows: pa.RecordBatch, encode: Callable[[pa.RecordBatch], T], error: ValueError
) -> tuple[pa.RecordBatch, ValueError]:
    """A row that can't be encoded, and why; all rows if the error is not about a single one."""
    while len(rows) > 1:
        middle = len(rows) // 2
        for half in (rows.slice(0, middle), rows.slice(middle)):
            try:
                encode(half)
            except ValueError as found:
                rows, error = half, found
                break
            except BadRow:
                continue
        else:
            # Neither half fails alone, for example if only all texts together pass 2 GiB.
            break
    return rows, error


def percent_encoded(texts: Any) -> Any:
    """Texts with ``:`` escaped, as it separates the columns of a key."""
    if not pc.any(pc.match_substring_regex(texts, "[:%]")).as_py():
        return texts
    # First `%`, as the escape of `:` begins with one.
    return pc.replace_substring(pc.replace_substring(texts, "%", "%25"), ":", "%3A")


def _text(value: pa.Scalar) -> str:
    """A value for a reader, even one that Python cannot convert: it may be bad for that reason."""
    try:
        return str(value)
    except (OverflowError, ValueError):
        if hasattr(value, "as_buffer"):
            return bytes(value.as_buffer()).decode(errors="replace")
        return f"{type_name(value.type)} {getattr(value, 'value', '?')}"
