"""Delivers one epoch: prepares and applies it, puts bad rows aside, and shows it to readers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from pyspark_elasticsearch.journal import dead_letters
from pyspark_elasticsearch.journal.dead_letters import DocumentLetter
from pyspark_elasticsearch.journal.log import ChunkPlace, StagedChunk, StagingLog, places
from pyspark_elasticsearch.journal.records import Destination, LedgerRecords
from pyspark_elasticsearch.server.bulk import action, numbered, operations
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.failures import advice, message
from pyspark_elasticsearch.target import aliases
from pyspark_elasticsearch.target.aliases import IndexNames
from pyspark_elasticsearch.write import chunks
from pyspark_elasticsearch.write.chunks import DocumentChunk, begun_script, chunk_name, unpacked
from pyspark_elasticsearch.write.documents import Documents
from pyspark_elasticsearch.write.emptying import empty
from pyspark_elasticsearch.write.preflight import TargetWatch
from pyspark_elasticsearch.write.proof import RefusedDocument
from pyspark_elasticsearch.write.sending import ORDINAL_BITS, PAUSE, Sender
from sparkonce import codec
from sparkonce.codec import FORGET, reading
from sparkonce.delivery import DecisionOver, EpochDelivery
from sparkonce.errors import RowRefused, StoreRefused, StoreUnreachable
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.bad_rows import BEFORE, OF_TASK, MaxBadRows
from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import Manifest
from sparkonce.templates import pattern

MARK_EVERY = 10.0  # seconds after which a long apply records its progress


@dataclass(frozen=True)
class SentChunk:
    """A chunk that was sent, and its rejected operations."""

    place: ChunkPlace
    found: StagedChunk
    chunk: DocumentChunk
    lines: bytes
    refused: list[RefusedDocument]

    @cached_property
    def operations(self) -> list[bytes]:
        """The lines of each operation."""
        return list(operations(self.lines))

    def weight(self, letters: Iterable[str]) -> int:
        """The number of rows of these letters; a letter of a task is one row."""
        return sum(self.rows_of(int(at)) if at.isdigit() else 1 for at in letters)

    def rows_of(self, at: int) -> int:
        """The number of rows of an operation."""
        scripted = chunks.scripted_rows(self.operations[at])
        return len(scripted) if scripted else self.chunk.weight(self.place.rows, at)


class DeadLetterWriter:
    """Writes the bad rows of one epoch to an index of dead letters.

    Without such an index, a new bad row stops the epoch. While no row of the epoch is stored, bad
    rows stay in `held` without a verdict: the index may be at fault, and a verdict is final.
    """

    def __init__(
        self,
        delivery: EpochDelivery[SentChunk],
        log: StagingLog,
        documents: Documents,
        index: str | None,
    ) -> None:
        self.delivery, self.manifest, self.counter = delivery, delivery.manifest, delivery.counter
        self.log, self.documents, self.index = log, documents, index
        self.held: list[SentChunk] = []
        self._partitions = {part.attempt: part.partition for part in self.manifest.parts}

    def take_held(self) -> None:
        """Put aside the rows in `held`."""
        for one in self.held:
            self._put(one)

    def take(self, sent: SentChunk) -> None:
        """Put the bad rows of a chunk aside; `RowRefused` or `TooManyBadRows` if not allowed."""
        # The version of another writer is no fault of the row, so the row stops the epoch.
        for one in sent.refused:
            if one.is_conflict:
                raise self._refusal(one.reason, one)
        # Count first: too many stop the query before any verdict, which would be final.
        self._count(sent)
        if self.counter.in_doubt:
            self.held.append(sent)
        else:
            self._put(sent)

    def _put(self, sent: SentChunk) -> None:
        verdict, place, manifest = self._judge(sent), sent.place, self.manifest
        if verdict:
            # Also letters of earlier tries: a driver may have died between verdict and letter.
            name = chunk_name(place.attempt, place.seq)
            judged = verdict["letters"].items()
            letters = {
                f"{name}{at}.{nth}" if nth else f"{name}{at}": letter
                for at, reason in judged
                for nth, letter in enumerate(self._letters(at, reason, sent))
            }
            partition = self._partitions[place.attempt]
            about = {"sink": manifest.sink, "epoch": manifest.epoch, "partition": partition}
            dead_letters.write(self.log.cluster, verdict["index"], about, letters)

    def _judge(self, sent: SentChunk) -> dict[str, Any]:
        """Write the verdict on a chunk's bad rows, before their letters.

        It is final, even if a later try finds other bad rows.
        """
        found = sent.found
        fresh = {f"c{at}": bad.reason for at, bad in enumerate(sent.chunk.bad)}
        fresh |= {str(one.operation.position): one.reason for one in sent.refused}
        while True:
            new = {at: reason for at, reason in fresh.items() if at not in found.letters}
            if not new:
                # Written again: only that proves that all copies have an earlier verdict.
                if not found.letters or self.log.judge(sent.place, found.verdict, found.guard):
                    return found.verdict
                found = self.log.fetch(sent.place)
                continue
            if self.index is None:
                at, first = next(iter(new.items()))
                refused = (one for one in sent.refused if str(one.operation.position) == at)
                raise self._refusal(first, next(refused, None))
            kept = {at: dead_letters.cut(reason, len(fresh)) for at, reason in new.items()}
            letters = {**found.letters, **kept}
            rows = sent.weight(letters)
            # The index of an earlier verdict stays, as it may already have letters.
            verdict = {"index": self.index, **found.verdict, "letters": letters, "rows": rows}
            if self.log.judge(sent.place, verdict, found.guard):
                return verdict
            found = self.log.fetch(sent.place)  # another driver came first

    def _count(self, sent: SentChunk) -> None:
        found = sent.found
        if found.letters:
            self.counter.add(BEFORE, "", sent.weight(found.letters))
        for at, bad in enumerate(sent.chunk.bad):
            if f"c{at}" not in found.letters:
                self.counter.add(OF_TASK, bad.reason)
        for one in sent.refused:
            why, _ = advice(one.item.status, one.item.error)
            rows = sent.rows_of(one.operation.position)
            self.counter.add(why, message(one.item.error), rows)

    def _letters(self, at: str, reason: str, sent: SentChunk) -> list[DocumentLetter]:
        """The letters of a verdict, with the rows from the chunk."""
        if at.isdigit():
            lines = sent.operations[int(at)]
            found = chunks.dead_letters(reason, lines, self.documents)
            return [DocumentLetter(*self._named(lines), one) for one in found]
        bad = sent.chunk.bad[int(at[1:])]
        return [DocumentLetter(self.documents.index, "", bad._replace(reason=reason))]

    def _named(self, operation: bytes) -> tuple[str, str]:
        """The index and the id of an operation's document."""
        named = action(operation)
        return named.get("_index") or self.manifest.notes["index"], named["_id"]

    def _refusal(self, reason: str, one: RefusedDocument | None) -> RowRefused:
        index, id_, why, todo = "", "", "", "set option onBadRow=deadLetter again"
        if one is not None:
            index, id_ = self._named(one.operation.lines)
            why, todo = advice(one.item.status, one.item.error)
        what = f"The cluster rejected the row with id {id_!r} of index {index}"
        return self.delivery.stopped_by(f"{what}: {reason}", why, todo)


