"""Rows of a decided epoch that can't be stored: counted, noted, written as dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from sparkonce.errors import RowRefused
from sparkonce.exactly_once.bad_rows import (
    ALL,
    BEFORE,
    OF_TASK,
    BadRowCounter,
    MaxBadRows,
    TooManyBadRows,
)
from sparkonce.protocol import Manifest


@dataclass(frozen=True)
class Sent:
    """A chunk of so many rows, its lines as they were sent, and what of them can't be done."""

    rows: int
    chunk: Chunk
    lines: bytes
    refused: list[Refusal]

    @cached_property
    def operations(self) -> list[bytes]:
        """The lines of each operation."""
        return list(operations(self.lines))

    def weight(self, letters: Iterable[str]) -> int:
        """The rows that letters stand for; those that a task has put aside stand for themselves."""
        return sum(self.chunk.weight(self.rows, int(at)) if at.isdigit() else 1 for at in letters)


class Aside:
    """Takes the bad rows of one epoch; it may be used by several threads.

    Args:
        log: holds the verdicts on its rows.
        manifest: of the epoch.
        documents: of its plan.
        index: of dead letters; None if a bad row stops the epoch that was not noted before.
        most: how many rows may go there.

    Attributes:
        held: chunks with bad rows that are not noted yet: as long as none is stored it may be the
            index that is at fault, and what is noted is final.
    """

    def __init__(
        self,
        log: Log,
        manifest: Manifest,
        documents: Documents,
        index: str | None,
        most: MaxBadRows,
    ) -> None:
        self.log, self.manifest, self.documents, self.index = log, manifest, documents, index
        # Without an index a new bad row stops the epoch, and noted ones, however many, only count.
        self.tally = BadRowCounter(ALL if index is None else most, manifest)
        self.held: list[tuple[Place, Found, Sent]] = []
        self._partitions = {part.attempt: part.partition for part in manifest.parts}

    def resume(self, done: Sequence[Place]) -> None:
        """Count the bad rows of chunks that were applied before."""
        if done:
            self.tally.resume(sum(place.rows for place in done), self.log.aside(done))

    def end(self) -> None:
        """See `BadRowCounter.end`.

        Raises:
            RowRefused: of this epoch, too, no row is stored.
        """
        with self._few():
            self.tally.end()
        for one in self.held:
            self._put(*one)

    def warn(self) -> None:
        """Say once an epoch what has gone aside."""
        self.tally.warn(f"index {self.index}" if self.index else "an index of dead letters")

    def take(self, place: Place, found: Found, sent: Sent) -> None:
        """Put the bad rows of a chunk aside.

        Raises:
            RowRefused: a row must not go aside, or too many would.
        """
        # A version of another writer's is no fault of the row, which must not be put aside for it.
        for one in sent.refused:
            if one.is_conflict:
                raise self._refusal(self._verdict(one), one)
        # Counted first: too many stop the query before any is noted, and a note is final.
        with self._few():
            self._count(found, sent)
        if self.tally.in_doubt:
            self.held.append((place, found, sent))
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

    @contextmanager
    def _few(self) -> Iterator[None]:
        try:
            yield
        except TooManyBadRows as error:
            raise RowRefused(
                f"{error.what}. Epoch {self.manifest.epoch} stays decided; other rows of it may"
                " have taken effect",
                error.why,
                error.todo,
            ) from None

    def _count(self, found: Found, sent: Sent) -> None:
        if found.letters:
            self.tally.add(BEFORE, "", sent.weight(found.letters))
        for at, bad in enumerate(sent.chunk.bad):
            if f"c{at}" not in found.letters:
                self.tally.add(OF_TASK, bad.reason)
        for one in sent.refused:
            why, _ = advice(one.item.status, one.item.error)
            rows = sent.chunk.weight(sent.rows, one.operation.position)
            self.tally.add(why, message(one.item.error), rows)

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
        return RowRefused(
            f"Elasticsearch refused the row with id {verdict.id!r} of index {verdict.place}:"
            f" {verdict.reason}. Epoch {self.manifest.epoch} stays decided; other rows of it may"
            " have taken effect",
            why,
            f"{todo}; then restart the query, or run `sparkonce recover`: it goes on where it"
            " stopped, and doubles nothing",
        )
