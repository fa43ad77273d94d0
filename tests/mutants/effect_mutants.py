"""Stores in which decided chunks take effect with a fault."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.mutants.mutant import CHUNKS, ROWS, WHOLE, Mutant
from tests.mutants.store_mutants import PAUSE

from sparkonce.errors import RowRefused
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Decision,
    Finish,
    Manifest,
    Record,
    ignore,
)
from sparkonce.tck.converging import ConvergingStore, Guard
from sparkonce.tck.memory import MemoryStore


def _rows(store: MemoryStore, manifest: Manifest) -> list[str]:
    store._require_whole(manifest)
    chunks = [store.log[manifest.sink, part.attempt][seq] for part, seq in manifest.chunks]
    return [row for chunk, _ in chunks for row in json.loads(chunk.payload)]


class MarksOutside(MemoryStore):
    """The rows are one transaction, and the ledger is another."""

    def publish(self, decision: Decision, finish: Finish) -> Record | None:
        manifest = decision.manifest
        now = self.link("read", lambda: self._read(manifest.sink))
        if now.stamp != decision.over:
            return now
        self.link("rows", lambda: self._take(_rows(self, manifest)))
        time.sleep(PAUSE)
        finished = finish(ALL_STORED)
        self.link("ledger", lambda: self.records.update({manifest.sink: finished}))
        return finished


class MarksFirst(MemoryStore):
    """The ledger is one transaction, and the rows are another."""

    def _publish(self, decision: Decision, finished: Record) -> Record:
        manifest = decision.manifest
        if self._read(manifest.sink).stamp == decision.over:
            self.records[manifest.sink] = finished
            self._take(_rows(self, manifest))
        return self._read(manifest.sink)


class PublishesWhatIsLeft(MemoryStore):
    """Chunks were counted when the manifest was prepared, and are not counted again."""

    def _publish(self, decision: Decision, finished: Record) -> Record:
        manifest = decision.manifest
        left = [part for part in manifest.parts if (manifest.sink, part.attempt) in self.log]
        whole = replace(manifest, parts=tuple(left))
        return super()._publish(decision._replace(manifest=whole), finished)


class MarksApart(MemoryStore):
    """A chunk takes effect in one request, and is marked in the next one."""

    def apply(self, manifest: Manifest, advance: Advance = ignore, *_: Any) -> Applied:
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


class MarksLast(MemoryStore):
    """One mark for a whole manifest, once its last chunk has taken effect."""

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if self._read(manifest.sink).token != manifest.token:
            return False
        if manifest.token not in self.applied:
            self._take(json.loads(self.log[manifest.sink, attempt][seq][0].payload))
        if ordinal == len(manifest.chunks) - 1:
            self.applied[manifest.token] = ordinal + 1
        return True


class AppliesAgain(MemoryStore):
    """A chunk that took effect is neither marked nor dropped."""

    def _apply(self, manifest: Manifest, _ordinal: int, attempt: str, seq: int) -> bool:
        if self._read(manifest.sink).token != manifest.token:
            return False
        chunks = self.log.get((manifest.sink, attempt), {})
        if seq in chunks:
            self._take(json.loads(chunks[seq][0].payload))
        return True


class AppliesBackwards(MemoryStore):
    def apply(self, manifest: Manifest, advance: Advance = ignore, *_: Any) -> Applied:
        return super().apply(replace(manifest, parts=manifest.parts[::-1]), advance)


class PassesOver(MemoryStore):
    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        gone = seq not in self.log.get((manifest.sink, attempt), {})
        return gone or super()._apply(manifest, ordinal, attempt, seq)


class DropsAsItGoes(ConvergingStore):
    """A chunk is deleted once its rows were sent, before anything says that all is done."""

    def apply(self, manifest: Manifest, advance: Advance = ignore, *_: Any) -> Applied:
        chunks = iter(manifest.chunks)

        def advanced(rows: int) -> None:
            part, seq = next(chunks)
            left = self.log.get((manifest.sink, part.attempt), {})
            left.pop(seq, None)
            if not left:
                self._discard(manifest.sink, [part.attempt], None)
            advance(rows)

        return super().apply(manifest, advanced)


class ReadsAhead(ConvergingStore):
    """It fetches all chunks before it sends the first row. This is no fault."""

    def apply(self, manifest: Manifest, advance: Advance = ignore, *_: Any) -> Applied:
        payloads = [
            self.link("fetch", lambda p=part, s=seq: self._payload(manifest, p.attempt, s))
            for part, seq in manifest.chunks
        ]
        for ordinal, payload in enumerate(payloads):
            for row, times in Counter(json.loads(payload or "[]")).items():
                request = (manifest, ordinal, row, times)
                self.link("update", lambda request=request: self._update(*request))
            advance(len(payload or ""))
        self.link("mark", lambda: self.applied.update({manifest.token: len(payloads)}))
        return ALL_STORED


def _admits_any_fence(self: Guard, fence: int, ordinal: int) -> bool:
    return fence != self.fence or ordinal not in self.ordinals


def _admits_one_chunk(self: Guard, fence: int, _ordinal: int) -> bool:
    return fence > self.fence


def _admits_all_but_the_last(self: Guard, fence: int, ordinal: int) -> bool:
    newest = max(self.ordinals, default=-1)
    return fence > self.fence or (fence == self.fence and ordinal != newest)


class SharesFences(ConvergingStore):
    def _update(self, manifest: Manifest, ordinal: int, row: str, times: int) -> None:
        super()._update(replace(manifest, sink=""), ordinal, row, times)


class FencesByEpoch(ConvergingStore):
    """A fence that is the epoch does not rise when another query begins at 0."""

    def prepare(self, manifest: Manifest) -> Manifest:
        return replace(super().prepare(manifest), notes={"fence": manifest.epoch + 1})


class SkipsRefused(MemoryStore):
    """A row that is refused is left out, in silence."""

    def _take(self, rows: list[str]) -> None:
        for row in rows:
            with contextlib.suppress(RowRefused):
                super()._take([row])


class KeepsHalf(MemoryStore):
    """The rows of a chunk before a refused one stay, unmarked."""

    def _take(self, rows: list[str]) -> None:
        for row in rows:
            self.take(row)


class FinishesAnyway(MemoryStore):
    """A failover may have lost what was applied; the finish does not ask."""

    def _swap(self, name: str, new: Record, over: str, _applied: int = 0) -> Record:
        return super()._swap(name, new, over)


ADMITS = "sparkonce.tck.converging.Guard.admits"

EFFECT_MUTANTS = [
    Mutant(
        "marker outside the transaction",
        "publish commits the rows, and then the ledger",
        "S07",
        (WHOLE,),
        MarksOutside,
    ),
    Mutant(
        "marker before the transaction",
        "publish writes the ledger, and then the rows, which may be refused",
        "S07",
        (WHOLE,),
        MarksFirst,
    ),
    Mutant(
        "chunks not counted in the transaction",
        "publish takes what is left of chunks that were dropped after they were prepared",
        "S07",
        (WHOLE,),
        PublishesWhatIsLeft,
    ),
    Mutant(
        "marker outside the chunk's step",
        "a chunk takes effect in one request, and is marked in the next one",
        "S08",
        (CHUNKS,),
        MarksApart,
    ),
    Mutant(
        "chunk applied twice on roll-forward",
        "a chunk carries no mark that it took effect",
        "S08",
        (CHUNKS,),
        AppliesAgain,
    ),
    Mutant(
        "one mark for all chunks",
        "the mark is set when the last chunk took effect, so a crash repeats those before",
        "S08",
        (CHUNKS,),
        MarksLast,
    ),
    Mutant(
        "equal versions for chunks of one epoch",
        "a row that two chunks of an epoch change takes the first of them only",
        "S08",
        (ROWS,),
        patches={ADMITS: _admits_one_chunk},
    ),
    Mutant(
        "chunks applied in another order",
        "the last partition takes effect first",
        "S08",
        (CHUNKS,),
        AppliesBackwards,
    ),
    Mutant(
        "no fence",
        "a driver that wakes up late writes over what its successor has written",
        "S09",
        (ROWS,),
        ReadsAhead,
        {ADMITS: _admits_any_fence},
    ),
    Mutant(
        "fence made of the epoch",
        "rows of a new query that replaces an old one are taken for late ones, until it has gone"
        " further than the old one",
        "I01",
        (ROWS,),
        FencesByEpoch,
    ),
    Mutant(
        "missing chunk passed over",
        "a decided chunk that is gone is taken for applied",
        "S10",
        (CHUNKS,),
        PassesOver,
    ),
    Mutant(
        "one fence for all sinks",
        "two sinks of one target fence each other's rows out",
        "S12",
        (ROWS,),
        SharesFences,
    ),
    Mutant(
        "late duplicate after a match, in a row",
        "a row remembers the last chunk only, so one before it counts again when resent",
        "C03",
        (ROWS,),
        patches={ADMITS: _admits_all_but_the_last},
    ),
    Mutant(
        "finished without looking at what is applied",
        "an epoch whose last chunks a failover has lost is finished, and they are cleaned",
        "S15",
        (CHUNKS, ROWS),
        FinishesAnyway,
    ),
    Mutant(
        "refused row left out",
        "the epoch goes on without the row, and nobody is told",
        "C17",
        (WHOLE, CHUNKS),
        SkipsRefused,
    ),
    Mutant(
        "rows before a refused one count again",
        "a chunk that stops at a refused row keeps the rows before it, and does not say so",
        "C17",
        (CHUNKS,),
        KeepsHalf,
    ),
    Mutant(
        "chunks deleted before finish",
        "apply drops a chunk as soon as its rows were sent, and then dies",
        "C06",
        (ROWS,),
        DropsAsItGoes,
    ),
]

SOUND = [Mutant("chunks fetched ahead", "no fault", "S09", (ROWS,), ReadsAhead)]
"""Variants that break nothing: what is found of a mutant built on one is its fault alone."""
