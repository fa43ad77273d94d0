"""What a connector implements to be read, by splits of what is there, and to be followed.

A feed gives positions, what lies between two, and the rows.
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
    """The column has a value, and it compares so with another; texts are compared for equality.

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
    """The column has no value; or, `inverted`, it has one."""

    column: str
    inverted: bool = False


@dataclass(frozen=True)
class Like:
    """The column is a text that begins with another, ends with it, or contains it."""

    column: str
    how: Literal["begins", "ends", "contains"]
    text: str


Filter: TypeAlias = Compare | OneOf | Null | Like
Filters: TypeAlias = Sequence[Filter]


Split: TypeAlias = Any
"""A part of what is read: whatever the connector needs to read it, frozen, and picklable."""

ALWAYS = (
    *LOGIN,
    Option(
        "columns",
        "Columns to be read: `id,name`. Default: all. Spark tells no reader which columns a query"
        " uses, so this is what spares the others.",
        columns,
    ),
    TIMEOUT,
    Option(
        "maxRetries",
        "Retries where the store can't be reached before the first row of a split, at growing"
        " intervals of 0.1 s to 5 s.",
        integer(0, 1000),
        8,
    ),
)
"""Options of all that is read, as a batch or as a stream."""

READS = (
    *ALWAYS,
    Option(
        "pushFilters",
        "Whether conditions of a query narrow what is read:"
        " `spark.sql.python.filterPushdown.enabled` must be true, too, and is false by default.",
        boolean,
        False,
    ),
)
"""Options of all connectors that read batches."""


@dataclass(frozen=True)
class Scan:
    """What is asked for: rows of a schema, which has all that Arrow needs, narrowed by filters."""

    schema: pa.Schema
    filters: Filters = ()


