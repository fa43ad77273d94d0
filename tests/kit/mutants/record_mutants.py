"""Stores whose records have a fault: the ledger, and what is kept beside a decision."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, NoReturn

from tests.kit.mutants.mutant import CHUNKS, PAUSE, ROWS, WHOLE, Mutant

from sparkonce.protocol import Finish, Proposal, Record
from sparkonce.tck.simulation.memory import MemoryStore


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


class KeepsBesideFirst(MemoryStore):
    def decide(self, decision: Proposal) -> Record:
        self._keep(decision)
        return super().decide(decision)

    def publish(self, decision: Proposal, finish: Finish) -> Record | None:
        self._keep(decision)
        return super().publish(decision, finish)


class KeepsNothingBeside(MemoryStore):
    def _keep(self, _decision: Proposal) -> None:
        pass


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


class WritesLatin1(MemoryStore):
    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        body = new.body.encode("latin-1", "replace").decode("latin-1")
        return super()._swap(name, replace(new, body=body), over, applied)


class FoldsNames(MemoryStore):
    def _read(self, name: str) -> Record:
        return super()._read(name.lower())

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        return super()._swap(name.lower(), new, over, applied)


class ClaimsWholeEpochs(MemoryStore):
    def publish(self, *_: Any) -> None:
        """It says that it publishes whole epochs, and leaves each to `apply`."""


def _refuses(name: str, _: object, /) -> NoReturn:
    raise ConnectionRefusedError(f"[Errno 111] Connection refused ({name})")


RECORD_MUTANTS = [
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
        "an epoch published in pieces",
        "a store that claims whole epochs shows readers one chunk after the other",
        "C13",
        (WHOLE,),
        ClaimsWholeEpochs,
    ),
]
