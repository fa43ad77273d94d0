"""What a row of a change stream does, as option ``opColumn`` says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.errors import BadRow

WRITE, DELETE, NOTHING = False, True, None

DELETES = {
    "i": WRITE,
    "insert": WRITE,
    "u": WRITE,
    "update": WRITE,
    "d": DELETE,
    "delete": DELETE,
    # Debezium
    "c": WRITE,
    "r": WRITE,
    # Spark's and Delta's _change_type
    "update_postimage": WRITE,
    "update_preimage": NOTHING,
}
"""In any case. What stood there before an update is known to the update itself."""


def split(rows: pa.RecordBatch, name: str | None) -> tuple[pa.RecordBatch, Any]:
    """The rows that do something, and for each whether it deletes; None if none does.

    Raises:
        BadRow: an operation is none of those known.
    """
    if name is None:
        return rows, None
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    found = pc.index_in(words, value_set=pa.array(list(DELETES)))
    if found.null_count:
        raise _unknown(rows, name, found)
    flags = pa.array(list(DELETES.values()), pa.bool_()).take(found)
    if flags.null_count:
        rows, flags = rows.filter(flags.is_valid()), flags.drop_null()
    return rows, flags if pc.any(flags).as_py() else None


def _unknown(rows: pa.RecordBatch, name: str, found: Any) -> BadRow:
    row = pc.index(found.is_null(), True).as_py()
    shown = {column: str(rows.column(column)[row])[:40] for column in rows.schema.names[:8]}
    return BadRow(
        f"Column {name!r} holds {rows.column(name)[row].as_py()!r}, which is no operation; the row:"
        f" {shown}",
        why=f"option opColumn knows {', '.join(DELETES)}",
        todo="translate it before the sink, or filter such rows out",
    )
