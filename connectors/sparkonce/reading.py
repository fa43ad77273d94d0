"""The interfaces of a connector for batch reads, by splits of the stored rows, and for streams.

A feed returns positions, the splits between two positions, and their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from sparkonce.errors import UnsupportedQuery
from sparkonce.option_values import boolean, columns, integer
from sparkonce.options import LOGIN, TIMEOUT, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    """The column has a value for which the comparison holds; for texts only equality.

    A value is a bool, int, float, Decimal, str, bytes, date or datetime.
    """

    column: str
    operator: Operator
    value: Any


@dataclass(frozen=True)
class OneOf:
    """The column has one of these values."""

    column: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Null:
    """The column is null; or, if `inverted`, it is not."""

    column: str
    inverted: bool = False


@dataclass(frozen=True)
class Like:
    """The column is a string that begins with another, ends with it, or contains it."""

    column: str
    how: Literal["begins", "ends", "contains"]
    text: str


Filter: TypeAlias = Compare | OneOf | Null | Like
Filters: TypeAlias = Sequence[Filter]


Split: TypeAlias = Any
"""A read split: any frozen and picklable object that the connector needs to read it."""

ALWAYS = (
    *LOGIN,
    Option(
        "columns",
        "Columns to read: `id,name`. Default: all. Spark does not report which columns a query"
        " uses: to read fewer columns, set this option or `.schema(...)`.",
        columns,
    ),
    TIMEOUT,
    Option(
        "maxRetries",
        "Retries while the store is unreachable, before the first row of a split, at growing"
        " intervals of 0.1 s to 5 s.",
        integer(0, 1000),
        8,
    ),
)
"""Options of all reads, of batches and of streams."""

READS = (
    *ALWAYS,
    Option(
        "pushFilters",
        "Whether the store applies conditions of the query."
        " `spark.sql.python.filterPushdown.enabled` must be true, too, and is false by default.",
        boolean,
        False,
    ),
)
"""Options of all connectors that read batches."""


@dataclass(frozen=True)
class Scan:
    """The rows to read: their Arrow schema, and filters that may exclude rows."""

    schema: pa.Schema
    filters: Filters = ()


class Rows(Protocol):
    """Returns the rows of splits. Created on the driver, and again in each task."""

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The rows of a split, in batches of the requested schema.

        Raises:
            StoreUnreachable: before the first batch the caller may retry; later Spark does.
            ValueUnreadable: a value is not of the requested type.
            UnreadLost: of a feed, the store lost rows of the split.
        """


class Source(Rows, Protocol):
    """A batch read of a store. It keeps no state.

    Every row belongs to one split. A second read of a split returns the same rows, as long as
    nobody writes. If somebody writes, each row is as stored at some time during the read.
    """

    def splits(self) -> Sequence[Split]:
        """The splits, which tasks read in parallel; at least one if the store has a row.

        Raises:
            StoreError: the store can't be read.
        """


@runtime_checkable
class Readable(Protocol):
    """A connector that supports batch reads; `reads` are all their options."""

    reads: Sequence[Option]

    def infer(self, options: Options) -> pa.Schema:
        """The schema of the stored rows, with types that lose nothing."""

    def source(self, options: Options, scan: Scan) -> Source:
        """The source for these options.

        Raises:
            OptionError: the options do not fit the scan.
        """


Position: TypeAlias = dict[str, Any]
"""A place in a feed, as JSON: all that the connector needs to continue from it."""

STARTS = "startingPosition"
"""The option that distinguishes a stream from a batch: every stream has it, and no batch."""

FOLLOWS = (
    Option(
        "maxRowsPerBatch",
        "Approximate limit of rows in an epoch (Spark 4.2 or newer). Default: no limit.",
        integer(1, 2**53),
    ),
    Option(
        "failOnDataLoss",
        "Whether the query stops if the store lost rows that it has not read. If false, it"
        " continues without them, with a warning.",
        boolean,
        True,
    ),
    *ALWAYS,
)
"""Options of all connectors that support streams."""


