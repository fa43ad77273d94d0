"""Queries, runs and tasks without Spark: they stage, commit and abort in the same order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.driver import Driver, Offsets, Policy
from sparkonce.exactly_once.ledger import Ledger, new_token, sink_name
from sparkonce.exactly_once.staging import ChunkSize, stage
from sparkonce.protocol import Chunk, Follows, Plan, Receipt, Task, attempt_of
from sparkonce.store import Patience, Store
from sparkonce.tck.simulation.faults import FaultyStore
from sparkonce.tck.subject import Subject, batch

QUICK = Patience(max_retries=2, first=0.0)
SMALL = ChunkSize(rows=2, bytes=1 << 20)
_runs = count()


@dataclass
class Query:
    """A query, or a batch writer: its id, its options, and the path of its checkpoint."""

    world: Subject
    id: str = "a"
    sink_id: str | None = None
    checkpoint: str | None = "/checkpoints/orders"
    repeatable: bool = False
    on_new_checkpoint: str | None = None
    on_lost_commit: str | None = None
    plan: Plan[Any] | None = None
    follows: Follows = Follows.NEXT
    named: bool = False
    stream: str = ""
    through: Store | None = None

    @property
    def store(self) -> Store:
        """The client of the store that it uses."""
        return self.through or self.world.store

    @property
    def policy(self) -> Policy:
        """The policy that its options allow."""
        return Policy(self.repeatable, self.on_new_checkpoint, self.on_lost_commit)

    @property
    def target(self) -> str:
        """The target of its plan."""
        return (self.plan or self.world.plan).target

    @property
    def name(self) -> str:
        """The name of its ledger."""
        return sink_name(self.sink_id or self.id, self.target)

    @property
    def ledger(self) -> Ledger:
        """Its ledger, which must exist."""
        return self.world.ledger(self.name)

    def faulty(self) -> FaultyStore:
        """Use a faulty client of the store from now on."""
        store = FaultyStore(self.world.connect(), connect=self.world.connect)
        self.through = store
        return store

    def start(self) -> Run:
        """Do what ``start()`` does: begin a new run of this query. Meanwhile listings catch up."""
        self.world.settle()
        return Run(self, f"run-{next(_runs)}")


@dataclass
class Run:
    """One run of a query: stages and commits as Spark's tasks and driver do."""

    query: Query
    run_id: str

    def committer(self) -> Committer:
        """A new committer: Spark creates a writer anew for each epoch, and so does this."""
        query = self.query
        return Committer(query.store, query.plan or query.world.plan, query.policy, QUICK)

    def driver(
        self, epoch: int, offsets: str | None = None, offsets_before: str | None = None
    ) -> Driver:
        """The driver that commits."""
        query = self.query
        return Driver(
            name=query.name,
            target=query.target,
            query_id=query.id,
            run_id=self.run_id,
            epoch=epoch,
            checkpoint=query.checkpoint,
            offsets=_offsets(offsets),
            offsets_before=_offsets(offsets_before),
            follows=query.follows,
            named=query.named,
            stream=query.stream,
        )

    def task(self, epoch: int, partition: int = 0) -> Task:
        """A new attempt."""
        query = self.query
        attempt = attempt_of(self.run_id, new_token())
        into = query.name, partition, attempt
        kind = {"follows": query.follows, "named": query.named, "stream": query.stream}
        return Task(query.id, self.run_id, epoch, *into, **kind)  # type: ignore[arg-type]

    def stage(self, epoch: int, *partitions: Sequence[str]) -> list[Receipt]:
        """Run one task for each partition, each in chunks of two rows."""
        return [
            self.stage_task(self.task(epoch, partition), rows)
            for partition, rows in enumerate(partitions)
        ]

    def stage_task(self, task: Task, rows: Sequence[str]) -> Receipt:
        """Run one task."""
        return self.stage_batches(task, _batches(rows))

    def stage_batches(self, task: Task, batches: Iterable[pa.RecordBatch]) -> Receipt:
        """Run one task over rows as Spark passes them to it."""
        return stage(self.query.store, task, batches, self.query.world.encode, SMALL, QUICK)

    def stage_late(self, epoch: int, rows: Sequence[str], partition: int = 0) -> None:
        """Stage a chunk of a task that read the ledger long ago."""
        payload = self.query.world.encode(batch(rows))
        self.query.store.stage(Chunk(self.task(epoch, partition), 0, len(rows), payload))

    def commit(
        self,
        epoch: int,
        receipts: Sequence[Receipt],
        offsets: str | None = None,
        offsets_before: str | None = None,
    ) -> Ledger:
        """Commit what was staged."""
        return self.committer().commit(self.driver(epoch, offsets, offsets_before), receipts)

    def abort(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Abort what was staged."""
        self.committer().abort(self.driver(epoch), receipts)

    def write(self, epoch: int, *partitions: Sequence[str], offsets: str | None = None) -> Ledger:
        """Stage and commit one epoch."""
        return self.commit(epoch, self.stage(epoch, *partitions), offsets)


def _offsets(text: str | None) -> Offsets | None:
    return None if text is None else Offsets(text.encode())


def _batches(rows: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), 3):
        yield batch(rows[start : start + 3])
