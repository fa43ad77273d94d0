"""The vocabulary of an exactly-once sink; `sparkonce.store` says what a connector implements.

A task *stages* chunks and returns a `Receipt`. The driver *decides* an epoch by writing its
`Manifest` into the sink's ledger with a compare-and-set, *applies* the chunks that the manifest
names, and *finishes*. `docs/protocol.md` tells the whole story.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa


class Follows(Enum):
    """Which epochs may come after one that is decided."""

    NEXT = "next"
    """A stream's: epoch N comes after N - 1, and any other is an error."""
    GROWS = "grows"
    """A batch's with a number: any higher one; one that writes nothing leaves a gap."""
    ONCE = "once"
    """A batch's without a number: there is no other, and a repetition can't be told from it."""


@dataclass(frozen=True)
class Origin:
    """One run of a writer, at one of its epochs; `Task` and `Driver` each act for one.

    Attributes:
        query_id: the streaming query, the ``txnAppId``, or a random name of a batch.
        run_id: of this ``start()`` of a query. Of a batch what runs it: the execution of the
            micro-batch, or the session of a batch with a name. Empty where it can't be known.
        epoch: the number of the micro-batch, the ``txnVersion``, or 0.
        follows: which epochs may come after it.
        named: whether ``txnAppId`` and ``txnVersion`` say who writes.
        stream: the query in whose ``foreachBatch`` that is; empty outside.
    """

    query_id: str
    run_id: str
    epoch: int
    follows: Follows = field(default=Follows.NEXT, kw_only=True)
    named: bool = field(default=False, kw_only=True)
    stream: str = field(default="", kw_only=True)


D = TypeVar("D")
"""What a connector knows of a plan: a small frozen dataclass of its own."""

Stored = Mapping[str, Any]
"""JSON values that are kept in the store."""

FORMAT = 1
"""Version of the manifest and of the chunks it names."""

Encoder = Callable[["pa.RecordBatch"], bytes]
"""Turns rows into one chunk, in the form that the store applies fastest; raises `BadRow`."""


Reasons = Mapping[str, tuple[int, str]]
"""Why rows can't be stored: for each kind of reason how many rows, and the reason of the first."""


@runtime_checkable
class BadRowSplitter(Protocol):
    """An encoder that can put rows into a chunk as dead letters, which can't be stored."""

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """The chunk of these rows, and why the bad ones among them are."""


Advance = Callable[[int], None]
"""Told how many rows were applied since the last call."""


def no_progress(rows: int) -> None:
    """An `Advance` that nobody watches."""


def digest(text: str) -> str:
    """A short name for a long text, the same in every process and for ever."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan(Generic[D]):
    """What a sink does with rows. Options and schema fix it, but for `shape`.

    Attributes:
        target: the place in the store where rows go, for example ``hash:user:{id}``.
        repeatable: applying the same rows again changes nothing, if nothing else has written to
            their keys since. So it is with upserts. A delete is none: what it deletes was written
            by something else, and may have been written anew; nor is what expires.
        columns: number of columns, to size chunks by.
        commutes: whether its rows may take effect after those that others have decided since, with
            the same outcome. So it is with appends and increments, unless the target is emptied
            first.
        empties: whether the target is emptied first.
        detail: what the connector needs to encode and to apply a chunk.
        stored: the same as JSON values, as the manifest keeps it.
        cells: values in a chunk unless ``chunkRows`` says otherwise. The usual number is about
            10 ms of work for a store.
        rows: in a chunk, at most, unless ``chunkRows`` says otherwise.
        bytes: of Arrow data in a chunk, at most.
        key: columns that tell a row from others, for errors about one.
        shape: a digest of what tasks know of the target, where they check rows against it; see
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
"""A plan, or none where there is no query."""


def attempt_of(run_id: str, token: str) -> str:
    """The name of an attempt: that of its run in short, and a random token."""
    return f"{digest(run_id)}-{token}"


@dataclass(frozen=True)
class Task(Origin):
    """One run of ``write()`` over one partition; `attempt` names it, see `attempt_of`."""

    sink: str
    partition: int
    attempt: str


@dataclass(frozen=True)
class Chunk:
    """Bytes ready to apply. A task numbers its chunks from 0 (`seq`)."""

    task: Task
    seq: int
    rows: int
    payload: bytes


@dataclass(frozen=True)
class Receipt:
    """What a task tells the driver: the chunks it staged, or the decision for which it skipped.

    Attributes:
        rows: the row count of each chunk, in the order of `seq`.
        sizes: the bytes of each chunk.
        skipped: token of the decision that made the task skip its rows; None if it did not.
        bad: rows of the chunks that go into dead letters.
        shape: of the plan, see `Plan`.
        seconds: that it took to compute and stage the rows.
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
class Manifest:
    """A decided epoch: everything that applying it needs, whatever today's options say.

    Attributes:
        sink: name of the ledger (sink id and target).
        token: the random name of this decision.
        detail: what its plan stored.
        parts: the attempts that count, in the order of their partitions.
        notes: what the store itself added when it prepared to apply (a fence, a write index).
        unstored: rows that went into dead letters in the epochs before this one, since the last
            row that was stored.
        commutes: whether it may be applied after what others have decided since, see `Plan`; or
            its keys are its own.
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
    """How many rows of an epoch went into dead letters, and whether any other one was stored."""

    aside: int = 0
    stored: bool = True


ALL_STORED = Applied()

Finish = Callable[[Applied], "Record"]
"""Gives the record of a finished epoch."""


class AuxiliaryRecord(NamedTuple):
    """A text that each decision writes anew, too long to be a part of the ledger.

    It is the body of a record of this name, which has the stamp of the decision.
    """

    name: str
    body: str


@dataclass(frozen=True)
class Record:
    """A named register in the store, replaced by compare-and-set on its stamp.

    Attributes:
        revision: moved by every write; 0 means that there is no such record.
        stamp: random, differs in every write. Unlike a revision it never comes back, not even
            after a store lost writes.
        token: the decision that is being applied; empty where there is none.
        body: JSON text, opaque to the store.
    """

    revision: int = 0
    stamp: str = ""
    token: str = ""
    body: str = ""


class Proposal(NamedTuple):
    """What is written where an epoch is decided.

    Attributes:
        record: the ledger, with the decision.
        over: the stamp that must be there.
        manifest: the decision.
        beside: what is kept under a name of its own, over whatever is there, in the same step.
    """

    record: Record
    over: str
    manifest: Manifest
    beside: AuxiliaryRecord | None = None


@dataclass(frozen=True)
class Staged:
    """An attempt found in the store's log, for cleaning and for ``sparkonce status``.

    Attributes:
        age: seconds since its last chunk was staged, by the clock of the store: those of tasks and
            of who asks may be wrong.
        bytes: of its chunks, asked for what is `fresh`; 0 if the store does not tell.
    """

    attempt: str
    query_id: str
    epoch: int
    chunks: int
    age: float
    bytes: int = 0

    @property
    def run(self) -> str:
        """The run of the query in short."""
        return self.attempt.rpartition("-")[0]
