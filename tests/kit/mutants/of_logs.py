"""Stores whose records or whose log have a fault; and those that do well while there is little."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from tests.kit.mutants.mutant import CHUNKS, PAUSE, ROWS, WHOLE, plant

from sparkonce.errors import StagedDataMissing
from sparkonce.protocol import Chunk, Finish, Manifest, Proposal, Record, Staged
from sparkonce.tck.simulation.memory import MemoryStore

PAGE = 10

# -- records: the ledger, and what is kept beside a decision


@plant("stale read", "S01", ROWS)
class ReadsAReplica(MemoryStore):
    """The ledger is read from a replica that lags one write behind."""

    def read(self, name: str) -> Record:
        seen: dict[str, Record] = self.__dict__.setdefault("replica", {})
        late, seen[name] = seen.get(name, Record()), super().read(name)
        return late


@plant("check then act in two steps", "S02")
class ChecksThenActs(MemoryStore):
    """Swap compares in one request and writes in the next one."""

    def swap(self, name: str, new: Record, over: str, _applied: int = 0) -> Record:
        found = self.link("read", lambda: self._read(name))
        time.sleep(PAUSE)
        if found.stamp == over:
            self.link("write", lambda: self.records.update({name: new}))
        return self.link("read", lambda: self._read(name))


@plant("last write wins", "S02")
class Overwrites(MemoryStore):
    """Swap writes without comparing."""

    def _swap(self, name: str, new: Record, _over: str, _applied: int = 0) -> Record:
        self.records[name] = new
        return new


@plant("late duplicate after a match, by revision", "S03")
class ComparesRevisions(MemoryStore):
    """Swap takes the higher revision, as external versions of a search engine do."""

    def _swap(self, name: str, new: Record, _over: str, _applied: int = 0) -> Record:
        if new.revision > self._read(name).revision:
            self.records[name] = new
        return self._read(name)


@plant("late duplicate after a match, by token", "S03")
class ComparesTokens(MemoryStore):
    """Swap takes a record of the decision that is there, whatever it replaces."""

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        now = self._read(name)
        alike = over and now.token == new.token
        return super()._swap(name, new, now.stamp if alike else over, applied)


@plant("another record removed", "S17")
class TakesAwayWhateverIsThere(MemoryStore):
    """A swap of an empty record takes away whatever is there."""

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        if new.revision:
            return super()._swap(name, new, over, applied)
        self.records.pop(name, None)
        return Record()


@plant("nothing ever removed", "S17")
class KeepsEmptyRecords(MemoryStore):
    """A swap of an empty record writes an empty record, which is listed for ever."""

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        held = self._read(name)
        there = super()._swap(name, new, over, applied)
        if held.revision and not there.revision:
            self.records[name] = new
        return there


@plant("beside before the comparison", "S20", WHOLE, CHUNKS)
class KeepsBesideFirst(MemoryStore):
    """What is kept beside a decision is written first, whatever becomes of that."""

    def decide(self, proposal: Proposal) -> Record:
        self._keep(proposal)
        return super().decide(proposal)

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        self._keep(proposal)
        return super().publish(proposal, finish)


@plant("nothing beside", "S20", WHOLE, CHUNKS)
class KeepsNothingBeside(MemoryStore):
    """What should be kept beside a decision is not written."""

    def _keep(self, _decision: Proposal) -> None:
        pass


@plant("names without case", "S12")
class FoldsNames(MemoryStore):
    """Two sinks whose names differ in case alone share one ledger, as a collation may have it."""

    def _read(self, name: str) -> Record:
        return super()._read(name.lower())

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        return super()._swap(name.lower(), new, over, applied)


@plant("a client's own error", "S13", at="sparkonce.tck.memory_subject._dead")
def refuses(name: str, _: object, /) -> NoReturn:
    """A refused connection comes out as the operating system's error."""
    raise ConnectionRefusedError(f"[Errno 111] Connection refused ({name})")


@plant("records in Latin-1", "S14")
class WritesLatin1(MemoryStore):
    """What the column can't hold becomes a question mark, without an error."""

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        body = new.body.encode("latin-1", "replace").decode("latin-1")
        return super()._swap(name, replace(new, body=body), over, applied)


@plant("an epoch published in pieces", "C13", WHOLE)
class ClaimsWholeEpochs(MemoryStore):
    """A store that claims whole epochs shows readers one chunk after the other."""

    def publish(self, *_: Any) -> None:
        """It says that it publishes whole epochs, and leaves each to `apply`."""


# -- the log of staged chunks


@plant("partition as the staging key", "S04")
class StagesByPartition(MemoryStore):
    """Chunks are kept by partition and seq, so that attempts overwrite each other."""

    def _stage(self, chunk: Chunk) -> None:
        task = chunk.task
        for (sink, attempt), chunks in list(self.log.items()):
            other = next(iter(chunks.values()))[0].task
            same = (sink, other.epoch, other.partition) == (task.sink, task.epoch, task.partition)
            if same and attempt != task.attempt:
                del self.log[sink, attempt]
        super()._stage(chunk)


