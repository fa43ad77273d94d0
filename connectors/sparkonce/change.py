"""What the rows of a query do to what is stored, by ``writeMode`` and ``opColumn``.

What a connector can't do it refuses by a table of contradictions, which `checks.refuse` goes
through.
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
}
"""In any case. What stood there before an update is known to the update itself."""


@lru_cache(maxsize=2)
def _numbers(most: int) -> pa.Array:
    return pa.array(range(most), pa.int64())


class RowOperations(NamedTuple):
    """The rows that do something."""

    rows: pa.RecordBatch
    deleted: Any | None = None
    """For each whether it deletes; None if none does."""
    places: Any | None = None
    """Of each, among all that were given; None if these are all."""

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


def split_operations(rows: pa.RecordBatch, name: str | None) -> RowOperations:
    """The rows that do something, and what.

    Every row is written where no column of operations has a `name`.

    Raises:
        BadRow: an operation is none of those known.
    """
    if name is None:
        return RowOperations(rows)
    words = pc.utf8_lower(rows.column(name).cast(pa.string()))
    found = pc.index_in(words, value_set=pa.array(list(WORDS)))
    if found.null_count:
        row = pc.index(found.is_null(), True).as_py()
        raise BadRow(
            f"Column {name!r} holds {describe_value(rows.column(name)[row])}, which is no"
            f" operation; the row: {describe_row(rows, row)}",
            why=f"option opColumn knows {', '.join(WORDS)}",
            todo="translate it before the sink, or filter such rows out",
        )
    deleted = pa.array(list(WORDS.values()), pa.bool_()).take(found)
    places = None
    if deleted.null_count:
        places = pc.indices_nonzero(deleted.is_valid())
        rows, deleted = rows.take(places), deleted.take(places)
    return RowOperations(rows, deleted if pc.any(deleted).as_py() else None, places)


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


Names: TypeAlias = tuple[str, ...]
"""Names of columns."""

Nulls: TypeAlias = Literal["write", "keep"]
"""Whether a null is written, or leaves what is stored."""


@dataclass(frozen=True)
class Append(Variant):
    """A row is added."""


@dataclass(frozen=True)
class Upsert(Variant):
    """A row is written under its key, whether it is there or not.

    Attributes:
        key: columns that name a row.
        nulls: what a null does.
        order: the column by which the highest row of a key wins; None for the last one.
        op: the column that says whether a row is written or deleted; None if all are written.
    """

    key: Names
    nulls: Nulls = "write"
    order: str | None = None
    op: str | None = None


@dataclass(frozen=True)
class Update(Variant):
    """The columns of a row are written over those stored under its key; others stay."""

    key: Names
    nulls: Nulls = "write"


@dataclass(frozen=True)
class Increment(Variant):
    """The columns `added` are added to what is stored under the key."""

    key: Names
    added: Names


@dataclass(frozen=True)
class Delete(Variant):
    """What is stored under the key is deleted; `order` as in `Upsert`."""

    key: Names
    order: str | None = None


Change: TypeAlias = Append | Upsert | Update | Increment | Delete


def mode_of(change: Change) -> str:
    """The value of option ``writeMode`` that stands for it, by which it is stored, too."""
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

    `added` gives the columns that an increment adds; `usual` is done where options don't say.

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
        "update": lambda: Update(key, nulls),
        "increment": lambda: Increment(key, added()),
        "delete": lambda: Delete(key, order),
    }
    return made[mode]()


def commutes(change: Change) -> bool:
    """Whether rows may take effect after those of other writers that came later.

    An upsert may not: the older values would stand. Nor a delete: the row may be a new one.
    """
    return isinstance(change, Append | Increment)


def deletes(change: Change) -> checks.Contradiction:
    """What holds for every connector that can overwrite."""
    return (
        isinstance(change, Delete),
        "Mode overwrite and option writeMode=delete contradict each other",
        "the target is emptied first, and nothing would be written",
        "leave writeMode out, or use mode append",
    )


def contradictions(change: Change, options: Options) -> Iterator[checks.Contradiction]:
    """What holds for every connector that has the options in question."""
    both = f"Options writeMode={mode_of(change)} and {{}} contradict each other"
    yield (
        not isinstance(change, Append) and not change.key,
        f"Option key is missing, and writeMode={mode_of(change)} needs it",
        "it says which stored row a row is about",
        'add .option("key", ...), the columns that name a row',
    )
    yield (
        options["nulls"] == "keep" and not hasattr(change, "nulls"),
        both.format("nulls=keep"),
        "nulls says whether a null is written over what is stored",
        "leave nulls out",
    )
    yield (
        options.get("opColumn") and not isinstance(change, Upsert),
        both.format("opColumn"),
        "opColumn says of each row whether it is written or deleted",
        "leave writeMode out, or set it to upsert",
    )
    yield checks.dead_letter(options)
