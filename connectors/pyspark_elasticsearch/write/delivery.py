"""One epoch on its way into the target: prepared, decided, applied, shown."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from pyspark_elasticsearch.journal.log import Log, Place, places
from pyspark_elasticsearch.journal.records import Destination, Records
from pyspark_elasticsearch.server.bulk import numbered
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.target import replacing, visibility
from pyspark_elasticsearch.target.naming import Naming
from pyspark_elasticsearch.write import names
from pyspark_elasticsearch.write.aside import Aside, Sent
from pyspark_elasticsearch.write.chunks import chunk_name, unpacked
from pyspark_elasticsearch.write.documents import Documents
from pyspark_elasticsearch.write.lines import begun_script
from pyspark_elasticsearch.write.preflight import Watch
from pyspark_elasticsearch.write.sending import ORDINAL_BITS, PAUSE, Sender
from sparkonce import codec
from sparkonce.codec import FORGET, reading
from sparkonce.delivery import DecisionOver, EpochDelivery
from sparkonce.errors import StoreLostData, StoreRefused
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.bad_rows import MaxBadRows
from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import ALL_STORED, Advance, Applied, Manifest

MARK_EVERY = 10.0
"""Seconds after which a long apply notes how far it has come."""


class Gone(Exception):
    """A chunk is not there."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.id)
        self.place = place


@dataclass(frozen=True)
class Means:
    """What every delivery of a store works with.

    Attributes:
        dead_letter: the index of rows that can't be stored; None if one of them stops the epoch.
        max_bad_rows: how many of an epoch may go there.
    """

    cluster: Cluster
    records: Records
    log: Log
    watch: Watch
    naming: Naming
    dead_letter: str | None
    max_bad_rows: MaxBadRows