@plant("attempts unlisted until a ledger exists", "S05", WHOLE, CHUNKS)
class ListsOwnersOnly(MemoryStore):
    """The names are those of records, so what a first epoch left is never found."""

    def names(self) -> list[str]:
        return self.link("names", lambda: sorted(self.records))


@plant("manifest not checked", "S06")
class TrustsManifests(MemoryStore):
    """Nothing looks at a chunk."""

    def _require_whole(self, manifest: Manifest) -> None:
        pass


@plant("sizes not checked", "S06")
class CountsChunksOnly(MemoryStore):
    """Deciding counts the chunks of an attempt, and takes one that was cut for whole."""

    def _require_whole(self, manifest: Manifest) -> None:
        for part in manifest.parts:
            if len(self.log.get((manifest.sink, part.attempt), {})) != len(part.rows):
                raise StagedDataMissing(f"Chunks of attempt {part.attempt} are gone")


@plant("chunks checked before the decision", "S06", CHUNKS)
class LooksThenDecides(MemoryStore):
    """Prepare looks at the chunks, and the decision is written in another step."""

    def prepare(self, manifest: Manifest) -> Manifest:
        self.link("look", lambda: self._require_whole(manifest))
        return manifest

    def decide(self, proposal: Proposal) -> Record:
        return self.swap(proposal.manifest.sink, proposal.record, proposal.over)


@plant("chunks discarded by a rival reported as lost", "C04", WHOLE, CHUNKS)
class LooksBeforeItCompares(MemoryStore):
    """A driver that was overtaken says that the server lost what it had staged."""

    def _decide(self, proposal: Proposal) -> Record:
        self._require_whole(proposal.manifest)
        return super()._decide(proposal)

    def _publish(self, proposal: Proposal, finished: Record) -> Record:
        self._require_whole(proposal.manifest)
        return super()._publish(proposal, finished)


@plant("dropped over any record", "S18", WHOLE, CHUNKS)
class DropsWhateverIsThere(MemoryStore):
    """Discard drops what it names, whatever record is there."""

    def _discard(self, sink: str, attempts: Sequence[str], _over: str | None) -> None:
        super()._discard(sink, attempts, None)


@plant("discard in every sink", "S11")
class DropsOfAnySink(MemoryStore):
    """Discard drops attempts of that name, whatever sink staged them."""

    def _discard(self, _sink: str, attempts: Sequence[str], _over: str | None) -> None:
        for key in [key for key in self.log if key[1] in attempts]:
            del self.log[key]


@plant("dropped before compared", "S16", WHOLE, CHUNKS)
class DropsBeforeItCompares(MemoryStore):
    """Doom drops attempts also where another record is there, which may hold them."""

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        self.discard(name, attempts)
        return self.swap(name, new, over)


@plant("doomed and kept", "S16", WHOLE, CHUNKS)
class DoomsAndDropsNothing(MemoryStore):
    """Doom writes its record, and drops nothing."""

    def doom(self, name: str, new: Record, over: str, _attempts: Sequence[str]) -> Record:
        return self.swap(name, new, over)


@plant("ages by the clocks of tasks", "S19")
class AsksTheTask(MemoryStore):
    """A task notes the time at which it stages, and who lists compares it with its own."""

    def _stage(self, chunk: Chunk) -> None:
        super()._stage(chunk)
        self.noted = {**self.__dict__.get("noted", {}), chunk.task.attempt: time.time()}

    def _staged(self, sink: str) -> list[Staged]:
        now = time.time()
        return [replace(one, age=now - self.noted[one.attempt]) for one in super()._staged(sink)]


@plant("losers published with winners", "C09")
class PublishesLosers(MemoryStore):
    """All that was staged for an epoch is applied, not the manifest's attempts alone."""

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


# -- much of it


@plant("a page of attempts is listed", "S05")
class ListsAPageOfAttempts(MemoryStore):
    """A search gives ten hits unless told otherwise."""

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        return super().staged(sink, fresh=fresh)[:PAGE]


@plant("a page of names is listed", "S05")
class ListsAPageOfNames(MemoryStore):
    """A search gives ten hits unless told otherwise."""

    def names(self) -> list[str]:
        return super().names()[:PAGE]


@plant("a page of attempts is dropped", "S05")
class DiscardsAPage(MemoryStore):
    """A delete by query stops after ten."""

    def discard(self, sink: str, attempts: Sequence[str], *over: Any) -> None:
        super().discard(sink, attempts[:PAGE], *over)


@plant("discard by partition", "S11", WHOLE, CHUNKS)
class DiscardsByPartition(MemoryStore):
    """Whatever was staged for the same epoch and partition goes, a good twin too."""

    def _discard(self, sink: str, attempts: Sequence[str], over: str | None) -> None:
        keys = [(sink, attempt) for attempt in attempts if (sink, attempt) in self.log]
        places = {self._place(key) for key in keys}
        alike = [key for key in self.log if key[0] == sink and self._place(key) in places]
        super()._discard(sink, [attempt for _, attempt in alike], over)

    def _place(self, key: tuple[str, str]) -> tuple[int, int]:
        task = next(iter(self.log[key].values()))[0].task
        return task.epoch, task.partition
