"""Stores whose log of staged chunks has a fault."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tests.kit.mutants.mutant import CHUNKS, WHOLE, Mutant

from sparkonce.errors import StagedDataMissing
from sparkonce.protocol import Chunk, Manifest, Proposal, Record, Staged
from sparkonce.tck.simulation.memory import MemoryStore


class StagesByPartition(MemoryStore):
    def _stage(self, chunk: Chunk) -> None:
        task = chunk.task
        for (sink, attempt), chunks in list(self.log.items()):
            other = next(iter(chunks.values()))[0].task
            same = (sink, other.epoch, other.partition) == (task.sink, task.epoch, task.partition)
            if same and attempt != task.attempt:
                del self.log[sink, attempt]
        super()._stage(chunk)


class ListsOwnersOnly(MemoryStore):
    def names(self) -> list[str]:
        return self.link("names", lambda: sorted(self.records))


class TrustsManifests(MemoryStore):
    def _require_whole(self, manifest: Manifest) -> None:
        pass


class LooksThenDecides(MemoryStore):
    """It looks at the chunks in a request of its own, when it prepares."""

    def prepare(self, manifest: Manifest) -> Manifest:
        self.link("look", lambda: self._require_whole(manifest))
        return manifest

    def decide(self, decision: Proposal) -> Record:
        return self.swap(decision.manifest.sink, decision.record, decision.over)


class LooksBeforeItCompares(MemoryStore):
    def _decide(self, decision: Proposal) -> Record:
        self._require_whole(decision.manifest)
        return super()._decide(decision)

    def _publish(self, decision: Proposal, finished: Record) -> Record:
        self._require_whole(decision.manifest)
        return super()._publish(decision, finished)


class CountsChunksOnly(MemoryStore):
    def _require_whole(self, manifest: Manifest) -> None:
        for part in manifest.parts:
            if len(self.log.get((manifest.sink, part.attempt), {})) != len(part.rows):
                raise StagedDataMissing(f"Chunks of attempt {part.attempt} are gone")


class DropsOfAnySink(MemoryStore):
    def _discard(self, _sink: str, attempts: Sequence[str], _over: str | None) -> None:
        for key in [key for key in self.log if key[1] in attempts]:
            del self.log[key]


class DropsWhateverIsThere(MemoryStore):
    def _discard(self, sink: str, attempts: Sequence[str], _over: str | None) -> None:
        super()._discard(sink, attempts, None)


class DropsBeforeItCompares(MemoryStore):
    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        self.discard(name, attempts)
        return self.swap(name, new, over)


class DoomsAndDropsNothing(MemoryStore):
    def doom(self, name: str, new: Record, over: str, _attempts: Sequence[str]) -> Record:
        return self.swap(name, new, over)


class AsksTheTask(MemoryStore):
    """A task says what time it is."""

    def _stage(self, chunk: Chunk) -> None:
        super()._stage(chunk)
        self.told = {**self.__dict__.get("told", {}), chunk.task.attempt: time.time()}

    def _staged(self, sink: str) -> list[Staged]:
        now = time.time()
        return [replace(one, age=now - self.told[one.attempt]) for one in super()._staged(sink)]


class PublishesLosers(MemoryStore):
    """It goes by the epoch of a chunk, not by the attempts of the manifest."""

    def prepare(self, manifest: Manifest) -> Manifest:
        manifest = super().prepare(manifest)
        parts = {part.attempt: part for part in manifest.parts}
        for (sink, attempt), chunks in self.log.items():
            found = [chunk for chunk, _ in chunks.values()]
            if sink == manifest.sink and found[0].task.epoch == manifest.epoch:
                one = next(iter(parts.values()))
                rows = tuple(chunk.rows for chunk in found)
                sizes = tuple(len(chunk.payload) for chunk in found)
                parts.setdefault(attempt, replace(one, attempt=attempt, rows=rows, sizes=sizes))
        return replace(manifest, parts=tuple(parts.values()))


LOG_MUTANTS = [
    Mutant(
        "partition as the staging key",
        "chunks are kept by partition and seq, so that attempts overwrite each other",
        "S04",
        store=StagesByPartition,
    ),
    Mutant(
        "attempts unlisted until a ledger is there",
        "names lists records only, so what a first epoch left is never found",
        "S05",
        (WHOLE, CHUNKS),
        ListsOwnersOnly,
    ),
    Mutant("manifest not checked", "nothing looks at a chunk", "S06", store=TrustsManifests),
    Mutant(
        "sizes not checked",
        "deciding counts the chunks of an attempt, and takes one that was cut for whole",
        "S06",
        store=CountsChunksOnly,
    ),
    Mutant(
        "chunks looked at before the decision",
        "prepare looks at the chunks, and the decision is written in another step",
        "S06",
        (CHUNKS,),
        LooksThenDecides,
    ),
    Mutant(
        "chunks that a rival has cleaned away reported as lost",
        "a driver that was overtaken says that the server lost what it had staged",
        "C04",
        (WHOLE, CHUNKS),
        LooksBeforeItCompares,
    ),
    Mutant(
        "dropped over any record",
        "discard drops what it names, whatever record is there",
        "S18",
        (WHOLE, CHUNKS),
        DropsWhateverIsThere,
    ),
    Mutant(
        "discard in every sink",
        "discard drops attempts of that name, whatever sink staged them",
        "S11",
        store=DropsOfAnySink,
    ),
    Mutant(
        "dropped before compared",
        "doom drops attempts also where another record is there, which may hold them",
        "S16",
        (WHOLE, CHUNKS),
        DropsBeforeItCompares,
    ),
    Mutant(
        "doomed and kept",
        "doom writes its record, and drops nothing",
        "S16",
        (WHOLE, CHUNKS),
        DoomsAndDropsNothing,
    ),
    Mutant(
        "ages by the clocks of tasks",
        "a task notes the time at which it stages, and who lists compares it with its own",
        "S19",
        store=AsksTheTask,
    ),
    Mutant(
        "losers published with winners",
        "all that was staged for an epoch is applied, not the manifest's attempts alone",
        "C09",
        store=PublishesLosers,
    ),
]