class Feed(Rows, Protocol):
    """Changes of a store, in an order that never changes. It keeps only connections.

    Spark may read the changes between two positions again, a day later and in another process. The
    feed must then return the same rows, or an error that names the lost ones.

    Attributes:
        unit: the unit of a query's lag: ``rows``, if the store can count them.
        of: identifies the feed as far as its positions do not: at least the store.
    """

    unit: str
    of: str

    def begin(self) -> Position:
        """The start of a new query, by option ``startingPosition``.

        Raises:
            StoreError: the store does not report it.
        """

    def latest(self) -> Position:
        """The present end of the feed.

        Raises:
            StoreError: the store does not report it.
        """

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """The end of an epoch that begins after `after`, and ends at `goal` or before.

        Args:
            after: where the epoch begins.
            goal: another position, which is or was the latest one.
            most: limit of rows; the epoch exceeds it to keep changes together. None means no limit.

        Returns:
            The end; `after` itself if no row follows it.

        Raises:
            StoreError: the store does not report it.
            UnreadLost: the store lost rows after `after`.
        """

    def passed(self, after: Position, goal: Position) -> Position:
        """The position of a query that has found no row from `after` to `goal`, and ends.

        Parts of a position that belong to something not followed now stay unchanged.
        """

    def between(self, after: Position, end: Position) -> Sequence[Split]:
        """The splits of the changes after `after`, up to `end`, in the order of the changes.

        Raises:
            StoreError: the store can't be read.
            UnreadLost: the store lost rows between the two.
        """

    def behind(self, after: Position, end: Position) -> int | None:
        """The number of rows between two positions; None if the store cannot count them cheaply."""


@runtime_checkable
class Followable(Protocol):
    """A connector that supports streams; `follows` are all their options."""

    follows: Sequence[Option]

    def infer_feed(self, options: Options) -> pa.Schema:
        """The schema of the changes, with types that lose nothing."""

    def feed(self, options: Options, scan: Scan) -> Feed:
        """The feed for these options.

        Raises:
            OptionError: the options do not fit the scan.
        """


Offset: TypeAlias = dict[str, Any]

BEGINNING: Offset = {}
VERSION = 1


class Follower:
    """One query and its feed, while the query runs."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._begun: Position | None = None
        self._goal: Position | None = None
        self._last: Offset = BEGINNING

    def beginning(self) -> Offset:
        """The offset of the beginning; its position becomes part of the first epoch's end."""
        self._begin()
        return BEGINNING

    def stop_at_what_is_there(self) -> None:
        """Read no further than the present end of the feed."""
        self._begin()
        self._goal = self.feed.latest()

    def end(self, start: Offset, most: int | None) -> Offset:
        """The end of the epoch that begins at `start`; `start` itself without new rows.

        `start` is an offset that Spark kept, or the beginning. The epoch has about `most` rows at
        most.

        Raises:
            UnsupportedQuery: the offset is not of this package.
            StoreError: the store does not report the end, or lost rows.
        """
        after = self._position(start) if start else self._begin()
        goal = self.feed.latest() if self._goal is None else self._goal
        at = goal if goal == after else self.feed.advance(after, goal, most)
        if self._goal is not None and at == after:
            at = self.feed.passed(after, goal)  # the next query need not look there again
        self._last = start if start and at == after else self._offset(at, None if start else after)
        return self._last

    def end_of_all(self) -> Offset:
        """The end of an epoch, for a Spark that neither passes its start nor sets limits.

        This Spark calls it before it asks for the beginning, also for a query that has already
        begun.
        """
        begun, at = self._begin(), self.feed.latest()
        after = self._position(self._last) if self._last else at
        at = at if at == after else self.feed.advance(after, at, None)
        if not self._last or after != at:
            self._last = self._offset(at, None if self._last else begun)
        return self._last

    def between(self, start: Offset, end: Offset) -> Sequence[Split]:
        """The splits of an epoch.

        Raises:
            UnsupportedQuery: an offset is not of this package.
            StoreError: the store can't be read, or lost rows.
        """
        after, at = self._position(start or {**end, "at": end.get("from")}), self._position(end)
        return [] if after == at else self.feed.between(after, at)

    def report(self) -> Offset:
        """The newest offset, with the lag of this query if the store reports it."""
        latest = self.feed.latest()
        found = self.feed.behind(self._position(self._last), latest) if self._last else None
        behind = {} if found is None else {f"{self.feed.unit}Behind": found}
        return {**self._offset(latest, None), **behind}

    def _begin(self) -> Position:
        if self._begun is None:
            self._begun = self.feed.begin()
        return self._begun

    def _offset(self, at: Position, begun: Position | None) -> Offset:
        of = {"of": self.feed.of} if self.feed.of else {}
        return {"version": VERSION, **of, "at": at, **({} if begun is None else {"from": begun})}

    def _position(self, offset: Offset) -> Position:
        found, of = offset.get("at"), offset.get("of", self.feed.of)
        if offset.get("version") != VERSION or not isinstance(found, dict):
            raise UnsupportedQuery(
                f"The checkpoint has an offset that this release can't read: {offset!r}",
                why="another source wrote it, or a later release of sparkonce",
                todo="continue with what wrote it, or start with a new checkpointLocation",
            )
        if of != self.feed.of:
            raise UnsupportedQuery(
                f"The checkpoint is of {of}, and the query follows {self.feed.of}",
                why="positions of one source are invalid in another: the query would miss changes",
                todo="follow the former source, or start with a new checkpointLocation",
            )
        return found