class Delivery(EpochDelivery[Sent]):
    """Takes one epoch to the target, and keeps what this process alone knows of it.

    Args:
        means: of the store.
        manifest: of the epoch.
        since: see `Store.apply`.
    """

    sender: Sender

    def __init__(self, means: Means, manifest: Manifest, since: float | None = None) -> None:
        index = means.dead_letter
        super().__init__(manifest, means.max_bad_rows, f"index {index}" if index else None)
        self.means, self.since = means, since
        with reading(manifest.sink, FORGET):
            self.documents = codec.load(Documents, manifest.detail)
        self.places = places(manifest.sink, manifest.parts)
        # The changes of updates have no order but that in which they come.
        self.width = 1 if self.documents.way.in_order else means.cluster.parallelism
        self.aside = Aside(self, means.log, self.documents, index)
        self._marked = time.monotonic()

    @cached_property
    def to(self) -> Destination:
        """Where its rows go, as `prepare` has noted it."""
        with reading(self.manifest.sink, FORGET):
            return Destination(**self.manifest.notes)

    def prepare(self) -> Manifest:
        """Draw the fence, and note the index that the target is now.

        Raises:
            StoreRefused: it has too many chunks, or the target is not fit any more.
        """
        manifest = self.manifest
        # Nothing is sent without a chunk; but an overwrite by no rows leaves none.
        if not (self.places or self.documents.overwrites):
            return manifest
        if len(self.places) >> ORDINAL_BITS:
            raise _too_many(manifest)
        index = self.means.watch.require_still_fit(self.documents)
        name, replaces = index.name if index else "", ""
        self._claim(name)
        place = self.documents.index if self.documents.overwrites else name
        self.means.naming.require_one(manifest, place or names.pattern(self.documents.parts))
        if self.documents.overwrites:
            name, replaces = replacing.successor(self.documents.index, manifest.token), name
        # Queries that name the index by an alias draw from the same counter as others.
        fence = self.means.records.draw(name or manifest.target)
        to = Destination(fence, name, index.since if index else "", replaces)
        return replace(manifest, notes=asdict(to))

    def _claim(self, index: str) -> None:
        """See that readers will be shown this epoch, if they see epochs as a whole."""
        if self.documents.alias:
            cluster, sink = self.means.cluster, self.manifest.sink
            ledger = from_record(self.means.records.read(sink), sink)
            once = ledger is not None and ledger.owner.once
            visibility.claim(cluster, self.documents, index, sink, once=once)

    def apply(self, advance: Advance) -> Applied:
        """See `Store.apply`. Chunks in parallel; versions and guards keep their order."""
        try:
            return super().apply(advance)
        except Gone as gone:
            # Only a write proves that the ledger read here is the present one.
            reached = self._advance(0, always=True)
            if reached is not None and reached < len(self.places):
                raise _lost(self.manifest, gone.place) from None
            # Else another driver has applied all of it, and dropped the chunks.
            return ALL_STORED

    def resume(self) -> int:
        """See `EpochDelivery.resume`."""
        manifest, means, documents = self.manifest, self.means, self.documents
        done, total = self._begun(), len(self.places)
        if done is None or not (total or documents.overwrites):
            raise DecisionOver
        if done:
            before = self.places[:done]
            self.counter.resume(sum(place.rows for place in before), means.log.aside(before))
        if total and done >= total:
            return done
        if self.to.replaces and not replacing.make(means.cluster, self.to, documents.index):
            # A later overwrite took that index's place; a finish asks for all chunks all the same.
            self._advance(total)
            raise DecisionOver
        # Whoever goes on may find another index, or pipeline; else `prepare` has just looked.
        if self.since is None:
            means.watch.require_still_fit(self._behind(self.to))
        self.sender = Sender(
            means.cluster,
            means.records,
            manifest,
            documents,
            self.to,
            # For a while since it was prepared nobody can have taken over, and nothing was sent.
            0.0 if self.since is None else self.since + PAUSE,
            piped=means.watch.piped,
        )
        return done

    def _behind(self, to: Destination) -> Documents:
        """The documents in the index where those of this decision go."""
        return replace(self.documents, index=to.index or self.documents.index, overwrites=False)

    def show(self) -> None:
        """See `EpochDelivery.show`. Nothing is shown of a decision that another one followed."""
        means, manifest, alias, to = self.means, self.manifest, self.documents.alias, self.to
        if not (alias or to.replaces):
            return
        # Overtaken, it would set the filter back, and hide epochs that readers have seen.
        if means.records.progress(manifest.sink, manifest.token) is None:
            return
        if alias:
            visibility.show(means.cluster, alias, manifest.sink, to)
        else:
            replacing.take_over(means.cluster, to, self.documents.index)

    def _begun(self) -> int | None:
        """Chunks that took effect; None if the decision is no longer the last one.

        A primary that was cut off from the cluster shows writes that it can't replicate, and that
        will be lost ("dirty reads" in Elasticsearch's manual). Rows sent for such a decision would
        come again under the next one; so, unless the decision itself was acknowledged to this
        process, a write on top of it must be.
        """
        if self.since is not None:
            return self.means.records.progress(self.manifest.sink, self.manifest.token)
        return self._advance(0, always=True)

    def _advance(self, reached: int, *, always: bool = False) -> int | None:
        manifest = self.manifest
        return self.means.records.advance(manifest.sink, manifest.token, reached, always=always)

    def apply_chunk(self, ordinal: int) -> Sent:
        """See `EpochDelivery.apply_chunk`."""
        place = self.places[ordinal]
        found = self.means.log.fetch(place)
        if found.payload is None or len(found.payload) != place.size:
            raise Gone(place)
        sender = self.sender
        with reading(place.id):
            chunk, judged, fence = unpacked(found.payload), found.judged, sender.to.fence
        lines = chunk.filled(
            name=chunk_name(place.attempt, place.seq),
            # Of a key's rows in several chunks the last one stays, in whatever order they arrive.
            version=fence << ORDINAL_BITS | ordinal,
            script=begun_script(self.documents.way, self.manifest.sink, fence, ordinal),
            stamp=visibility.stamp(self.manifest.sink, fence),
        )
        if judged:
            left = [one for one in numbered(lines) if one.position not in judged]
            tried, refused = len(left), sender.settle(left)
        else:
            tried, refused = chunk.operations, sender.send(lines, chunk.operations)
        if tried > len(refused):
            self.counter.stored = True
        return Sent(place, found, chunk, lines, refused)

    def put_aside(self, ordinal: int, chunk: Sent) -> None:
        """See `EpochDelivery.put_aside`; a long apply notes from time to time how far it is."""
        self.aside.take(chunk)
        reached = ordinal + 1
        # The end is noted once readers see the epoch.
        due = reached < len(self.places) and time.monotonic() - self._marked > MARK_EVERY
        # Held bad rows are not noted yet, and chunks before a mark are not looked at again.
        if due and not self.aside.held:
            if self._advance(reached) is None:
                raise DecisionOver
            self._marked = time.monotonic()

    def put_aside_held(self) -> None:
        """See `EpochDelivery.put_aside_held`."""
        self.aside.take_held()

    def end(self) -> None:
        """See `EpochDelivery.end`. Warned of first: nobody says it any more once all is done."""
        super().end()
        self._advance(len(self.places))


def _lost(manifest: Manifest, place: Place) -> StoreLostData:
    return conflicts.lost(
        manifest,
        place.attempt,
        place.seq,
        why="the cluster lost data, or someone deleted from the connector's log",
        todo="restore the cluster from a snapshot and restart the query; or run `sparkonce recover`"
        " with --accept-loss, which leaves the rest of that epoch out",
    )


def _too_many(manifest: Manifest) -> StoreRefused:
    return StoreRefused(
        f"Epoch {manifest.epoch} has {len(manifest.chunks):,} chunks",
        why=f"a document's version has room for {1 << ORDINAL_BITS:,}",
        todo="raise option chunkRows, or limit what a trigger reads",
    )
