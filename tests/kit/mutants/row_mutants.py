"""Stores that apply row by row, with a fault in fences, in marks or in what they keep."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

from tests.kit.mutants.mutant import ROWS, Mutant

from sparkonce.protocol import ALL_STORED, Advance, Applied, Manifest, no_progress
from sparkonce.tck.simulation.converging import ConvergingStore, Guard


class DropsAsItGoes(ConvergingStore):
    """A chunk is deleted once its rows were sent, before anything says that all is done."""

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


ADMITS = "sparkonce.tck.simulation.converging.Guard.admits"

ROW_MUTANTS = [
    Mutant(
        "equal versions for chunks of one epoch",
        "a row that two chunks of an epoch change takes the first of them only",
        "S08",
        (ROWS,),
        patches={ADMITS: _admits_one_chunk},
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
        "chunks deleted before finish",
        "apply drops a chunk as soon as its rows were sent, and then dies",
        "C06",
        (ROWS,),
        DropsAsItGoes,
    ),
]

SOUND = [Mutant("chunks fetched ahead", "no fault", "S09", (ROWS,), ReadsAhead)]
"""Variants that break nothing: what is found of a mutant built on one is its fault alone."""
