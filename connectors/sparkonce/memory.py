"""The reference store: the whole protocol in one Python object, with nothing to install.

It is for tests and for authors of connectors: each method is the shortest correct form of one
step. Rows are applied by a function that the caller gives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from sparkonce.errors import StagedDataMissing, StoreLostData
from sparkonce.protocol import Advance, Chunk, Manifest, Record, Staged, ignore

Apply = Callable[[bytes], None]


class MemoryStore:
    """A store in memory.

    Args:
        apply_chunk: makes the rows of one chunk take effect.
        whole_epochs: whether an epoch is published in one atomic step, as a database with
            transactions does, or chunk by chunk.
    """

    def __init__(self, apply_chunk: Apply, *, whole_epochs: bool = True) -> None:
        self.apply_chunk, self.whole_epochs = apply_chunk, whole_epochs
        self.records: dict[str, Record] = {}
        self.log: dict[tuple[str, str], dict[int, tuple[Chunk, float]]] = {}
        self.applied: dict[str, int] = {}
        self.lock = threading.RLock()

    def check(self) -> None:
        """Memory is always fit."""

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        return self.records.get(name, Record())

    def swap(self, name: str, new: Record) -> Record:
        """See `Store.swap`."""
        with self.lock:
            if self.read(name).stamp == new.replaces:
                self.records[name] = new
            return self.read(name)

    def names(self) -> list[str]:
        """See `Store.names`."""
        return sorted({*self.records, *(sink for sink, _ in self.log)})

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        with self.lock:
            attempt = self.log.setdefault((chunk.task.sink, chunk.task.attempt), {})
            attempt[chunk.seq] = (chunk, time.time())

    def staged(self, sink: str) -> list[Staged]:
        """See `Store.staged`."""
        with self.lock:
            attempts = [list(c.values()) for (name, _), c in self.log.items() if name == sink]
            return [_describe(chunks) for chunks in attempts]

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`."""
        with self.lock:
            for part, seq in manifest.chunks:
                found = self.log.get((manifest.sink, part.attempt), {}).get(seq)
                if found is None or found[0].rows != part.rows[seq]:
                    raise StagedDataMissing(f"Chunk {seq} of attempt {part.attempt} is gone")
        return manifest

    def publish(self, decided: Record, finished: Record, manifest: Manifest) -> Record | None:
        """See `Store.publish`."""
        if not self.whole_epochs:
            return None
        with self.lock:
            if self.read(manifest.sink).stamp == decided.replaces:
                self.prepare(manifest)
                self.records[manifest.sink] = decided
                self.apply(manifest)
                self.records[manifest.sink] = finished
            return self.read(manifest.sink)

    def apply(self, manifest: Manifest, advance: Advance = ignore) -> None:
        """See `Store.apply`."""
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            with self.lock:
                if self.read(manifest.sink).token != manifest.token:
                    return
                if self.applied.get(manifest.token, 0) > ordinal:
                    continue
                chunks = self.log.get((manifest.sink, part.attempt), {})
                if seq not in chunks:
                    raise StoreLostData(f"Chunk {seq} of attempt {part.attempt} is gone")
                self.apply_chunk(chunks[seq][0].payload)
                self.applied[manifest.token] = ordinal + 1
                advance(part.rows[seq])
                del chunks[seq]
                if not chunks:
                    del self.log[(manifest.sink, part.attempt)]

    def discard(self, sink: str, attempts: Sequence[str]) -> None:
        """See `Store.discard`."""
        with self.lock:
            for attempt in attempts:
                self.log.pop((sink, attempt), None)


def _describe(chunks: list[tuple[Chunk, float]]) -> Staged:
    task = chunks[0][0].task
    return Staged(
        attempt=task.attempt,
        query_id=task.query_id,
        epoch=task.epoch,
        chunks=len(chunks),
        age=time.time() - max(at for _, at in chunks),
    )