class Rows(Protocol):
    """What gives the rows of splits. Made on the driver, and anew in each task."""

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The rows of a split, in batches of the schema that was asked for.

        Raises:
            StoreUnreachable: before the first batch it may be tried again; later Spark does that.
            ValueUnreadable: a value is none of the type that was asked for.
            UnreadLost: of a feed, rows of the split are gone.
        """


class Source(Rows, Protocol):
    """What is read of a store. It keeps nothing.

    Every row lies in one split, and a split that is read again gives the same rows, as long as
    nobody writes. Where somebody does, each row is as it was at some moment of the read.
    """

    def splits(self) -> Sequence[Split]:
        """The parts that can be read at once; at least one, if there is any row.

        Raises:
            StoreError: the store can't be read.
        """


@runtime_checkable
class Readable(Protocol):
    """A connector that can be read; `reads` are all options that a read knows."""

    reads: Sequence[Option]

    def infer(self, options: Options) -> pa.Schema:
        """The schema of what is there, with the types that lose nothing."""

    def source(self, options: Options, scan: Scan) -> Source:
        """What is read, with these options.

        Raises:
            OptionError: they don't fit what is asked for.
        """


Position: TypeAlias = dict[str, Any]
"""How far a store was read, as JSON: whatever the connector needs to go on from there."""

STARTS = "startingPosition"
"""The option that every stream has, and no batch: by it the two are told apart."""

FOLLOWS = (
    Option(
        "maxRowsPerBatch",
        "About how many rows an epoch has at most (Spark 4.2 or newer). Default: all there are.",
        integer(1, 2**53),
    ),
    Option(
        "failOnDataLoss",
        "Whether the query stops where rows that it has not read are gone, or else goes on without"
        " them, with a warning.",
        boolean,
        True,
    ),
    *ALWAYS,
)
"""Options of all connectors that are followed."""


class Feed(Rows, Protocol):
    """Changes of a store, in an order that never changes. It keeps nothing but connections.

    Spark asks again for what lies between two positions, by another process, a day later: the same
    rows must come, or an error that says which are gone.

    Attributes:
        unit: what a query can be behind by: ``rows``, if the store can count them.
        of: what is followed, as far as its positions don't say so: at least of which store.
    """

    unit: str
    of: str

    def begin(self) -> Position:
        """Where a new query begins, as option ``startingPosition`` says.

        Raises:
            StoreError: the store does not tell.
        """

    def latest(self) -> Position:
        """The end of what is there now.

        Raises:
            StoreError: the store does not tell.
        """

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """Where an epoch ends that begins behind `after`, and does not go beyond `goal`.

        Args:
            after: where it begins.
            goal: another position, which was the latest one, now or before.
            most: rows that it may have; more, if what belongs together has more. None is no limit.

        Returns:
            The end; `after` itself where no row lies behind it.

        Raises:
            StoreError: the store does not tell.
            UnreadLost: rows behind `after` are gone.
        """

    def passed(self, after: Position, goal: Position) -> Position:
        """Where a query is that has found no row behind `after` up to `goal`, and ends.

        What a position says of things that are not followed now stays as it was.
        """

    def between(self, after: Position, end: Position) -> Sequence[Split]:
        """The parts of what lies behind `after`, up to `end`, in the order of the changes.

        Raises:
            StoreError: the store can't be read.
            UnreadLost: rows between them are gone.
        """

    def behind(self, after: Position, end: Position) -> int | None:
        """How many of them lie between two positions; None where nothing tells cheaply."""


@runtime_checkable
class Followable(Protocol):
    """A connector that can be followed; `follows` are all options that a stream knows."""

    follows: Sequence[Option]

    def infer_feed(self, options: Options) -> pa.Schema:
        """The schema of the changes, with the types that lose nothing."""

    def feed(self, options: Options, scan: Scan) -> Feed:
        """What is followed, with these options.

        Raises:
            OptionError: they don't fit what is asked for.
        """


Offset: TypeAlias = dict[str, Any]

BEGINNING: Offset = {}
VERSION = 1


class Follower:
    """One query and its feed, for as long as the query runs."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._begun: Position | None = None
        self._goal: Position | None = None
        self._last: Offset = BEGINNING

    def beginning(self) -> Offset:
        """What stands for the beginning; where that is, the end of the first epoch will say."""
        self._begin()
        return BEGINNING

    def stop_at_what_is_there(self) -> None:
        """Go no further than the feed does now."""
        self._begin()
        self._goal = self.feed.latest()

    def end(self, start: Offset, most: int | None) -> Offset:
        """Where the epoch ends that begins at `start`; `start` itself if there is nothing new.

        Spark has kept `start`, or it is the beginning. The epoch may have about `most` rows.

        Raises:
            UnsupportedQuery: the offset is not of this package.
            StoreError: the store does not tell, or rows are gone.
        """
        after = self._position(start) if start else self._begin()
        goal = self.feed.latest() if self._goal is None else self._goal
        at = goal if goal == after else self.feed.advance(after, goal, most)
        if self._goal is not None and at == after:
            at = self.feed.passed(after, goal)  # the next query need not look there again
        self._last = start if start and at == after else self._offset(at, None if start else after)
        return self._last

    def end_of_all(self) -> Offset:
        """The same for a Spark that neither tells where an epoch begins nor sets limits.

        It asks for this before it asks where the query begins, and for that of a query that has
        begun, too.
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
            StoreError: the store can't be read, or rows are gone.
        """
        after, at = self._position(start or {**end, "at": end.get("from")}), self._position(end)
        return [] if after == at else self.feed.between(after, at)

    def report(self) -> Offset:
        """The newest offset there is, and how far this query is behind it, if the store tells."""
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
                todo="go on with what wrote it, or begin with a new checkpointLocation",
            )
        if of != self.feed.of:
            raise UnsupportedQuery(
                f"The checkpoint is of {of}, and the query follows {self.feed.of}",
                why="its place in the one is none in the other: changes would be missed",
                todo="follow what was followed, or begin with a new checkpointLocation",
            )
        return found
