"""Rows that take effect when they are written: cut by their numbers, guarded as a commit is."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kit import World, batch

from sparkonce import direct
from sparkonce.errors import (
    CheckpointReplaced,
    ChunkTooLarge,
    QueryRetired,
    SinkBehindCheckpoint,
    StoreRefused,
    StoreUnreachable,
)
from sparkonce.guards import Driver
from sparkonce.protocol import BLOCK, DirectStore, Outlet, Receipt, Task
from sparkonce.retry import Patience
from sparkonce.staging import ChunkSize
from sparkonce.tck.actors import Query

ROOMY = 1 << 20
STUBBORN = Patience(max_retries=20, first=0.0)
Place = tuple[int, int, int]


class Target:
    """Keeps of each key the row whose place is the highest; some calls are lost, some answers."""

    def __init__(self, query: Query, luck: random.Random | None = None) -> None:
        self.query, self.luck = query, luck
        self.rows: dict[str, Place] = {}
        self.calls: list[tuple[int, int]] = []
        self.read = query.world.memory.read
        self.latest = -1

    def outlet(self, task: Task) -> Outlet | None:
        if task.epoch < self.latest:
            return None
        self.latest = task.epoch
        return cast("Outlet", Way(self, task))

    def write(self, task: Task, rows: list[pa.RecordBatch], size: int = 2 * BLOCK) -> Receipt:
        store = cast("DirectStore", self)
        policy = self.query.policy
        bounds = ChunkSize(size, ROOMY)
        query = self.query
        where = query.target, task.query_id, task.run_id, task.epoch, query.checkpoint
        driver = Driver(task.sink, *where)
        return direct.write(store, task, driver, rows, bounds, policy, STUBBORN)

    def fail(self, share: float) -> None:
        if self.luck and self.luck.random() < share:
            raise StoreUnreachable("The network is gone")


class Way:
    width = 3

    def __init__(self, target: Target, task: Task) -> None:
        self.target, self.task = target, task

    def put(self, first: int, rows: pa.RecordBatch) -> None:
        target, task = self.target, self.task
        target.fail(0.1)
        target.calls.append((first, len(rows)))
        for at, id_ in enumerate(rows.column(0).to_pylist(), first):
            place = (task.epoch, task.partition, at)
            target.rows[id_] = max(place, target.rows.get(id_, place))
        target.fail(0.1)


@given(
    lengths=st.lists(st.integers(0, 3 * BLOCK), max_size=6),
    rows=st.sampled_from([1, BLOCK, 2 * BLOCK + 1]),
    size=st.sampled_from([1, 30_000, ROOMY]),
)
def test_pieces_are_cut_between_blocks_and_hold_each_row_once(
    lengths: list[int], rows: int, size: int
) -> None:
    numbers = iter(range(10**6))
    given_rows = [
        pa.record_batch({"n": pa.array([next(numbers) for _ in range(n)], pa.int64())})
        for n in lengths
    ]
    found = list(direct.pieces(given_rows, ChunkSize(rows, size)))
    whole = [n for _, piece in found for n in piece.column(0).to_pylist()]
    assert whole == list(range(sum(lengths)))
    for first, piece in found:
        assert first % BLOCK == 0
        assert piece.column(0)[0].as_py() == first
        assert len(piece) <= max(rows, BLOCK)
    assert all(len(piece) % BLOCK == 0 for _, piece in found[:-1])


@pytest.mark.parametrize("seed", range(20))
def test_whatever_attempts_and_faults_there_are_the_last_row_of_each_key_stays(
    query: Query, seed: int
) -> None:
    luck = random.Random(seed)
    run, want, tasks = query.start(), {}, []
    target = Target(query, luck)
    for partition in range(3):
        ids = [f"{luck.randrange(50)}" for _ in range(luck.randrange(3 * BLOCK))]
        want |= {id_: (0, partition, at) for at, id_ in enumerate(ids)}
        tasks += [(partition, ids)] * luck.randrange(1, 3)
    luck.shuffle(tasks)
    for partition, ids in tasks:
        cut = luck.randrange(len(ids) + 1)
        task = run.task(0, partition)
        target.write(task, [batch(ids[:cut]), batch(ids[cut:])], luck.choice([1, 5000]))
    assert target.rows == want


def test_epoch_that_is_committed_is_skipped_and_its_rows_are_read(query: Query) -> None:
    target = Target(query)
    run = query.start()
    receipt = target.write(run.task(0), [batch(["a"])])
    assert receipt.written == 1
    ledger = run.commit(0, [receipt])
    assert (ledger.rows, ledger.epochs) == (1, 1)
    read = []
    again = target.write(run.task(0), (read.append(1) or batch(["b"]) for _ in range(3)))
    assert (again.skipped, again.written, len(read)) == (ledger.token, 0, 3)
    assert list(target.rows) == ["a"]


def test_task_whose_commit_would_be_refused_writes_nothing(query: Query) -> None:
    target = Target(query)
    with pytest.raises(SinkBehindCheckpoint):
        target.write(query.start().task(2), [batch(["a"])])
    assert target.calls == []


def test_task_of_a_query_that_was_replaced_writes_nothing(world: World) -> None:
    old = Query(world, sink_id="orders", repeatable=True)
    target, run = Target(old), old.start()
    run.commit(0, [target.write(run.task(0), [batch(["a"])])])
    Query(world, id="b", sink_id="orders", repeatable=True).start().commit(0, [])
    with pytest.raises(QueryRetired):
        target.write(run.task(1), [batch(["b"])])
    assert list(target.rows) == ["a"]


def test_task_that_comes_after_a_later_epoch_and_finds_no_decision_writes_nothing(
    query: Query,
) -> None:
    target = Target(query)
    target.latest = 7
    with pytest.raises(StoreRefused, match="came after a task of a later epoch"):
        target.write(query.start().task(0), [batch(["a"])])


class Uncombined:
    """A table that stays in parts, as Arrow leaves texts of more than 2 GiB."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @classmethod
    def from_batches(cls, batches: list[pa.RecordBatch]) -> Uncombined:
        return cls(pa.Table.from_batches([part for one in batches for part in halves(one)]))

    def slice(self, *bounds: int) -> Uncombined:
        return Uncombined(self.table.slice(*bounds))

    def combine_chunks(self) -> Uncombined:
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self.table, name)


def halves(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    return [rows.slice(0, 10), rows.slice(10)]


def test_block_that_arrow_holds_in_parts_only_is_refused_and_not_cut() -> None:
    held = direct._Held()
    held.add(batch([str(i) for i in range(BLOCK)]))
    with pytest.MonkeyPatch.context() as patched:
        table = SimpleNamespace(Table=Uncombined)
        patched.setitem(sys.modules, "pyarrow", table)
        with pytest.raises(ChunkTooLarge, match="1,000 rows take more than 2 GiB"):
            held.take(ChunkSize(BLOCK, ROOMY))


@pytest.mark.parametrize("checkpoint", ["/checkpoints/orders", None])
def test_what_a_new_checkpoint_may_not_apply_again_is_refused_before_it_takes_effect(
    checkpoint: str | None,
) -> None:
    """By default the old query has a ledger of another name: only the claim tells of it."""
    world = World()
    sink_id = None if checkpoint else "orders"
    old = Query(world, "old", sink_id, checkpoint)
    old.start().write(0, ["deleted"])
    new = Query(world, "new", sink_id, checkpoint)
    target = Target(new)
    with pytest.raises(CheckpointReplaced):
        target.write(new.start().task(0), [batch(["deleted"])])
    assert not target.rows
