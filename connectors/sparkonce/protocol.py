"""The vocabulary of an exactly-once sink; `sparkonce.store` says what a connector implements.

A task *stages* chunks and returns a `Receipt`. The driver *decides* an epoch by writing its
`Manifest` into the sink's ledger with a compare-and-set, *applies* the chunks that the manifest
names, and *finishes*. `docs/protocol.md` is the specification.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from sparkonce.codec import Whole

if TYPE_CHECKING:
    import pyarrow as pa


class Follows(Enum):
    """The epochs that may follow a decided one."""

    NEXT = "next"
    """Of a stream: epoch N follows N - 1, and any other is an error."""
    GROWS = "grows"
    """Of a batch with a number: any higher one; a batch without rows leaves a gap."""
    ONCE = "once"
    """Of a batch without a number: no other epoch, and nothing distinguishes a repetition."""


@dataclass(frozen=True)
class Origin:
    """One run of a writer, at one of its epochs; each `Task` and `Driver` acts for one.

    Attributes:
        query_id: the streaming query, the ``txnAppId``, or a random name of a batch.
        run_id: of this ``start()`` of a query. For a batch, the execution of the micro-batch, or
            the session of a batch with a name. Empty if unknown.
        epoch: the number of the micro-batch, the ``txnVersion``, or 0.
        follows: which epochs may follow it.
        named: whether ``txnAppId`` and ``txnVersion`` name the writer.
        stream: the query whose ``foreachBatch`` writes; empty outside of one.
    """

    query_id: str
    run_id: str
    epoch: int
    follows: Follows = field(default=Follows.NEXT, kw_only=True)
    named: bool = field(default=False, kw_only=True)
    stream: str = field(default="", kw_only=True)


D = TypeVar("D")
"""The connector's part of a plan: its own small frozen dataclass."""

Stored = Mapping[str, Any]
"""JSON values that the store keeps."""

FORMAT = 1
"""Version of the manifest and of the chunks it names."""

Encoder = Callable[["pa.RecordBatch"], bytes]
"""Encodes rows as one chunk, in the form that the store applies fastest; raises `BadRow`."""


Reasons = Mapping[str, tuple[int, str]]
"""Why rows can't be stored: for each kind of reason the number of rows and the first reason."""


@runtime_checkable
class BadRowSplitter(Protocol):
    """An encoder that puts bad rows into a chunk as dead letters."""

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """The chunk of these rows, and the reasons of the bad ones."""


Advance = Callable[[int], None]
"""Receives the number of rows that were applied since the last call."""


def no_progress(rows: int) -> None:
    """An `Advance` that ignores progress."""


