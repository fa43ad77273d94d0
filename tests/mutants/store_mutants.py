"""Stores whose records and log have a fault."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from tests.mutants.mutant import CHUNKS, ROWS, WHOLE, Mutant

from sparkonce.errors import StagedDataMissing
from sparkonce.protocol import Chunk, Decision, Finish, Manifest, Record, Staged
from sparkonce.tck.memory import MemoryStore

PAUSE = 0.005
"""Seconds between two requests that should be one: what a network takes."""


class ReadsAReplica(MemoryStore):
    def read(self, name: str) -> Record:
        seen: dict[str, Record] = self.__dict__.setdefault("replica", {})
        late, seen[name] = seen.get(name, Record()), super().read(name)
        return late


class ChecksThenActs(MemoryStore):
    def swap(self, name: str, new: Record, over: str, _applied: int = 0) -> Record:
        found = self.link("read", lambda: self._read(name))
        time.sleep(PAUSE)
        if found.stamp == over:
            self.link("write", lambda: self.records.update({name: new}))
        return self.link("read", lambda: self._read(name))


class Overwrites(MemoryStore):
    def _swap(self, name: str, new: Record, _over: str, _applied: int = 0) -> Record:
        self.records[name] = new
        return new


class ComparesRevisions(MemoryStore):
    def _swap(self, name: str, new: Record, _over: str, _applied: int = 0) -> Record:
        if new.revision > self._read(name).revision:
            self.records[name] = new
        return self._read(name)


class ComparesTokens(MemoryStore):
    """A ledger may be written over another one that holds the same decision."""

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        now = self._read(name)
        alike = over and now.token == new.token
        return super()._swap(name, new, now.stamp if alike else over, applied)


class StagesByPartition(MemoryStore):
    def _stage(self, chunk: Chunk) -> None:
        task = chunk.task
        for (sink, _), chunks in list(self.log.items()):
            other = next(iter(chunks.values()))[0].task
            if (sink, other.epoch, other.partition) == (task.sink, task.epoch, task.partition):
                self.log[task.sink, task.attempt] = chunks
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

    def decide(self, decision: Decision) -> Record:
        return self.swap(decision.manifest.sink, decision.record, decision.over)


class LooksBeforeItCompares(MemoryStore):
    def _decide(self, decision: Decision) -> Record:
        self._require_whole(decision.manifest)
        return super()._decide(decision)

    def _publish(self, decision: Decision, finished: Record) -> Record:
        self._require_whole(decision.manifest)
        return super()._publish(decision, finished)


class CountsChunksOnly(MemoryStore):
    def _require_whole(self, manifest: Manifest) -> None:
        for part in manifest.parts:
            if len(self.log.get((manifest.sink, part.attempt), {})) != len(part.rows):
                raise StagedDataMissing(f"Chunks of attempt {part.attempt} are gone")


class KeepsBesideFirst(MemoryStore):
    def decide(self, decision: Decision) -> Record:
        self._keep(decision)
        return super().decide(decision)

    def publish(self, decision: Decision, finish: Finish) -> Record | None:
        self._keep(decision)
        return super().publish(decision, finish)


class KeepsNothingBeside(MemoryStore):
    def _keep(self, _decision: Decision) -> None:
        pass


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


class TakesAwayWhateverIsThere(MemoryStore):
    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        if new.revision:
            return super()._swap(name, new, over, applied)
        self.records.pop(name, None)
        return Record()


class KeepsEmptyRecords(MemoryStore):
    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        held = self._read(name)
        there = super()._swap(name, new, over, applied)
        if held.revision and not there.revision:
            self.records[name] = new
        return there


class AsksTheTask(MemoryStore):
    """A task says what time it is."""

    def _stage(self, chunk: Chunk) -> None:
        super()._stage(chunk)
        self.told = {**self.__dict__.get("told", {}), chunk.task.attempt: time.time()}

    def _staged(self, sink: str) -> list[Staged]:
        now = time.time()
        return [replace(one, age=now - self.told[one.attempt]) for one in super()._staged(sink)]


class WritesLatin1(MemoryStore):
    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        body = new.body.encode("latin-1", "replace").decode("latin-1")
        return super()._swap(name, replace(new, body=body), over, applied)


class FoldsNames(MemoryStore):
    def _read(self, name: str) -> Record:
        return super()._read(name.lower())

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        return super()._swap(name.lower(), new, over, applied)


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


class ClaimsWholeEpochs(MemoryStore):
    def publish(self, *_: Any) -> None:
        """It says that it publishes whole epochs, and leaves each to `apply`."""


def _refuses(name: str, _: object, /) -> NoReturn:
    raise ConnectionRefusedError(f"[Errno 111] Connection refused ({name})")


STORE_MUTANTS = [
    Mutant(
        "stale read",
        "the ledger is read from a replica that lags one write behind",
        "S01",
        (ROWS,),
        ReadsAReplica,
    ),
    Mutant(
        "check then act in two steps",
        "swap compares in one request and writes in the next one",
        "S02",
        store=ChecksThenActs,
    ),
    Mutant("last write wins", "swap writes without comparing", "S02", store=Overwrites),
    Mutant(
        "late duplicate after a match, by revision",
        "swap takes the higher revision, as external versions of a search engine do",
        "S03",
        store=ComparesRevisions,
    ),
    Mutant(
        "late duplicate after a match, by token",
        "swap takes a record of the decision that is there, whatever it replaces",
        "S03",
        store=ComparesTokens,
    ),
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
        "another record taken away",
        "a swap of an empty record takes away whatever is there",
        "S17",
        store=TakesAwayWhateverIsThere,
    ),
    Mutant(
        "nothing ever taken away",
        "a swap of an empty record writes an empty record, which is listed for ever",
        "S17",
        store=KeepsEmptyRecords,
    ),
    Mutant(
        "ages by the clocks of tasks",
        "a task notes the time at which it stages, and who lists compares it with its own",
        "S19",
        store=AsksTheTask,
    ),
    Mutant(
        "beside before the comparison",
        "what is kept beside a decision is written first, whatever becomes of that",
        "S20",
        (WHOLE, CHUNKS),
        KeepsBesideFirst,
    ),
    Mutant(
        "nothing beside",
        "what should be kept beside a decision is not written",
        "S20",
        (WHOLE, CHUNKS),
        KeepsNothingBeside,
    ),
    Mutant(
        "names without case",
        "two sinks whose names differ in case alone share one ledger, as a collation may have it",
        "S12",
        store=FoldsNames,
    ),
    Mutant(
        "a client's own error",
        "a refused connection comes out as the operating system's error",
        "S13",
        patches={"sparkonce.tck.memory_subject._dead": _refuses},
    ),
    Mutant(
        "records in Latin-1",
        "what the column can't hold becomes a question mark, without an error",
        "S14",
        store=WritesLatin1,
    ),
    Mutant(
        "losers published with winners",
        "all that was staged for an epoch is applied, not the manifest's attempts alone",
        "C09",
        store=PublishesLosers,
    ),
    Mutant(
        "an epoch published in pieces",
        "a store that claims whole epochs shows readers one chunk after the other",
        "C13",
        (WHOLE,),
        ClaimsWholeEpochs,
    ),
]