@dataclass(frozen=True)
class DeliveryMeans:
    """The parts of a store that every delivery uses."""

    cluster: Cluster
    records: LedgerRecords
    log: StagingLog
    watch: TargetWatch
    naming: IndexNames
    dead_letter: str | None  # the index of bad rows; None if a bad row stops the epoch
    max_bad_rows: MaxBadRows  # the most bad rows of an epoch


def stale_read(manifest: Manifest, seq: int) -> StoreUnreachable:
    """The error for a chunk that a node does not show, and that the log has."""
    return StoreUnreachable(
        f"A node answered without chunk {seq} of epoch {manifest.epoch}, which the log has"
    )


class Delivery(EpochDelivery[SentChunk]):
    """Delivers one epoch to the target, and keeps the state that only this process has."""

    sender: Sender

    def __init__(
        self, means: DeliveryMeans, manifest: Manifest, since: float | None = None
    ) -> None:
        index = means.dead_letter
        super().__init__(manifest, means.max_bad_rows, f"index {index}" if index else None)
        self.means, self.since = means, since
        with reading(manifest.sink, FORGET):
            self.documents = codec.load(Documents, manifest.detail)
        self.places = places(manifest.sink, manifest.parts)
        # Updates take effect in the order in which they arrive.
        self.width = 1 if self.documents.mode.in_order else means.cluster.parallelism
        self.aside = DeadLetterWriter(self, means.log, self.documents, index)
        self._marked = time.monotonic()
        # The chunks that the target has, and whether one of this try failed.
        self._sent_ones, self._failed = set[int](), False

    @cached_property
    def to(self) -> Destination:
        """The destination of its rows, from the notes of `prepare`."""
        with reading(self.manifest.sink, FORGET):
            return Destination(**self.manifest.notes)

    def prepare(self) -> Manifest:
        """Check the target, draw the fence, and record the current index in the manifest."""
        manifest = self.manifest
        # Without chunks there is nothing to send; but an overwrite without rows empties the target.
        if not (self.places or self.documents.overwrites):
            return manifest
        if len(self.places) >> ORDINAL_BITS:
            raise StoreRefused(
                f"Epoch {manifest.epoch} has {len(manifest.chunks):,} chunks",
                why=f"a document's version has room for {1 << ORDINAL_BITS:,} chunks",
                todo="raise option chunkRows, or limit what a trigger reads",
            )
        index = self.means.watch.require_still_fit(self.documents)
        name, replaces = index.name if index else "", ""
        if self.documents.alias:
            ledger = from_record(self.means.records.read(manifest.sink), manifest.sink)
            once = ledger is not None and ledger.owner.once
            claim = self.means.cluster, self.documents.alias, name, manifest.sink
            aliases.claim(*claim, once=once)
        place = self.documents.index if self.documents.overwrites else name
        self.means.naming.require_one(manifest, place or pattern(self.documents.parts))
        if self.documents.overwrites:
            name, replaces = f"{self.documents.index}-{manifest.token[:16]}", name
        # Queries that use an alias of the index draw from the same counter as others.
        fence = self.means.records.draw(name or manifest.target)
        to = Destination(fence, name, index.since if index else "", replaces)
        return replace(manifest, notes=asdict(to))

    def resume(self) -> int:
        """See `EpochDelivery.resume`."""
        manifest, means, documents = self.manifest, self.means, self.documents
        done, total = self._begun(), len(self.places)
        self._sent_ones = {*range(done or 0)}
        if done is None or not (total or documents.overwrites):
            raise DecisionOver
        if done:
            before = self.places[:done]
            self.counter.resume(sum(place.rows for place in before), means.log.aside(before))
        if total and done >= total:
            return done
        if self.to.replaces and not aliases.make(means.cluster, self.to, documents.index):
            # A later overwrite has replaced that index; a finish still needs all chunks.
            self._advance(total)
            raise DecisionOver
        # A later driver may find another index or pipeline; otherwise `prepare` has just checked.
        if self.since is None:
            index = self.to.index or documents.index
            means.watch.require_still_fit(replace(documents, index=index, overwrites=False))
        self.sender = Sender(
            means.cluster,
            means.records,
            manifest,
            documents,
            self.to,
            # Shortly after `prepare` no other driver can have taken over and sent rows.
            0.0 if self.since is None else self.since + PAUSE,
            has_pipelines=means.watch.has_pipelines,
        )
        return done

    def show(self) -> None:
        """See `EpochDelivery.show`. A superseded decision changes no alias."""
        means, manifest, alias, to = self.means, self.manifest, self.documents.alias, self.to
        if not (alias or to.replaces):
            return
        # A superseded decision would set the filter back, and hide epochs that readers have seen.
        if means.records.progress(manifest.sink, manifest.token) is None:
            return
        if alias:
            aliases.show(means.cluster, alias, manifest.sink, to)
        else:
            aliases.take_over(means.cluster, to, self.documents.index)

    def _begun(self) -> int | None:
        """The number of applied chunks; None if the decision is no longer the last one.

        A primary that the network has cut off shows writes that it cannot replicate and later loses
        ("dirty reads" in Elasticsearch's manual). Rows of such a decision would appear again under
        the next one. So the cluster must acknowledge the decision to this process, or a write on
        top of it.
        """
        if self.since is not None:
            return self.means.records.progress(self.manifest.sink, self.manifest.token)
        return self._advance(0, always=True)

    def _advance(self, reached: int, *, always: bool = False) -> int | None:
        manifest = self.manifest
        return self.means.records.advance(manifest.sink, manifest.token, reached, always=always)

    def apply_chunk(self, ordinal: int) -> SentChunk:
        """See `EpochDelivery.apply_chunk`. Versions and guards keep the order of chunks."""
        try:
            sent = self._sent(ordinal)
        except BaseException:
            self._failed = True
            raise
        self._sent_ones.add(ordinal)
        return sent

    def _sent(self, ordinal: int) -> SentChunk:
        place = self.places[ordinal]
        found = self.means.log.fetch(place)
        if found.payload is None or len(found.payload) != place.size:
            raise self._missing(place, seen=found.payload is not None)
        sender = self.sender
        with reading(place.id):
            chunk, judged, fence = unpacked(found.payload), found.judged, sender.to.fence
        # If several chunks have rows of a key, the last one stays, in any order of arrival.
        version = fence << ORDINAL_BITS | ordinal
        if chunk.emptied:
            self._empty(chunk.emptied, ordinal, version)
        lines = chunk.filled(
            name=chunk_name(place.attempt, place.seq),
            version=version,
            script=begun_script(self.documents, self.manifest.sink, fence, ordinal),
            stamp=aliases.stamp(self.manifest.sink, fence),
        )
        if judged:
            left = [one for one in numbered(lines) if one.position not in judged]
            tried, refused = len(left), sender.settle(left)
        else:
            tried, refused = chunk.operations, sender.send(lines, chunk.operations)
        if tried > len(refused):
            self.counter.stored = True
        return SentChunk(place, found, chunk, lines, refused)

    def _empty(self, indices: Sequence[str], ordinal: int, version: int) -> None:
        """Empty indices once all earlier chunks are sent; other threads send those."""
        while not self._sent_ones.issuperset(range(ordinal)):
            if self._failed:
                raise StoreUnreachable("An earlier chunk of the epoch failed")
            time.sleep(0.01)
        for index in indices:
            for one in empty(self.means.cluster, self.sender, index or self.to.index, version):
                why, todo = advice(one.item.status, one.item.error)
                what = f"A document of index {index or self.to.index} can't be deleted"
                raise self.stopped_by(f"{what}: {one.reason}", why, todo)

    def _missing(self, place: ChunkPlace, *, seen: bool) -> Exception:
        """The error for a missing chunk: lost data, the work of another driver, or a stale read.

        `seen` means that the log has a chunk of another size, or a probe for it.
        """
        # Only a write proves that this read of the ledger is current, or that of the log.
        reached = self._advance(0, always=True)
        if reached is None or reached >= len(self.places):
            return DecisionOver()
        if not seen and self.means.log.exists(place):
            return stale_read(self.manifest, place.seq)
        return conflicts.lost(
            self.manifest,
            place.attempt,
            place.seq,
            why="the cluster lost data, or someone deleted from the connector's log",
            todo="restore the cluster from a snapshot and restart the query; or run `sparkonce"
            " recover` with --accept-loss, which gives up the rest of that epoch",
        )

    def put_aside(self, ordinal: int, chunk: SentChunk) -> None:
        """See `EpochDelivery.put_aside`; a long apply also records its progress."""
        self.aside.take(chunk)
        reached = ordinal + 1
        # `end` records the last chunk once readers see the epoch.
        due = reached < len(self.places) and time.monotonic() - self._marked > MARK_EVERY
        # Bad rows in `held` have no verdict yet, and nobody reads chunks before a mark again.
        if due and not self.aside.held:
            if self._advance(reached) is None:
                raise DecisionOver
            self._marked = time.monotonic()

    def put_aside_held(self) -> None:
        """See `EpochDelivery.put_aside_held`."""
        self.aside.take_held()

    def end(self) -> None:
        """See `EpochDelivery.end`. It warns before the finish: a finished epoch never warns."""
        super().end()
        self._advance(len(self.places))
