"""What a task does: stage its rows as chunks, or skip an epoch that is decided already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sparkonce.errors import BadRow
from sparkonce.ledger import from_record
from sparkonce.protocol import Chunk, Encoder, Receipt, Store, Task
from sparkonce.retry import Patience

if TYPE_CHECKING:
    import pyarrow as pa


LARGEST_ROW = 256 * 1024 * 1024


@dataclass(frozen=True)
class ChunkSize:
    """The bounds of a chunk: rows, and bytes where a row alone is not larger."""

    rows: int
    bytes: int


def stage(
    store: Store,
    task: Task,
    batches: Iterable[pa.RecordBatch],
    encode: Encoder,
    size: ChunkSize,
    patience: Patience,
) -> Receipt:
    """Append the rows of one task to the log of its sink. Memory is bounded by one chunk.

    Raises:
        BadRow: a row that can't be stored.
        StoreError: the store can't take the chunks.
    """
    ledger = from_record(patience.run(lambda: store.read(task.sink)))
    if ledger and ledger.has_decided(task.query_id, task.epoch):
        drain(batches)
        return Receipt(task, skipped=ledger.token)
    rows, sizes = [], []
    for seq, (count, payload) in enumerate(_chunks(batches, encode, size)):
        patience.run(partial(store.stage, Chunk(task, seq, count, payload)))
        rows.append(count)
        sizes.append(len(payload))
    return Receipt(task, tuple(rows), tuple(sizes))


def drain(batches: Iterable[pa.RecordBatch]) -> None:
    """Read rows, and forget them."""
    # A stateful operator before the sink saves its state only once its rows are all read.
    for _ in batches:
        pass


def _chunks(
    batches: Iterable[pa.RecordBatch], encode: Encoder, size: ChunkSize
) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        for start in range(0, batch.num_rows, size.rows):
            yield from _fitting(batch.slice(start, size.rows), encode, size.bytes)


def _fitting(rows: pa.RecordBatch, encode: Encoder, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    if rows.num_rows > 1 and rows.nbytes > most_bytes:
        half = rows.num_rows // 2
        yield from _fitting(rows.slice(0, half), encode, most_bytes)
        yield from _fitting(rows.slice(half), encode, most_bytes)
        return
    payload = _encoded(rows, encode)
    if rows.num_rows > 1 and len(payload) > LARGEST_ROW:
        yield from _fitting(rows, encode, rows.nbytes // 2)
        return
    if len(payload) > LARGEST_ROW:
        raise BadRow(
            f"A row takes {len(payload):,} bytes",
            why=f"a chunk can't be larger than {LARGEST_ROW:,} bytes",
            todo="drop or cut its large columns before the sink",
        )
    yield rows.num_rows, payload


def _encoded(rows: pa.RecordBatch, encode: Encoder) -> bytes:
    try:
        return encode(rows)
    except ValueError as error:
        raise BadRow(
            f"A value can't be written: {error}",
            why="it has no documented form in the store",
            todo="filter such rows out, or replace the value before the sink",
        ) from None
