"""What a row of a change stream does, as option ``opColumn`` says."""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import shown, shown_value

WRITE, DELETE, NOTHING = False, True, None

WORDS = {
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


@lru_cache(maxsize=2)
def _numbers(most: int) -> pa.Array:
    return pa.array(range(most), pa.int64())


class Doing(NamedTuple):
    """The rows that do something.

    Attributes:
        rows: these alone.
        deleted: for each whether it deletes; None if none does.
        places: of each, among all that were given; None if these are all.
    """

    rows: pa.RecordBatch
    deleted: Any | None = None
    places: Any | None = None

    def keyed(self, kept: Container[str | None]) -> pa.RecordBatch:
        """The rows, in which those that delete have nulls in all columns but these.

        Only their key matters: the rest need not fit into the target any more.
        """
        if self.deleted is None:
            return self.rows
        count = len(self.deleted)
        numbers = _numbers(1 << count.bit_length()).slice(0, count)
        # By place: `if_else` takes no maps, and Arrow below 19 breaks slices of texts with it.
        places = pc.if_else(self.deleted, pa.nulls(count, pa.int64()), numbers)
        named = zip(self.rows.schema.names, self.rows.columns, strict=True)
        columns = [one if name in kept else one.take(places) for name, one in named]
        return pa.record_batch(columns, self.rows.schema)


def split(rows: pa.RecordBatch, name: str | None) -> Doing:
    """The rows that do something, and what.

    Args:
        rows: of a query.
        name: the column of operations; None if every row is written.

    Raises:
        BadRow: an operation is none of those known.
    """
    if name is None:
        return Doing(rows)
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    found = pc.index_in(words, value_set=pa.array(list(WORDS)))
    if found.null_count:
        raise _unknown(rows, name, found)
    deleted = pa.array(list(WORDS.values()), pa.bool_()).take(found)
    places = None
    if deleted.null_count:
        places = pc.indices_nonzero(deleted.is_valid())
        rows, deleted = rows.take(places), deleted.take(places)
    return Doing(rows, deleted if pc.any(deleted).as_py() else None, places)


def require_unstored(name: str | None, *others: str | None) -> None:
    """Refuse a column of operations that another option names, too.

    Raises:
        OptionError: it is one of `others`.
    """
    if name is not None and name in others:
        raise OptionError(
            f"Option opColumn names column {name!r}, and so does another option",
            why="operations are not stored",
            todo="name another column",
        )


def _unknown(rows: pa.RecordBatch, name: str, found: Any) -> BadRow:
    row = pc.index(found.is_null(), True).as_py()
    return BadRow(
        f"Column {name!r} holds {shown_value(rows.column(name)[row])}, which is no operation; the"
        f" row: {shown(rows, row)}",
        why=f"option opColumn knows {', '.join(WORDS)}",
        todo="translate it before the sink, or filter such rows out",
    )
