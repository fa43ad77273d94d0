"""Stores in which chunks or rows take effect with a fault."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

from tests.kit.mutants.mutant import CHUNKS, PAUSE, ROWS, WHOLE, Mutant, plant

from sparkonce.errors import RowRefused, StoreLostData
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Finish,
    Manifest,
    Part,
    Proposal,
    Record,
    no_progress,
)
from sparkonce.tck.simulation.converging import ConvergingStore, Guard
from sparkonce.tck.simulation.memory import MemoryStore

PAGE = 10


def _rows(store: MemoryStore, manifest: Manifest) -> list[str]:
    store._require_whole(manifest)
    chunks = [store.log[manifest.sink, part.attempt][seq] for part, seq in manifest.chunks]
    return [row for chunk, _ in chunks for row in json.loads(chunk.payload)]


# -- whole epochs


@plant("marker outside the transaction", "S07", WHOLE)
class MarksOutside(MemoryStore):
    """Publish commits the rows, and then the ledger."""

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        manifest = proposal.manifest
        now = self.link("read", lambda: self._read(manifest.sink))
        if now.stamp != proposal.over:
            return now
        self.link("rows", lambda: self._take(_rows(self, manifest)))
        time.sleep(PAUSE)
        finished = finish(ALL_STORED)
        self.link("ledger", lambda: self.records.update({manifest.sink: finished}))
        return finished


@plant("marker before the transaction", "S07", WHOLE)
class MarksFirst(MemoryStore):
    """Publish writes the ledger, and then the rows, which may be refused."""

    def _publish(self, proposal: Proposal, finished: Record) -> Record:
        manifest = proposal.manifest
        if self._read(manifest.sink).stamp == proposal.over:
            self.records[manifest.sink] = finished
            self._take(_rows(self, manifest))
        return self._read(manifest.sink)


@plant("chunks not counted in the transaction", "S07", WHOLE)
class PublishesWhatIsLeft(MemoryStore):
    """Publish takes what is left of chunks that were dropped after they were prepared."""

    def _publish(self, proposal: Proposal, finished: Record) -> Record:
        manifest = proposal.manifest
        left = [part for part in manifest.parts if (manifest.sink, part.attempt) in self.log]
        whole = replace(manifest, parts=tuple(left))
        return super()._publish(proposal._replace(manifest=whole), finished)


@plant("None for a stale decision", "S07", WHOLE)
class SaysNoneForStale(MemoryStore):
    """Publish does not tell what is there, so the commit goes on with other steps."""

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        if self.read(proposal.manifest.sink).stamp != proposal.over:
            return None
        return super().publish(proposal, finish)


@plant("a page of chunks is published", "S08", WHOLE)
class PublishesAPage(MemoryStore):
    """The query for the chunks of an epoch has a limit."""

    def _publish(self, proposal: Proposal, finished: Record) -> Record:
        page = replace(proposal.manifest, parts=proposal.manifest.parts[:PAGE])
        return super()._publish(proposal._replace(manifest=page), finished)


@plant("partitions ordered as text", "S08", WHOLE, CHUNKS)
class OrdersAsText(MemoryStore):
    """Partition 10 takes effect before partition 2."""

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        ordered = proposal._replace(manifest=_as_text(proposal.manifest))
        return super().publish(ordered, finish)

    def apply(self, manifest: Manifest, *rest: Any) -> Applied:
        return super().apply(_as_text(manifest), *rest)


def _as_text(manifest: Manifest) -> Manifest:
    def order(part: Part) -> str:
        return str(part.partition)

    return replace(manifest, parts=tuple(sorted(manifest.parts, key=order)))


# -- chunks


@plant("marker outside the chunk's step", "S08", CHUNKS)
class MarksApart(MemoryStore):
    """A chunk takes effect in one request, and is marked in the next one."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            done = self.link("read", lambda: self.applied.get(manifest.token, 0))
            chunks = self.log.get((manifest.sink, part.attempt), {})
            if done <= ordinal and seq in chunks:
                time.sleep(PAUSE)
                payload = chunks[seq][0].payload
                self.link("rows", lambda rows=payload: self._take(json.loads(rows)))
                self.link("mark", lambda n=ordinal: self.applied.update({manifest.token: n + 1}))
            advance(part.rows[seq])
        return ALL_STORED


