"""The third profile of the in-memory store: without transactions, like a search engine.

Rows take effect one by one, each under its own guard; listings lag behind; the client repeats
requests without a reply by itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import ClassVar, TypeVar

from sparkonce.errors import StagedDataMissing, StoreLostData, StoreUnreachable
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Manifest,
    Part,
    Proposal,
    Record,
    Staged,
    no_progress,
)
from sparkonce.tck.simulation.memory import MemoryStore

T = TypeVar("T")
RESENDS = 2


@dataclass(frozen=True)
class Guard:
    """The decision and the chunks that changed a row; one step changes the row and its guard.

    Attributes:
        fence: drawn for each decision, ever higher; it orders decisions of one sink.
        ordinals: the chunks of that decision that have changed the row.
    """

    fence: int = 0
    ordinals: frozenset[int] = frozenset()

    def admits(self, fence: int, ordinal: int) -> bool:
        """Whether a chunk still has to change the row."""
        return fence > self.fence or (fence == self.fence and ordinal not in self.ordinals)

    def after(self, fence: int, ordinal: int) -> Guard:
        """The guard after the chunk has changed the row."""
        seen = self.ordinals if fence == self.fence else frozenset()
        return Guard(fence, seen | {ordinal})


class ConvergingStore(MemoryStore):
    """A store whose rows converge one by one.

    Attributes:
        guards: by (sink, row).
        looking: sinks of clients between a read and the step that depends on it: no failover may
            happen then.
        listed: the log and records at the last `refresh`, for `staged` and `names`.
    """

    state: ClassVar[tuple[str, ...]] = (*MemoryStore.state, "guards")

    def __init__(self) -> None:
        super().__init__(whole_epochs=False)
        self.guards: dict[tuple[str, str], Guard] = {}
        self.listed: dict[str, list[Staged]] = {}
        self.known: set[str] = set()
        self.looking: list[str] = []
        # As from a clock: unlike a counter in an index, it never decreases after a loss.
        self._fences = count(1)

    def refresh(self) -> None:
        """Make listings show the current state."""
        self.listed.clear()
        self.listed.update(
            {sink: super(ConvergingStore, self)._staged(sink) for sink, _ in self.log}
        )
        self.known.clear()
        self.known.update(self.records, (sink for sink, _ in self.log))

    # -- the protocol

    def names(self) -> list[str]:
        """See `Store.names`."""
        return self._ask("names", lambda: sorted(self.known))

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Draws the fence of the decision."""
        fence = self._ask("fence", lambda: next(self._fences))
        return replace(manifest, notes={"fence": fence})

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`. It looks, then writes."""
        manifest = proposal.manifest
        with self._between(manifest.sink):
            try:
                self._ask("look", lambda: self._require_whole(manifest))
            except StagedDataMissing:
                there = self.read(manifest.sink)
                if there.stamp == proposal.over:
                    raise
                return there
            return self._ask("decide", lambda: self._written(proposal))

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),  # noqa: ARG002
    ) -> None:
        """See `Store.discard`. It looks, then drops."""
        with self._between(sink):
            if over in (None, self.read(sink).stamp):
                self._ask("discard", lambda: self._discard(sink, attempts, None))

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = no_progress,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`. Row by row; the mark that all is done is last."""
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            payload = self._ask("fetch", partial(self._payload, manifest, part.attempt, seq))
            if payload is None:
                return ALL_STORED
            for row, times in Counter(json.loads(payload)).items():
                self._ask("update", partial(self._update, manifest, ordinal, row, times))
            advance(part.rows[seq])
        self._ask("mark", lambda: self.applied.update({manifest.token: len(manifest.chunks)}))
        return ALL_STORED

    # -- client and server

    @contextmanager
    def _between(self, sink: str) -> Iterator[None]:
        self.looking.append(sink)
        try:
            yield
        finally:
            self.looking.remove(sink)

    def _ask(self, name: str, request: Callable[[], T]) -> T:
        """Repeat a request without a reply: a swap finds its own stamp, a read is never late."""
        for _ in range(RESENDS):
            try:
                return self.link(name, request)
            except StoreUnreachable:
                continue
        return self.link(name, request)

    def _written(self, proposal: Proposal) -> Record:
        if self._read(proposal.manifest.sink).stamp == proposal.over:
            self._keep(proposal)
        return self._swap(proposal.manifest.sink, proposal.record, proposal.over)

    def _payload(self, manifest: Manifest, attempt: str, seq: int) -> bytes | None:
        """A chunk; None if another process finished its epoch."""
        found = self.log.get((manifest.sink, attempt), {}).get(seq)
        if found is not None:
            return found[0].payload
        superseded = self._read(manifest.sink).token != manifest.token
        if superseded or manifest.token in self.applied:
            return None
        raise StoreLostData(f"Chunk {seq} of attempt {attempt} is missing")

    def _update(self, manifest: Manifest, ordinal: int, row: str, times: int) -> None:
        key, fence = (manifest.sink, row), manifest.notes["fence"]
        guard = self.guards.get(key, Guard())
        if guard.admits(fence, ordinal):
            self._take([row] * times)
            self.guards[key] = guard.after(fence, ordinal)

    def _staged(self, sink: str) -> list[Staged]:
        seen = self.listed.get(sink, [])
        self.refresh()
        return list(seen)
