"""A world without Spark and without a server: a store in memory, queries, runs, and tasks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa
from tests.faults import FaultyStore

from sparkonce.commit import Committer
from sparkonce.guards import Driver, Policy
from sparkonce.ledger import Ledger, from_record, new_token, sink_name
from sparkonce.memory import MemoryStore
from sparkonce.protocol import Chunk, Plan, Receipt, Store, Task
from sparkonce.retry import Patience
from sparkonce.staging import ChunkSize, stage

QUICK = Patience(max_retries=2, first=0.0)
SMALL = ChunkSize(rows=2, bytes=1 << 20)
TARGET = "memory:rows"
_runs = count()


def batch(rows: Sequence[str]) -> pa.RecordBatch:
    """Rows as Spark hands them to a task."""
    return pa.record_batch({"id": pa.array(rows, pa.string())})


def encode(rows: pa.RecordBatch) -> bytes:
    """The simplest encoder: a JSON list of row ids."""
    return json.dumps(rows.column("id").to_pylist()).encode()


class World:
    """A store in memory and what took effect in it.

    Attributes:
        rows: the ids of all rows that took effect, duplicates and all, in their order.
        hits: a counter that each row increments when it takes effect.
        store: what queries see; a test may put another one around it.
    """

    def __init__(self, *, whole_epochs: bool = True) -> None:
        self.rows: list[str] = []
        self.hits = 0
        self.memory = MemoryStore(self._apply, whole_epochs=whole_epochs)
        self.store: Store = self.memory

    def _apply(self, payload: bytes) -> None:
        for row in json.loads(payload):
            self.rows.append(row)
            self.hits += 1

    def took_effect(self) -> Counter[str]:
        """How often each row took effect."""
        return Counter(self.rows)

    def staged(self) -> int:
        """Chunks in the log, of all sinks."""
        return sum(len(chunks) for chunks in self.memory.log.values())

    def ledger(self, name: str) -> Ledger:
        """A ledger that must be there."""
        found = from_record(self.memory.read(name))
        assert found is not None, f"no ledger {name!r} in {self.memory.names()}"
        return found

    def snapshot(self) -> dict[str, object]:
        """The whole state, for `restore`."""
        return {
            "rows": list(self.rows),
            "hits": self.hits,
            "records": dict(self.memory.records),
            "log": {key: dict(chunks) for key, chunks in self.memory.log.items()},
            "applied": dict(self.memory.applied),
        }

    def restore(self, state: dict[str, object]) -> None:
        """Go back to a snapshot, as a store does that loses its last writes."""
        for name, value in deepcopy(state).items():
            owner = self if name in ("rows", "hits") else self.memory
            setattr(owner, name, value)


@dataclass
class Query:
    """A streaming query: its id, its options, and where its checkpoint lies."""

    world: World
    id: str = "a"
    sink_id: str | None = None
    checkpoint: str | None = "/checkpoints/orders"
    repeatable: bool = False
    on_new_checkpoint: str | None = None
    on_lost_commit: str | None = None
    target: str = TARGET
    detail: dict[str, object] = field(default_factory=dict)
    through: Store | None = None

    @property
    def store(self) -> Store:
        """What it reaches the store through."""
        return self.through or self.world.store

    @property
    def name(self) -> str:
        """The name of its ledger."""
        return sink_name(self.sink_id or self.id, self.target)

    @property
    def ledger(self) -> Ledger:
        """Its ledger, which must be there."""
        return self.world.ledger(self.name)

    def faulty(self) -> FaultyStore:
        """Reach the store through one that can fail, from now on."""
        store = FaultyStore(self.world.memory)
        self.through = store
        return store

    def start(self) -> Run:
        """What ``start()`` does: a new run of this query."""
        return Run(self, f"run-{next(_runs)}")


@dataclass
class Run:
    """One run of a query: stages and commits as Spark's tasks and driver do."""

    query: Query
    run_id: str

    def committer(self) -> Committer:
        """Spark makes a writer anew for each epoch, and so does this."""
        query = self.query
        plan = Plan(query.target, query.repeatable, 1, query.detail)
        policy = Policy(query.repeatable, query.on_new_checkpoint, query.on_lost_commit)
        return Committer(query.store, plan, policy, QUICK)

    def driver(
        self, epoch: int, offsets: str | None = None, offsets_before: str | None = None
    ) -> Driver:
        """Who commits."""
        query = self.query
        return Driver(
            name=query.name,
            target=query.target,
            query_id=query.id,
            run_id=self.run_id,
            epoch=epoch,
            checkpoint=query.checkpoint,
            offsets=offsets,
            offsets_before=offsets_before,
        )

    def task(self, epoch: int, partition: int = 0) -> Task:
        """A new attempt."""
        query = self.query
        return Task(query.name, query.id, self.run_id, epoch, partition, new_token())

    def stage(self, epoch: int, *partitions: Sequence[str]) -> list[Receipt]:
        """Run one task for each partition, each in chunks of two rows."""
        return [
            self.stage_task(self.task(epoch, partition), rows)
            for partition, rows in enumerate(partitions)
        ]

    def stage_task(self, task: Task, rows: Sequence[str]) -> Receipt:
        """Run one task."""
        return stage(self.query.store, task, _batches(rows), encode, SMALL, QUICK)

    def stage_late(self, epoch: int, rows: Sequence[str], partition: int = 0) -> None:
        """A chunk of a task that read the ledger long ago arrives in the store."""
        chunk = Chunk(self.task(epoch, partition), 0, len(rows), encode(batch(rows)))
        self.query.store.stage(chunk)

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


def _batches(rows: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), 3):
        yield batch(rows[start : start + 3])
