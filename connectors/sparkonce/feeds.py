"""What a connector implements to be followed: positions, what lies between two, and the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from sparkonce.option_values import boolean, integer
from sparkonce.options import Option
from sparkonce.reading import ALWAYS, Rows, Scan, Split

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options

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
    """A connector that can be followed.

    Attributes:
        follows: every option that a stream knows.
    """

    follows: Sequence[Option]

    def infer_feed(self, options: Options) -> pa.Schema:
        """The schema of the changes, with the types that lose nothing."""

    def feed(self, options: Options, scan: Scan) -> Feed:
        """What is followed, with these options.

        Raises:
            OptionError: they don't fit what is asked for.
        """
