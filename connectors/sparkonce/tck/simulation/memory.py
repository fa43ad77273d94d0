"""The reference store: the whole protocol in one Python object, with nothing to install.

It is for tests and for authors of connectors: each method is the shortest correct form of one
step. A chunk is a JSON list of row ids; a row takes effect when `rows` gets it.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

from sparkonce.errors import StagedDataMissing, StoreLostData, StoreUnreachable
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Chunk,
    Finish,
    Manifest,
    P,
    Part,
    Proposal,
    Record,
    Staged,
    no_progress,
)

T = TypeVar("T")


class Link(Protocol):
    """Carries one request to the server and its reply back; the server executes it atomically."""

    def __call__(self, name: str, request: Callable[[], T], /) -> T:
        """Carry it; `name` is the kind of request."""
        ...


class MemoryStore:
    """An in-memory store.

    Args:
        whole_epochs: whether the store publishes an epoch in one atomic step, like a database with
            transactions, or chunk by chunk.

    Attributes:
        rows: every row that took effect, in order, with duplicates.
        records: the ledgers and claims.
        log: staged chunks by (sink, attempt) and seq, with the time of staging.
        applied: how many chunks of each decision took effect.
        order: of the decisions: the number of the last one of each sink.
        take: makes one row take effect; a test may replace it by a stricter one.
        link: carries requests to the server; a test may replace it by one that fails.
    """

    state: ClassVar[tuple[str, ...]] = ("rows", "records", "log", "applied", "order")

    def __init__(self, *, whole_epochs: bool = True) -> None:
        self.whole_epochs = whole_epochs
        self.rows: list[str] = []
        self.records: dict[str, Record] = {}
        self.log: dict[tuple[str, str], dict[int, tuple[Chunk, float]]] = {}
        self.applied: dict[str, int] = {}
        self.order: dict[str, int] = {}
        self.take: Callable[[str], None] = self.rows.append
        self.link: Link = _Lock().carry

    # -- for tests

    def through(self, link: Link) -> MemoryStore:
        """The same store for another client, with another link."""
        client = copy.copy(self)
        client.link = link
        return client

    def snapshot(self) -> dict[str, Any]:
        """The whole state, for `restore`."""
        return {name: _copied(getattr(self, name)) for name in self.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a snapshot, or its named parts, like a store that loses writes."""
        for name, value in state.items():
            place = getattr(self, name)
            place.clear()
            (place.extend if isinstance(place, list) else place.update)(_copied(value))

    def _ask(self, name: str, request: Callable[[], T]) -> T:
        return self.link(name, request)

    # -- the protocol

    def check(self, plan: P) -> P:
        """Always passes."""
        self.link("check", lambda: None)
        return plan

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        return self._ask("read", lambda: self._read(name))

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        return self._ask("swap", lambda: self._swap(name, new, over, applied))

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. In two steps, as a store does that has none for both."""
        there = self._ask("doom", lambda: self._swap(name, new, over))
        if there.stamp == new.stamp:
            self.discard(name, attempts, new.stamp)
        return there

    def names(self) -> list[str]:
        """See `Store.names`."""
        return self.link("names", lambda: sorted({*self.records, *(sink for sink, _ in self.log)}))

    def unfinished(self, kin: str) -> list[str]:
        """See `Store.unfinished`."""
        return self.link("unfinished", lambda: self._unfinished(kin))

    def decided_after(self, name: str) -> list[str]:
        """See `Store.decided_after`."""
        return self.link("decided_after", lambda: self._decided_after(name))

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        self.link("stage", lambda: self._stage(chunk))

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:  # noqa: ARG002
        """See `Store.staged`."""
        return self.link("staged", lambda: self._staged(sink))

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Nothing is needed."""
        return manifest

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        """See `Store.publish`."""
        if not self.whole_epochs:
            return None
        return self.link("publish", lambda: self._publish(proposal, finish(ALL_STORED)))

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`."""
        return self.link("decide", lambda: self._decide(proposal))

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = no_progress,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`."""
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            request = partial(self._apply, manifest, ordinal, part.attempt, seq)
            if not self.link("apply", request):
                break
            advance(part.rows[seq])
        return ALL_STORED

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),  # noqa: ARG002
    ) -> None:
        """See `Store.discard`."""
        self.link("discard", lambda: self._discard(sink, attempts, over))

    # -- execution of requests on the server

    def _read(self, name: str) -> Record:
        return self.records.get(name, Record())

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        held = self._read(name)
        if held.stamp == over and self.applied.get(held.token, 0) >= applied:
            self._write(name, new)
        return self._read(name)

    def _write(self, name: str, new: Record) -> None:
        if new.token and new.token != self._read(name).token:
            self.order[name] = max(self.order.values(), default=0) + 1
        self.records[name] = new
        if not new.revision:
            del self.records[name]
            self.order.pop(name, None)

    def _unfinished(self, kin: str) -> list[str]:
        return [name for name, one in self.records.items() if one.token and name.endswith(kin)]

    def _decided_after(self, name: str) -> list[str]:
        kin, own = f"@{name.rpartition('@')[2]}", self.order.get(name, 0)
        return [one for one, at in self.order.items() if at > own and one.endswith(kin)]

    def _keep(self, proposal: Proposal) -> None:
        if proposal.beside is not None:
            name, body = proposal.beside
            self.records[name] = Record(1, proposal.record.stamp, "", body)

    def _stage(self, chunk: Chunk) -> None:
        attempt = self.log.setdefault((chunk.task.sink, chunk.task.attempt), {})
        attempt[chunk.seq] = (chunk, time.monotonic())

    def _staged(self, sink: str) -> list[Staged]:
        attempts = [list(chunks.values()) for (name, _), chunks in self.log.items() if name == sink]
        return [_describe(chunks) for chunks in attempts]

    def _decide(self, proposal: Proposal) -> Record:
        manifest = proposal.manifest
        if self._read(manifest.sink).stamp == proposal.over:
            self._require_whole(manifest)
            self._keep(proposal)
        return self._swap(manifest.sink, proposal.record, proposal.over)

    def _require_whole(self, manifest: Manifest) -> None:
        for part, seq in manifest.chunks:
            found = self.log.get((manifest.sink, part.attempt), {}).get(seq)
            if found is None or len(found[0].payload) != part.sizes[seq]:
                raise StagedDataMissing(f"Chunk {seq} of attempt {part.attempt} is incomplete")

    def _publish(self, proposal: Proposal, finished: Record) -> Record:
        manifest = proposal.manifest
        if self._read(manifest.sink).stamp != proposal.over:
            return self._read(manifest.sink)
        self._require_whole(manifest)
        chunks = [self.log[manifest.sink, part.attempt][seq] for part, seq in manifest.chunks]
        self._take([row for chunk, _ in chunks for row in json.loads(chunk.payload)])
        self._write(manifest.sink, proposal.record)
        self._write(manifest.sink, finished)
        self._keep(proposal)
        return finished

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        """Apply one chunk, once; False if the decision is no longer the ledger's."""
        if self._read(manifest.sink).token != manifest.token:
            return False
        applied = self.applied.get(manifest.token, 0)
        if applied > ordinal:
            return True
        if applied < ordinal:
            raise StoreUnreachable(f"The store lost progress of epoch {manifest.epoch} (failover)")
        chunks = self.log.get((manifest.sink, attempt), {})
        if seq not in chunks:
            raise StoreLostData(f"Chunk {seq} of attempt {attempt} is missing")
        self._take(json.loads(chunks[seq][0].payload))
        self.applied[manifest.token] = ordinal + 1
        del chunks[seq]
        if not chunks:
            del self.log[(manifest.sink, attempt)]
        return True

    def _take(self, rows: list[str]) -> None:
        """Make rows take effect, all or none."""
        reached = len(self.rows)
        try:
            for row in rows:
                self.take(row)
        except BaseException:
            del self.rows[reached:]
            raise

    def _discard(self, sink: str, attempts: Sequence[str], over: str | None) -> None:
        if over not in (None, self._read(sink).stamp):
            return
        for attempt in attempts:
            self.log.pop((sink, attempt), None)


Place = TypeVar("Place", list[Any], dict[Any, Any])


def _copied(place: Place) -> Place:
    if isinstance(place, list):
        return list(place)
    return {key: dict(value) if isinstance(value, dict) else value for key, value in place.items()}


class _Lock:
    """The link without faults: one request after the other."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def carry(self, _name: str, request: Callable[[], T], /) -> T:
        with self._lock:
            return request()


def _describe(chunks: list[tuple[Chunk, float]]) -> Staged:
    task = chunks[0][0].task
    return Staged(
        attempt=task.attempt,
        query_id=task.query_id,
        epoch=task.epoch,
        chunks=len(chunks),
        age=time.monotonic() - max(at for _, at in chunks),
        bytes=sum(len(chunk.payload) for chunk, _ in chunks),
    )
