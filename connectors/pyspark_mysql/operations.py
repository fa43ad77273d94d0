"""What a row of a change stream does, as option ``opColumn`` says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.errors import BadRow

WRITE, DELETE, NOTHING = b"0", b"1", None

FLAGS = {
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
    """The rows that do something, and a flag for each: whether it deletes.

    Args:
        rows: of a query.
        name: the column of operations; None if every row is written.

    Raises:
        BadRow: an operation is none of those known.
    """
    if name is None:
        return rows, pa.array([WRITE], pa.binary()).take(
            pa.nulls(len(rows), pa.int8()).fill_null(0)
        )
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    found = pc.index_in(words, value_set=pa.array(list(FLAGS)))
    if found.null_count:
        raise _unknown(rows, name, found)
    flags = pa.array(list(FLAGS.values()), pa.binary()).take(found)
    if not flags.null_count:
        return rows, flags
    return rows.filter(flags.is_valid()), flags.drop_null()


def _unknown(rows: pa.RecordBatch, name: str, found: Any) -> BadRow:
    row = pc.index(found.is_null(), True).as_py()
    shown = {column: str(rows.column(column)[row])[:40] for column in rows.schema.names[:8]}
    return BadRow(
        f"Column {name!r} holds {rows.column(name)[row].as_py()!r}, which is no operation; the row:"
        f" {shown}",
        why=f"option opColumn knows {', '.join(FLAGS)}",
        todo="translate it before the sink, or filter such rows out",
    )
