"""How rows of a query change the stored rows, by ``writeMode`` and ``opColumn``.

A connector lists unsupported options in a table of contradictions; see `checks.refuse`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce import checks
from sparkonce.codec import Variant
from sparkonce.errors import BadRow, OptionError
from sparkonce.values.rows import describe_row, describe_value

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options

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
    # A change of columns, which a stream of sparkonce tells
    "s": NOTHING,
}
"""Operations, in any case. The image before an update is ignored, as the update suffices."""

EMPTYING = ("t", "truncate")
"""Debezium's operation for TRUNCATE, in any case: it deletes all rows of the target."""


@lru_cache(maxsize=2)
def _numbers(most: int) -> pa.Array:
    return pa.array(range(most), pa.int64())


class RowOperations(NamedTuple):
    """The rows that have an effect."""

    rows: pa.RecordBatch
    deleted: Any | None = None
    """For each row whether it deletes; None if none does."""
    places: Any | None = None
    """The index of each row in the input; None if these are all rows."""

    def keyed(self, kept: Container[str | None]) -> pa.RecordBatch:
        """The rows; those that delete have nulls in all columns except these.

        Only the key of a delete matters: its other values need not fit into the target.
        """
        if self.deleted is None:
            return self.rows
        count = len(self.deleted)
        numbers = _numbers(1 << count.bit_length()).slice(0, count)
        # By index: `if_else` accepts no maps, and before Arrow 19 breaks slices of texts.
        places = pc.if_else(self.deleted, pa.nulls(count, pa.int64()), numbers)
        named = zip(self.rows.schema.names, self.rows.columns, strict=True)
        columns = [one if name in kept else one.take(places) for name, one in named]
        return pa.record_batch(columns, self.rows.schema)


def split_operations(rows: pa.RecordBatch, name: str | None) -> RowOperations:
    """The rows that have an effect, and their operations.

    Without a `name` of an operation column, every row is written.

    Raises:
        BadRow: an operation is unknown.
    """
    if name is None:
        return RowOperations(rows)
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    found = pc.index_in(words, value_set=pa.array(list(WORDS)))
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        raise BadRow(
            f"Column {name!r} holds {describe_value(rows.column(name)[row])}, which is not"
            f" an operation; the row: {describe_row(rows, row)}",
            why=f"option opColumn accepts {', '.join((*WORDS, *EMPTYING))}",
            todo="translate it before the sink, or filter out these rows",
        )
    deleted = pa.array(list(WORDS.values()), pa.bool_()).take(found)
    places = None
    if deleted.null_count:
        places = pc.indices_nonzero(deleted.is_valid())
        rows, deleted = rows.take(places), deleted.take(places)
    return RowOperations(rows, deleted if pc.any(deleted).as_py() else None, places)


def effective(rows: pa.RecordBatch, name: str | None) -> pa.RecordBatch:
    """The rows without those whose operation has no effect; `name` as in `split_operations`."""
    if name is None:
        return rows
    idle = pa.array([word for word, does in WORDS.items() if does is NOTHING])
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    return rows.filter(pc.invert(pc.is_in(words, value_set=idle)))


UNORDERED = "a row's own sequence or version orders it, and a TRUNCATE has none"
"""Why a sink that orders rows by a column can't empty its target."""


class Emptied(NamedTuple):
    """Rows behind the last one that empties their target.

    Attributes:
        rows: without rows that it deletes, and without those that empty a target.
        targets: the names of the emptied targets.
    """

    rows: pa.RecordBatch
    targets: tuple[str, ...] = ()


def behind_emptying(
    rows: pa.RecordBatch,
    name: str | None,
    target_of: Callable[[pa.RecordBatch], pa.Array] | None = None,
    *,
    refused: str = "",
) -> Emptied:
    """Apply the rows that empty a target to the rows before them.

    Args:
        rows: of one chunk, in their order.
        name: of the operation column.
        target_of: the names of the targets of rows; None for a single target, whose name is empty.
        refused: why the sink can't empty its target; empty if it can.

    Raises:
        OptionError: a row empties the target of a sink that can't do that.
    """
    if name is None:
        return Emptied(rows)
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    places = pc.indices_nonzero(pc.is_in(words, value_set=pa.array(EMPTYING)))
    if not len(places):
        return Emptied(rows)
    if refused:
        raise OptionError(
            f"Column {name!r} holds 't', a TRUNCATE or DROP, which this sink can't apply",
            why=refused,
            todo="empty the target by hand, and filter out these rows; or follow the table with"
            " onTruncate=stop",
        )
    if target_of is None:
        return Emptied(rows.slice(places[-1].as_py() + 1), ("",))
    last = dict(zip(target_of(rows.take(places)).to_pylist(), places.to_pylist(), strict=True))
    targets = target_of(rows).to_pylist()
    kept = [at for at, target in enumerate(targets) if at > last.get(target, -1)]
    return Emptied(rows.take(pa.array(kept, pa.int64())), tuple(last))


