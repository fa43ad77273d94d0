"""Stores in which whole chunks take effect with a fault."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import replace
from typing import Any

from tests.kit.mutants.mutant import CHUNKS, PAUSE, ROWS, WHOLE, Mutant

from sparkonce.errors import RowRefused
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Finish,
    Manifest,
    Proposal,
    Record,
    no_progress,
)
from sparkonce.tck.simulation.memory import MemoryStore


def _rows(store: MemoryStore, manifest: Manifest) -> list[str]:
    store._require_whole(manifest)
    chunks = [store.log[manifest.sink, part.attempt][seq] for part, seq in manifest.chunks]
    return [row for chunk, _ in chunks for row in json.loads(chunk.payload)]


class MarksOutside(MemoryStore):
    """The rows are one transaction, and the ledger is another."""

    def publish(self, decision: Proposal, finish: Finish) -> Record | None:
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

    def _publish(self, decision: Proposal, finished: Record) -> Record:
        manifest = decision.manifest
        if self._read(manifest.sink).stamp == decision.over:
            self.records[manifest.sink] = finished
            self._take(_rows(self, manifest))
        return self._read(manifest.sink)


class PublishesWhatIsLeft(MemoryStore):
    """Chunks were counted when the manifest was prepared, and are not counted again."""

    def _publish(self, decision: Proposal, finished: Record) -> Record:
        manifest = decision.manifest
        left = [part for part in manifest.parts if (manifest.sink, part.attempt) in self.log]
        whole = replace(manifest, parts=tuple(left))
        return super()._publish(decision._replace(manifest=whole), finished)


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
    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        return super().apply(replace(manifest, parts=manifest.parts[::-1]), advance)


class PassesOver(MemoryStore):
    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if seq in self.log.get((manifest.sink, attempt), {}):
            return super()._apply(manifest, ordinal, attempt, seq)
        self.applied[manifest.token] = max(ordinal + 1, self.applied.get(manifest.token, 0))
        return True


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
        "chunks applied in another order",
        "the last partition takes effect first",
        "S08",
        (CHUNKS,),
        AppliesBackwards,
    ),
    Mutant(
        "missing chunk passed over",
        "a decided chunk that is gone is taken for applied",
        "S10",
        (CHUNKS,),
        PassesOver,
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
]
