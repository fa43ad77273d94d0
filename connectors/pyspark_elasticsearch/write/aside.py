"""Rows of a decided epoch that can't be stored: counted, noted, written as dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark_elasticsearch.journal import dead_letters
from pyspark_elasticsearch.journal.dead_letters import Addressed, Verdict
from pyspark_elasticsearch.journal.log import Found, Log, Place
from pyspark_elasticsearch.server.bulk import operations
from pyspark_elasticsearch.server.failures import advice, message
from pyspark_elasticsearch.write import letters
from pyspark_elasticsearch.write.chunks import Chunk, chunk_name
from pyspark_elasticsearch.write.documents import Documents
from pyspark_elasticsearch.write.sending import Refusal
from sparkonce.delivery import EpochDelivery
from sparkonce.errors import RowRefused
from sparkonce.exactly_once.bad_rows import BEFORE, OF_TASK


@dataclass(frozen=True)
class Sent:
    """A chunk as it was found and sent, and what of its lines can't be done."""

    place: Place
    found: Found
    chunk: Chunk
    lines: bytes
    refused: list[Refusal]

    @cached_property
    def operations(self) -> list[bytes]:
        """The lines of each operation."""
        return list(operations(self.lines))

    def weight(self, letters: Iterable[str]) -> int:
        """The rows that letters stand for; those that a task has put aside stand for themselves."""
        return sum(
            self.chunk.weight(self.place.rows, int(at)) if at.isdigit() else 1 for at in letters
        )


class Aside:
    """Takes the bad rows of one epoch.

    Args:
        delivery: of the epoch.
        log: holds the verdicts on its rows.
        documents: of its plan.
        index: of dead letters; None if a bad row stops the epoch that was not noted before.

    Attributes:
        held: chunks with bad rows that are not noted yet: as long as none is stored it may be the
            index that is at fault, and what is noted is final.
    """

    def __init__(
        self, delivery: EpochDelivery[Sent], log: Log, documents: Documents, index: str | None
    ) -> None:
        self.delivery, self.manifest, self.counter = delivery, delivery.manifest, delivery.counter
        self.log, self.documents, self.index = log, documents, index
        self.held: list[Sent] = []
        self._partitions = {part.attempt: part.partition for part in self.manifest.parts}

    def take_held(self) -> None:
        """Put aside what was held."""
        for one in self.held:
            self._put(one.place, one.found, one)

    def take(self, sent: Sent) -> None:
        """Put the bad rows of a chunk aside.

        Raises:
            RowRefused: a row must not go aside.
            TooManyBadRows: too many would.
        """
        place, found = sent.place, sent.found
        # A version of another writer's is no fault of the row, which must not be put aside for it.
        for one in sent.refused:
            if one.is_conflict:
                raise self._refusal(self._verdict(one), one)
        # Counted first: too many stop the query before any is noted, and a note is final.
        self._count(found, sent)
        if self.counter.in_doubt:
            self.held.append(sent)
        else:
            self._put(place, found, sent)

    def _put(self, place: Place, found: Found, sent: Sent) -> None:
        verdict = self._noted(place, found, sent)
        if verdict:
            # Letters of earlier tries, too: a driver may have died between note and letter.
            self._write(place, verdict["index"], verdict["letters"], sent)

    def _noted(self, place: Place, found: Found, sent: Sent) -> dict[str, Any]:
        """What is noted of a chunk's bad rows, before anything else is done about them.

        It is final, whatever a later try would find.
        """
        fresh = {f"c{at}": Verdict("", "", bad.reason) for at, bad in enumerate(sent.chunk.bad)}
        fresh |= {str(one.operation.position): self._verdict(one) for one in sent.refused}
        while True:
            new = {at: one for at, one in fresh.items() if at not in found.letters}
            if not new:
                return found.verdict
            if self.index is None:
                at, first = next(iter(new.items()))
                said = (one for one in sent.refused if str(one.operation.position) == at)
                raise self._refusal(first, next(said, None))
            kept = {at: one.cut(len(fresh)) for at, one in new.items()}
            letters = {**found.letters, **kept}
            rows = sent.weight(letters)
            # An index that was noted before stays: letters are already there, perhaps.
            verdict = {"index": self.index, **found.verdict, "letters": letters, "rows": rows}
            if self.log.judge(place, verdict, found.guard):
                return verdict
            found = self.log.fetch(place)  # another driver was first

    def _write(
        self, place: Place, index: str, verdicts: dict[str, Sequence[str]], sent: Sent
    ) -> None:
        name, manifest = chunk_name(place.attempt, place.seq), self.manifest
        named = {f"{name}{at}": self._letter(at, one, sent) for at, one in verdicts.items()}
        partition = self._partitions[place.attempt]
        about = {"sink": manifest.sink, "epoch": manifest.epoch, "partition": partition}
        dead_letters.write(self.log.cluster, index, about, named)

    def _count(self, found: Found, sent: Sent) -> None:
        if found.letters:
            self.counter.add(BEFORE, "", sent.weight(found.letters))
        for at, bad in enumerate(sent.chunk.bad):
            if f"c{at}" not in found.letters:
                self.counter.add(OF_TASK, bad.reason)
        for one in sent.refused:
            why, _ = advice(one.item.status, one.item.error)
            rows = sent.chunk.weight(sent.place.rows, one.operation.position)
            self.counter.add(why, message(one.item.error), rows)

    def _verdict(self, one: Refusal) -> Verdict:
        return letters.of_refusal(one, self.manifest.notes["index"])

    def _letter(self, at: str, judged: Sequence[str], sent: Sent) -> Addressed:
        """The letter that a verdict is about: what the row holds, the chunk knows."""
        verdict, documents = Verdict(*judged[:3]), self.documents
        if not at.isdigit():
            return Addressed(verdict._replace(place=documents.index), sent.chunk.bad[int(at[1:])])
        lines = sent.operations[int(at)]
        return Addressed(verdict, letters.of_lines(verdict.reason, lines, documents))

    def _refusal(self, verdict: Verdict, one: Refusal | None) -> RowRefused:
        why, todo = "", "set option onBadRow=deadLetter again"
        if one is not None:
            why, todo = advice(one.item.status, one.item.error)
        what = f"Elasticsearch refused the row with id {verdict.id!r} of index {verdict.place}"
        return self.delivery.stopped_by(f"{what}: {verdict.reason}", why, todo)
