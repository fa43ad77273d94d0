"""What a connector implements to be read: the splits of what is there, and the rows of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from sparkonce.option_values import boolean, columns, integer
from sparkonce.options import LOGIN, TIMEOUT, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options

Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Compare:
    """The column has a value, and it compares so with another; texts are compared for equality.

    Attributes:
        value: as Python has it: bool, int, float, Decimal, str, bytes, date or datetime.
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
    """What is asked for.

    Attributes:
        schema: of the rows, with all that Arrow needs to know of them.
        filters: what narrows them; see `sparkonce.reading`.
    """

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
    """A connector that can be read.

    Attributes:
        reads: every option that a read knows.
    """

    reads: Sequence[Option]

    def infer(self, options: Options) -> pa.Schema:
        """The schema of what is there, with the types that lose nothing."""

    def source(self, options: Options, scan: Scan) -> Source:
        """What is read, with these options.

        Raises:
            OptionError: they don't fit what is asked for.
        """
