"""Option ``versionColumn``: a document's external version, made from a column.

A version is a whole number that is not negative. Of a date or timestamp it is the microseconds
since 1970.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.text import to_text


def texts(rows: pa.RecordBatch, name: str) -> Any:
    """The version of each row.

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


def value(version: int, kind: pa.DataType) -> str:
    """The text of the value that a version was made from."""
    if not types.is_temporal(kind):
        return str(version)
    at = pa.array([version], pa.int64()).view(pa.timestamp("us"))
    shown = to_text(at.cast(pa.date32()) if types.is_date(kind) else at.view(kind))
    return str(shown.cast(pa.string())[0].as_py())