@plant("chunk applied twice on roll-forward", "S08", CHUNKS)
class AppliesAgain(MemoryStore):
    """A chunk carries no mark that it took effect."""

    def _apply(self, manifest: Manifest, _ordinal: int, attempt: str, seq: int) -> bool:
        if self._read(manifest.sink).token != manifest.token:
            return False
        chunks = self.log.get((manifest.sink, attempt), {})
        if seq in chunks:
            self._take(json.loads(chunks[seq][0].payload))
        return True


@plant("one mark for all chunks", "S08", CHUNKS)
class MarksLast(MemoryStore):
    """The mark is set when the last chunk took effect, so a crash repeats those before."""

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if self._read(manifest.sink).token != manifest.token:
            return False
        if manifest.token not in self.applied:
            self._take(json.loads(self.log[manifest.sink, attempt][seq][0].payload))
        if ordinal == len(manifest.chunks) - 1:
            self.applied[manifest.token] = ordinal + 1
        return True


@plant("chunks applied in another order", "S08", CHUNKS)
class AppliesBackwards(MemoryStore):
    """The last partition takes effect first."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        return super().apply(replace(manifest, parts=manifest.parts[::-1]), advance)


@plant("missing chunk skipped", "S10", CHUNKS)
class PassesOver(MemoryStore):
    """A decided chunk that is gone is taken for applied."""

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if seq in self.log.get((manifest.sink, attempt), {}):
            return super()._apply(manifest, ordinal, attempt, seq)
        self.applied[manifest.token] = max(ordinal + 1, self.applied.get(manifest.token, 0))
        return True


@plant("finished without a look at the progress", "S15", CHUNKS, ROWS)
class FinishesAnyway(MemoryStore):
    """An epoch whose last chunks a failover has lost is finished, and they are cleaned."""

    def _swap(self, name: str, new: Record, over: str, _applied: int = 0) -> Record:
        return super()._swap(name, new, over)


@plant("refused row left out", "C17", WHOLE, CHUNKS)
class SkipsRefused(MemoryStore):
    """The epoch goes on without the row, and nobody is told."""

    def _take(self, rows: list[str]) -> None:
        for row in rows:
            with contextlib.suppress(RowRefused):
                super()._take([row])


@plant("rows before a refused one count again", "C17", CHUNKS)
class KeepsHalf(MemoryStore):
    """A chunk that stops at a refused row keeps the rows before it, and does not say so."""

    def _take(self, rows: list[str]) -> None:
        for row in rows:
            self.take(row)


# -- drivers that interrupt each other between two chunks


@plant("decision compared at the first chunk only", "C04", CHUNKS)
class AsksOnce(MemoryStore):
    """A driver that sleeps between two chunks applies the rest after another has done so."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        begun = self.link("begin", lambda: self._begun(manifest))
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            if begun is None:
                break
            if ordinal >= begun:
                self.link("apply", partial(self._apply, manifest, ordinal, part.attempt, seq))
            advance(part.rows[seq])
        return ALL_STORED

    def _begun(self, manifest: Manifest) -> int | None:
        ours = self._read(manifest.sink).token == manifest.token
        return self.applied.get(manifest.token, 0) if ours else None

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        chunks = self.log.get((manifest.sink, attempt), {})
        if seq not in chunks:
            raise StoreLostData(f"Chunk {seq} of attempt {attempt} is gone")
        self._take(json.loads(chunks[seq][0].payload))
        self.applied[manifest.token] = max(ordinal + 1, self.applied.get(manifest.token, 0))
        return True