def require_unstored(name: str | None, *others: str | None) -> None:
    """Reject an operation column that another option names, too.

    Raises:
        OptionError: the column is one of `others`.
    """
    if name is not None and name in others:
        raise OptionError(
            f"Option opColumn names column {name!r}, and so does another option",
            why="the sink does not store operations",
            todo="name another column",
        )


Names: TypeAlias = tuple[str, ...]
"""Names of columns."""

Nulls: TypeAlias = Literal["write", "keep"]
"""Whether a null overwrites the stored value, or keeps it."""


@dataclass(frozen=True)
class Append(Variant):
    """Add each row."""


@dataclass(frozen=True)
class Upsert(Variant):
    """Write each row under its key, whether the key exists or not.

    Attributes:
        key: columns that identify a row.
        nulls: the effect of a null.
        order: the column by which the highest row of a key wins; None for the last row.
        op: the column that says whether to write or delete a row; None to write all.
    """

    key: Names
    nulls: Nulls = "write"
    order: str | None = None
    op: str | None = None


@dataclass(frozen=True)
class Replace(Upsert):
    """Write each row under its key, and remove what else is stored there."""


@dataclass(frozen=True)
class Update(Variant):
    """Overwrite the columns of the row that is stored under the key; other columns stay."""

    key: Names
    nulls: Nulls = "write"


@dataclass(frozen=True)
class Increment(Variant):
    """Add the columns `added` to the values stored under the key."""

    key: Names
    added: Names


@dataclass(frozen=True)
class Delete(Variant):
    """Delete the row that is stored under the key; `order` as in `Upsert`."""

    key: Names
    order: str | None = None


Change: TypeAlias = Append | Upsert | Replace | Update | Increment | Delete


def mode_of(change: Change) -> str:
    """The value of option ``writeMode`` for a change, also its name in the store."""
    return type(change).__name__.lower()


def parse(
    options: Options,
    schema: pa.Schema,
    key: Names,
    added: Callable[[], Names] = tuple,
    *,
    usual: type[Change] | None = None,
) -> Change:
    """The change that options describe.

    `added` returns the columns that an increment adds; `usual` is the default change.

    Raises:
        OptionError: an option names no column of the schema, or one that is not stored.
    """
    orders = (name for name in ("sequenceColumn", "versionColumn") if name in options)
    order_option = next(orders, "")
    op, order = (
        checks.column(name, options[name], schema) if name and options[name] else None
        for name in ("opColumn" if "opColumn" in options else "", order_option)
    )
    require_unstored(op, *key, order)
    suggested = usual or (Upsert if key or op or order else Append)
    mode = options["writeMode"] or suggested.__name__.lower()
    nulls: Nulls = options["nulls"]
    made: dict[str, Callable[[], Change]] = {
        "append": Append,
        "upsert": lambda: Upsert(key, nulls, order, op),
        "replace": lambda: Replace(key, nulls, order, op),
        "update": lambda: Update(key, nulls),
        "increment": lambda: Increment(key, added()),
        "delete": lambda: Delete(key, order),
    }
    return made[mode]()


def commutes(change: Change) -> bool:
    """Whether rows may take effect after newer rows of other writers.

    An upsert may not: it would restore older values. Nor may a delete: the row may be a new one.
    """
    return isinstance(change, Append | Increment)


def deletes(change: Change) -> checks.Contradiction:
    """The contradiction for every connector that can overwrite."""
    return (
        isinstance(change, Delete),
        "Mode overwrite and option writeMode=delete contradict each other",
        "the sink would first empty the target, and then write nothing",
        "omit writeMode, or use mode append",
    )


def contradictions(change: Change, options: Options) -> Iterator[checks.Contradiction]:
    """The contradictions for every connector that has these options."""
    both = f"Options writeMode={mode_of(change)} and {{}} contradict each other"
    yield (
        not isinstance(change, Append) and not change.key,
        f"Option key is missing, and writeMode={mode_of(change)} needs it",
        "it determines which stored row a row changes",
        'add .option("key", ...), the columns that identify a row',
    )
    yield (
        options["nulls"] == "keep" and not hasattr(change, "nulls"),
        both.format("nulls=keep"),
        "nulls says whether a null overwrites the stored value",
        "omit nulls",
    )
    yield (
        options.get("opColumn") and not isinstance(change, Upsert),
        both.format("opColumn"),
        "opColumn says for each row whether to write or delete it",
        "omit writeMode, or set it to upsert",
    )
    yield checks.dead_letter(options)
