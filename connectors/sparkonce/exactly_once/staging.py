"""The work of a task: it stages its rows as chunks, or skips an epoch that is already decided."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sparkonce.errors import ChunkTooLarge, StoreError
from sparkonce.exactly_once.bad_rows import Count
from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import BadRowSplitter, Chunk, Encoder, Reasons, Receipt, Task
from sparkonce.store import Patience, Store

if TYPE_CHECKING:
    import pyarrow as pa


log = logging.getLogger("sparkonce")

LARGEST_ROW = 256 * 1024 * 1024


@dataclass(frozen=True)
class ChunkSize:
    """The limits of a chunk: rows, and bytes unless a single row is larger."""

    rows: int
    bytes: int


def stage(
    store: Store,
    task: Task,
    batches: Iterable[pa.RecordBatch],
    encode: Encoder | BadRowSplitter,
    size: ChunkSize,
    patience: Patience,
) -> Receipt:
    """Append the rows of one task to the log of its sink, with the memory of one chunk.

    Raises:
        BadRow: a row can't be stored.
        StoreError: the store cannot append the chunks.
    """
    ledger = from_record(patience.run(lambda: store.read(task.sink)), task.sink)
    if ledger and ledger.has_decided(task.query_id, task.epoch):
        _drain(batches)
        return Receipt(task, skipped=ledger.decision.token)
    staging = _Staging(store, task, encode, size.bytes, patience)
    with _dropped_if_failed(store, task):
        for rows in _in_size(batches, size):
            staging.take(rows)
    return Receipt(task, tuple(staging.rows), tuple(staging.sizes), bad=staging.bad.kinds)


def _in_size(batches: Iterable[pa.RecordBatch], size: ChunkSize) -> Iterator[pa.RecordBatch]:
    """The rows in batches of the size of a chunk; Spark's batches may be smaller or larger."""
    held: list[pa.RecordBatch] = []
    room, space = size.rows, size.bytes
    for batch in batches:
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, room)
            if held and part.nbytes > space:  # together they are too large, perhaps for a column
                yield from _joined(held)
                held, room, space = [], size.rows, size.bytes
                continue
            held.append(part)
            rest = rest.slice(part.num_rows)
            room, space = room - part.num_rows, space - part.nbytes
            if not room:
                yield from _joined(held)
                held, room, space = [], size.rows, size.bytes
    yield from _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2:
        return batches
    import pyarrow as pa

    return list(pa.Table.from_batches(batches).combine_chunks().to_batches())


@contextmanager
def _dropped_if_failed(store: Store, task: Task) -> Iterator[None]:
    """Discard what an attempt has staged if it raises; without a receipt nothing can decide it.

    Otherwise a query that fails after each restart would fill the store.
    """
    try:
        yield
    except Exception:
        try:
            store.discard(task.sink, [task.attempt])
        except StoreError as error:
            log.warning("Can't discard the chunks of attempt %s yet: %s", task.attempt, error)
        raise  # the task's own error, even if the discard fails


def _drain(batches: Iterable[pa.RecordBatch]) -> None:
    """Read all rows and ignore them."""
    # A stateful operator before the sink saves its state only after the task has read all rows.
    for _ in batches:
        pass


class _Staging:
    """The chunks of one task: `rows` and `sizes` of the staged ones."""

    def __init__(
        self,
        store: Store,
        task: Task,
        encode: Encoder | BadRowSplitter,
        most_bytes: int,
        patience: Patience,
    ) -> None:
        self.store, self.task, self.encode = store, task, encode
        self.most_bytes, self.patience = most_bytes, patience
        self.rows: list[int] = []
        self.sizes: list[int] = []
        self.bad = Count()

    def take(self, rows: pa.RecordBatch) -> None:
        """Stage rows as one chunk, or as several if one would be too large."""
        if rows.num_rows > 1 and rows.nbytes > self.most_bytes:
            self._take_halves(rows)
            return
        payload, bad = self._encoded(rows)
        try:
            self._append(rows.num_rows, payload)
            # Only after the append: halves of a split batch are counted again.
            self.bad.merge(bad)
        except ChunkTooLarge:
            if rows.num_rows == 1:
                raise
            # So that the store does not reject the next one.
            self.most_bytes = rows.slice(rows.num_rows // 2).nbytes
            self._take_halves(rows)

    def _encoded(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        if isinstance(self.encode, BadRowSplitter):
            return self.encode.split(rows)
        return self.encode(rows), {}

    def _take_halves(self, rows: pa.RecordBatch) -> None:
        half = rows.num_rows // 2
        self.take(rows.slice(0, half))
        self.take(rows.slice(half))

    def _append(self, count: int, payload: bytes) -> None:
        if len(payload) > LARGEST_ROW:
            raise ChunkTooLarge(
                f"A row takes {len(payload):,} bytes",
                why=f"a chunk can't be larger than {LARGEST_ROW:,} bytes",
                todo="drop or shorten its large columns before the sink",
            )
        chunk = Chunk(self.task, len(self.rows), count, payload)
        self.patience.run(partial(self.store.stage, chunk))
        self.rows.append(count)
        self.sizes.append(len(payload))