def digest(text: str) -> str:
    """A short name for a long text, the same in every process and release."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan(Generic[D]):
    """What a sink does with rows. Options and schema fix it, except `shape`.

    Attributes:
        target: the place in the store that receives the rows, for example ``hash:user:{id}``.
        repeatable: applying the same rows again changes nothing, if nothing else has written to
            their keys since. Upserts are repeatable. Deletes are not: something else wrote the
            deleted row, and may have written it again. Rows that expire are not, either.
        columns: number of columns, which determines the size of chunks.
        commutes: whether its rows may take effect after those that others have decided since, with
            the same outcome. Appends and increments commute, unless they first empty the target.
        empties: whether the sink first empties the target.
        detail: what the connector needs to encode and to apply a chunk.
        stored: `detail` as JSON values, for the manifest.
        cells: values in a chunk unless ``chunkRows`` is set. The default takes a store about 10 ms.
        rows: most rows in a chunk unless ``chunkRows`` is set.
        bytes: most bytes of Arrow data in a chunk.
        key: columns that identify a row, for errors.
        shape: a digest of the target's columns, if tasks check rows against them; see
            `Store.check`.
    """

    target: str
    repeatable: bool
    columns: int
    detail: D
    stored: Stored
    commutes: bool = False
    empties: bool = False
    cells: int = 24_000
    rows: int = 10_000
    bytes: int = 4 * 1024 * 1024
    key: Sequence[str] = ()
    shape: str = ""


P = TypeVar("P", bound="Plan[Any] | None")
"""A plan, or None without a query."""


def attempt_of(run_id: str, token: str) -> str:
    """The name of an attempt: a digest of its run id, and a random token."""
    return f"{digest(run_id)}-{token}"


@dataclass(frozen=True)
class Task(Origin):
    """One run of ``write()`` over one partition; `attempt` names it, see `attempt_of`."""

    sink: str
    partition: int
    attempt: str


@dataclass(frozen=True)
class Chunk:
    """Encoded rows, ready to apply. A task numbers its chunks from 0 (`seq`)."""

    task: Task
    seq: int
    rows: int
    payload: bytes


@dataclass(frozen=True)
class Receipt:
    """The report of a task to the driver: its staged chunks, or the decision for which it skipped.

    Attributes:
        rows: the row count of each chunk, in the order of `seq`.
        sizes: the bytes of each chunk.
        skipped: token of the decision for which the task skipped its rows; None if it did not.
        bad: rows of the chunks that become dead letters.
        shape: of the plan, see `Plan`.
        seconds: the time to compute and stage the rows.
    """

    task: Task
    rows: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    skipped: str | None = None
    bad: Reasons = field(default_factory=dict)
    shape: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Part:
    """The chunks of one attempt, as a manifest names them."""

    partition: int
    attempt: str
    rows: tuple[int, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.sizes):
            raise ValueError(f"{self.attempt} has {len(self.rows)} chunks by their rows alone")


@dataclass(frozen=True)
class Manifest(Whole):
    """A decided epoch: everything needed to apply it, regardless of the present options.

    Attributes:
        sink: name of the ledger (sink id and target).
        token: the random name of this decision.
        detail: `stored` of its plan.
        parts: the decided attempts, in the order of their partitions.
        notes: what the store itself added in `Store.prepare` (a fence, a write index).
        unstored: dead letters of the epochs before this one, since the last stored row.
        commutes: whether it may be applied after what others have decided since: its plan commutes,
            see `Plan`, or no other writer has its keys.
    """

    sink: str
    generation: int
    query_id: str
    epoch: int
    token: str
    target: str
    detail: Stored
    parts: tuple[Part, ...]
    notes: Stored = field(default_factory=dict)
    format: int = FORMAT
    unstored: int = 0
    commutes: bool = False

    @property
    def rows(self) -> int:
        """Rows in all chunks."""
        return sum(sum(part.rows) for part in self.parts)

    @property
    def chunks(self) -> list[tuple[Part, int]]:
        """Every chunk as (attempt, seq), in the order in which it is applied."""
        return [(part, seq) for part in self.parts for seq in range(len(part.rows))]

    @property
    def attempts(self) -> set[str]:
        """The attempts whose chunks this decision holds."""
        return {part.attempt for part in self.parts}


class Applied(NamedTuple):
    """The number of an epoch's rows that became dead letters, and whether any row was stored."""

    aside: int = 0
    stored: bool = True


ALL_STORED = Applied()

Finish = Callable[[Applied], "Record"]
"""Returns the record of a finished epoch."""


class AuxiliaryRecord(NamedTuple):
    """A text that each decision replaces, too long to be part of the ledger.

    It becomes the body of a record with this name and the stamp of the decision.
    """

    name: str
    body: str


@dataclass(frozen=True)
class Record:
    """A named register in the store, replaced by compare-and-set on its stamp.

    Attributes:
        revision: every write moves it; 0 means that the record does not exist.
        stamp: random, differs in every write. Unlike a revision it never recurs, not even after a
            store lost writes.
        token: the decision that is being applied; empty without one.
        body: JSON text, opaque to the store.
    """

    revision: int = 0
    stamp: str = ""
    token: str = ""
    body: str = ""


class Proposal(NamedTuple):
    """A decision that a driver asks the store to write.

    Attributes:
        record: the ledger, with the decision.
        over: the stamp that the present record must have.
        manifest: the decision.
        beside: an auxiliary record, which the same step writes unconditionally.
    """

    record: Record
    over: str
    manifest: Manifest
    beside: AuxiliaryRecord | None = None


@dataclass(frozen=True)
class Staged:
    """An attempt in the store's log, for cleaning and for ``sparkonce status``.

    Attributes:
        age: seconds since the task staged its last chunk, by the clock of the store, as the clocks
            of tasks and callers may be wrong.
        bytes: of its chunks, for a `fresh` list; 0 if the store does not report them.
    """

    attempt: str
    query_id: str
    epoch: int
    chunks: int
    age: float
    bytes: int = 0

    @property
    def run(self) -> str:
        """A digest of the run id."""
        return self.attempt.rpartition("-")[0]
