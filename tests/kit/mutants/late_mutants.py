"""Stores with a fault that shows where drivers interrupt each other between two chunks."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

from tests.kit.mutants.mutant import CHUNKS, Mutant

from sparkonce.errors import StoreLostData
from sparkonce.protocol import ALL_STORED, Advance, Applied, Manifest, no_progress
from sparkonce.tck.simulation.memory import MemoryStore


class AsksOnce(MemoryStore):
    """At the first chunk it asks whose decision it is, and how far that is; then no more."""

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


class CountsForTheNext(AsksOnce):
    """A sink has one mark, and chunks after the first don't ask whose it is by now."""

    def apply(self, manifest: Manifest, advance: Advance = no_progress, *_: Any) -> Applied:
        return MemoryStore.apply(self, manifest, advance)

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        if not ordinal:
            return MemoryStore._apply(self, manifest, ordinal, attempt, seq)
        last = json.loads(self._read(manifest.sink).body)["decision"]["token"]
        if self.applied.get(last, 0) > ordinal:
            return True
        return super()._apply(replace(manifest, token=last), ordinal, attempt, seq)


class CountsForAny(MemoryStore):
    """A sink has one mark, and no chunk asks whose it is by now."""

    def _apply(self, manifest: Manifest, ordinal: int, attempt: str, seq: int) -> bool:
        manifest = replace(manifest, token=self._read(manifest.sink).token)
        return super()._apply(manifest, ordinal, attempt, seq)


LATE_MUTANTS = [
    Mutant(
        "decision compared at the first chunk only",
        "a driver that sleeps between two chunks applies the rest after another has done so",
        "C04",
        (CHUNKS,),
        AsksOnce,
    ),
    Mutant(
        "late chunk counted for the next decision",
        "later chunks of a driver that was overtaken are taken for those of its successor",
        "C04",
        (CHUNKS,),
        CountsForTheNext,
    ),
    Mutant(
        "no token",
        "a chunk is taken for one of whatever is decided",
        "C04",
        (CHUNKS,),
        CountsForAny,
    ),
]
