"""What a task does whose rows take effect at once: nothing is staged, and nothing applied later.

The epoch still commits through the ledger, so that replays, other drivers and lost checkpoints are
told as always; but its rows are there before that. So they must be such that sending them again,
in any order, changes nothing: each has a place in the order of all rows of the sink (its epoch,
partition and number), and of the rows of a key the last one stays. See docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from sparkonce.errors import ChunkTooLarge, StoreRefused
from sparkonce.guards import Driver, Policy, identify, judge
from sparkonce.lanes import in_order
from sparkonce.ledger import from_record
from sparkonce.protocol import BLOCK, DirectStore, Outlet, Receipt, Task
from sparkonce.registers import Registers
from sparkonce.retry import Patience
from sparkonce.staging import ChunkSize, drain

if TYPE_CHECKING:
    import pyarrow as pa


def write(
    store: DirectStore,
    task: Task,
    driver: Driver,
    batches: Iterable[pa.RecordBatch],
    size: ChunkSize,
    policy: Policy,
    patience: Patience,
) -> Receipt:
    """Let the rows of one task take effect. Memory is bounded by a few chunks.

    Refused is what `driver`, as far as a task knows it, could not commit.

    The outlet comes before the ledger is read. A task that then finds its epoch undecided has the
    place of its epoch from before the decision, and so one below those of all later epochs.

    Raises:
        BadRow: a row that can't be stored; others of the task may be there.
        CommitRefused: the epoch's commit would be refused.
        StoreError: the store can't take the rows.
    """
    outlet = patience.run(lambda: store.outlet(task))
    ledger = from_record(patience.run(lambda: store.read(task.sink)))
    if ledger and ledger.has_decided(task.query_id, task.epoch):
        drain(batches)
        return Receipt(task, skipped=ledger.token)
    registers = Registers(store, patience)
    _, rival = registers.rival(ledger, driver)
    judge(identify(ledger, rival, driver, policy), driver, policy)
    if outlet is None:
        raise _late(task)
    return Receipt(task, written=_put(outlet, pieces(batches, size), patience))


def pieces(
    batches: Iterable[pa.RecordBatch], size: ChunkSize
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a partition, cut between blocks, with the number of each piece's first row.

    A piece is one block where more would be larger than `size`.
    """
    first, held = 0, _Held()
    for batch in batches:
        held.add(batch)
        while held.rows >= BLOCK and held.is_full(size):
            piece = held.take(size)
            yield first, piece
            first += piece.num_rows
    while held.rows:
        piece = held.take(size)
        yield first, piece
        first += piece.num_rows


class _Held:
    """Rows that wait for those behind them."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.rows = self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def is_full(self, size: ChunkSize) -> bool:
        return self.rows >= size.rows or self.bytes >= size.bytes

    def take(self, size: ChunkSize) -> pa.RecordBatch:
        """Whole blocks from the beginning; of the last one what there is."""
        import pyarrow as pa

        table = pa.Table.from_batches(self.batches)
        count = max(BLOCK, size.rows // BLOCK * BLOCK)
        while count > BLOCK and table.slice(0, count).nbytes > size.bytes:
            count = max(BLOCK, count // 2 // BLOCK * BLOCK)
        rest = table.slice(count)
        self.batches, self.rows, self.bytes = rest.to_batches(), rest.num_rows, rest.nbytes
        piece, *more = table.slice(0, count).combine_chunks().to_batches()
        if more:  # Arrow makes no column of texts beyond that
            raise ChunkTooLarge(
                f"{count:,} rows take more than 2 GiB in one column",
                why="with write=direct so many rows are written at once",
                todo="drop or cut the rows' large columns before the sink, or set write=logged",
            )
        return piece


def _put(outlet: Outlet, rows: Iterator[tuple[int, pa.RecordBatch]], patience: Patience) -> int:
    def steps() -> Iterator[Callable[[], int]]:
        for first, piece in rows:
            yield partial(put, first, piece)

    def put(first: int, piece: pa.RecordBatch) -> int:
        patience.run(lambda: outlet.put(first, piece))
        return int(piece.num_rows)

    return sum(in_order(steps(), outlet.width, "sparkonce-write"))


def _late(task: Task) -> StoreRefused:
    return StoreRefused(
        f"A task of epoch {task.epoch} of query {task.query_id} came after a task of a later epoch",
        why="the ledger lacks epochs that its query has committed: the store lost its last writes",
        todo="restart the query; nothing of this task took effect",
    )