@plant("late chunk counted for the next decision", "C04", CHUNKS)
class CountsForTheNext(AsksOnce):
    """Later chunks of a driver that was overtaken are taken for those of its successor."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        return MemoryStore.apply(self, manifest, advance)

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if not ordinal:
            return MemoryStore._apply(self, manifest, ordinal, attempt, seq)
        last = json.loads(self._read(manifest.sink).body)["decision"]["token"]
        if self.applied.get(last, 0) > ordinal:
            return True
        return super()._apply(replace(manifest, token=last), ordinal, attempt, seq)


@plant("no token", "C04", CHUNKS)
class CountsForAny(MemoryStore):
    """A chunk is taken for one of whatever is decided."""

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        manifest = replace(manifest, token=self._read(manifest.sink).token)
        return super()._apply(manifest, ordinal, attempt, seq)


# -- row by row

ADMITS = "sparkonce.tck.simulation.converging.Guard.admits"


class ReadsAhead(ConvergingStore):
    """It fetches all chunks before it sends the first row. This is no fault."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        payloads = [
            self.link("fetch", partial(self._payload, manifest, part.attempt, seq))
            for part, seq in manifest.chunks
        ]
        for ordinal, payload in enumerate(payloads):
            for row, times in Counter(json.loads(payload or "[]")).items():
                self.link("update", partial(self._update, manifest, ordinal, row, times))
            advance(len(payload or ""))
        self.link("mark", lambda: self.applied.update({manifest.token: len(payloads)}))
        return ALL_STORED


SOUND = [Mutant("chunks fetched ahead", "S09", "no fault", (ROWS,), ReadsAhead)]
"""Variants that break nothing: what is found of a mutant built on one is its fault alone."""


@plant("equal versions for chunks of one epoch", "S08", ROWS, at=ADMITS)
def admits_one_chunk(self: Guard, fence: int, _ordinal: int) -> bool:
    """A row that two chunks of an epoch change takes the first of them only."""
    return fence > self.fence


def _admits_any_fence(self: Guard, fence: int, ordinal: int) -> bool:
    return fence != self.fence or ordinal not in self.ordinals


@plant("no fence", "S09", ROWS, also={ADMITS: _admits_any_fence})
class WritesLate(ReadsAhead):
    """A driver that wakes up late writes over what its successor has written."""


@plant("fence made of the epoch", "I01", ROWS)
class FencesByEpoch(ConvergingStore):
    """Rows of a new query that replaces an old one are taken for late ones.

    Until it has gone further than the old one: the epoch does not rise where it begins at 0.
    """

    def prepare(self, manifest: Manifest) -> Manifest:
        return replace(super().prepare(manifest), notes={"fence": manifest.epoch + 1})


@plant("one fence for all sinks", "S12", ROWS)
class SharesFences(ConvergingStore):
    """Two sinks of one target fence each other's rows out."""

    def _update(self, manifest: Manifest, ordinal: int, row: str, times: int) -> None:
        super()._update(replace(manifest, sink=""), ordinal, row, times)


@plant("late duplicate after a match, in a row", "C03", ROWS, at=ADMITS)
def admits_all_but_the_last(self: Guard, fence: int, ordinal: int) -> bool:
    """A row remembers the last chunk only, so one before it counts again when resent."""
    newest = max(self.ordinals, default=-1)
    return fence > self.fence or (fence == self.fence and ordinal != newest)


@plant("chunks deleted before finish", "C06", ROWS)
class DropsAsItGoes(ConvergingStore):
    """Apply drops a chunk as soon as its rows were sent, and then dies."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        chunks = iter(manifest.chunks)

        def advanced(rows: int) -> None:
            part, seq = next(chunks)
            left = self.log.get((manifest.sink, part.attempt), {})
            left.pop(seq, None)
            if not left:
                self._discard(manifest.sink, [part.attempt], None)
            advance(rows)

        return super().apply(manifest, advanced)
