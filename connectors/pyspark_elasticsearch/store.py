"""The protocol's steps in Elasticsearch. See `records` and `log` for the documents they keep."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from pyspark_elasticsearch import apart, former, preflight, visibility
from pyspark_elasticsearch.apply import Applier, Gone
from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.dead_letters import DeadLetters
from pyspark_elasticsearch.guarded import SCRIPTED, Outlook
from pyspark_elasticsearch.indices import OwnIndices
from pyspark_elasticsearch.log import Log, Place, places
from pyspark_elasticsearch.records import Aim, Records
from pyspark_elasticsearch.sending import ORDINAL_BITS, PAUSE, Superseded
from pyspark_elasticsearch.watch import Watch
from sparkonce import losses
from sparkonce.bad_rows import MaxBadRows
from sparkonce.errors import StagedDataMissing, StoreLostData, StoreRefused
from sparkonce.lanes import in_order
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Chunk,
    Finish,
    Manifest,
    Plan,
    Record,
    Staged,
    ignore,
)

CHECKED_FOR = 60.0
"""Seconds for which a check of cluster and target holds."""

MARK_EVERY = 10.0
"""Seconds after which a long apply notes how far it has come."""


@dataclass(frozen=True)
class Settings:
    """What today's options say, whatever a manifest says.

    Attributes:
        new_index: settings and mappings of a target that may be made; None if it may not.
    """

    on_conflict: str
    dead_letter: str | None
    max_bad_rows: MaxBadRows
    new_index: Mapping[str, Any] | None


class ElasticsearchStore:
    """See `sparkonce.protocol.Store`.

    Args:
        cluster: sends each request once.
        indices: the connector's own.
        plan: what the sink does; None where only the ledgers are looked after.
        settings: of today.
    """

    def __init__(
        self, cluster: Cluster, indices: OwnIndices, plan: Plan | None, settings: Settings
    ) -> None:
        self.cluster, self.indices, self.plan, self.settings = cluster, indices, plan, settings
        self.records, self.log = Records(cluster, indices), Log(cluster, indices)
        named = settings.dead_letter
        self.dead_letters = (
            DeadLetters(cluster, named, settings.max_bad_rows, create=indices.create)
            if named
            else None
        )
        self._outlook = Outlook(cluster)
        self._checked = -CHECKED_FOR
        self._watch = Watch(cluster, settings.new_index)
        self._prepared = "", 0.0
        self._acknowledged = ""

    def check(self) -> None:
        """Refuse cluster and target, unless they were fit a moment ago."""
        if time.monotonic() - self._checked < CHECKED_FOR:
            return
        preflight.require_fit_server(self.cluster)
        self.indices.ensure()
        preflight.require_safe_indices(self.cluster, [self.indices.ledger, self.indices.log])
        if self.plan is not None:
            self._require_apart(self.plan.detail["index"])
            self._watch.require_fit(self.plan.detail)
        if self.dead_letters is not None:
            self.dead_letters.ensure()
            preflight.require_safe_index(self.cluster, self.dead_letters.index)
        self._checked = time.monotonic()

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        return self.records.read(name)

    def swap(self, name: str, new: Record) -> Record:
        """See `Store.swap`."""
        there = self.records.swap(name, new)
        if there is new:
            self._acknowledged = new.token
        return there

    def doom(self, name: str, new: Record, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. Two steps: Elasticsearch has no transactions."""
        there = self.swap(name, new)
        if there.stamp == new.stamp:
            self.discard(name, attempts, new.stamp)
        return there

    def names(self) -> list[str]:
        """See `Store.names`."""
        return sorted({*self.records.names(), *self.log.sinks()})

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        self.indices.ensure()
        plan = self.plan
        if plan is not None and plan.detail["parts"] and plan.detail["mode"] in SCRIPTED:
            self._outlook.require_fit(chunk)
        self.log.append(chunk)

    def staged(self, sink: str) -> list[Staged]:
        """See `Store.staged`."""
        return self.log.attempts(sink, fresh=self.plan is None)

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Draws the fence, and notes the index that the target is now."""
        if not manifest.chunks:
            return manifest
        if len(manifest.chunks) >> ORDINAL_BITS:
            raise _too_many(manifest)
        self._prepared = manifest.token, time.monotonic() + PAUSE
        return replace(manifest, notes=asdict(self._new_aim(manifest)))

    def publish(self, decided: Record, finish: Finish, manifest: Manifest) -> None:  # noqa: ARG002
        """See `Store.publish`. Elasticsearch has no transactions."""
        return

    def decide(self, decided: Record, manifest: Manifest) -> Record:
        """See `Store.decide`. Elasticsearch has no transactions: it looks, then writes."""
        gone = self.log.missing(places(manifest))
        if gone is not None:
            there = self.read(manifest.sink)
            if there.stamp != decided.replaces:
                return there
            raise _missing(manifest, gone)
        return self.swap(manifest.sink, decided)

    def apply(self, manifest: Manifest, advance: Advance = ignore) -> Applied:
        """See `Store.apply`. Chunks in parallel; versions and guards keep their order."""
        total, (prepared, until) = len(manifest.chunks), self._prepared
        self._prepared = "", 0.0
        done = self._begun(manifest)
        if done is None or not total:
            return ALL_STORED
        former.require_known(manifest)
        applier = Applier(
            self.log,
            self.records,
            manifest,
            self.settings.on_conflict,
            self.dead_letters,
            fresh_until=until if manifest.token == prepared else 0.0,
            piped=self._watch.piped,
        )
        applier.resume(places(manifest)[:done])
        if done >= total:
            return applier.tally.applied
        if manifest.token != prepared:
            at = manifest.notes["index"] or manifest.detail["index"]
            self._watch.require_still_fit({**manifest.detail, "index": at})
        if self.dead_letters is not None and self.plan is None:
            self._require_apart(manifest.notes["index"] or manifest.detail["index"])
        try:
            self._apply_from(done, applier, advance)
        except Superseded:
            return ALL_STORED
        except Gone as gone:
            # Only a write proves that the ledger read here is the present one.
            reached = self.records.advance(manifest.sink, manifest.token, 0, always=True)
            if reached is not None and reached < total:
                raise _lost(manifest, gone.place) from None
            return ALL_STORED
        alias = manifest.detail["visibleAlias"]
        if alias and self.records.progress(manifest.sink, manifest.token) is not None:
            visibility.show(self.cluster, alias, manifest)
        self.records.advance(manifest.sink, manifest.token, total)
        if self.dead_letters is not None:
            applier.tally.warn(f"index {self.dead_letters.index}")
        return applier.tally.applied

    def discard(self, sink: str, attempts: Sequence[str], over: str | None = None) -> None:
        """See `Store.discard`. Elasticsearch has no transactions: it looks, then drops."""
        if attempts and over in (None, self.read(sink).stamp):
            self.log.drop(sink, attempts)

    def _require_apart(self, index: str) -> None:
        own = self.indices.ledger, self.indices.log
        apart.require_apart(self.cluster, index, own, self.settings.dead_letter)

    def _new_aim(self, manifest: Manifest) -> Aim:
        """Draw a fence, and note the index that the target is now."""
        index = self._watch.require_still_fit(manifest.detail)
        if index is None:
            return Aim(self.records.draw(manifest.target), "")
        return Aim(self.records.draw(index.name), index.name, index.since)

    def _begun(self, manifest: Manifest) -> int | None:
        """Chunks of a decision that took effect; None if it is no longer the last one.

        A primary that was cut off from the cluster shows writes that it can't replicate, and that
        will be lost ("dirty reads" in Elasticsearch's manual). Rows sent for such a decision would
        come again under the next one; so, unless the decision itself was acknowledged to this
        process, a write on top of it must be.
        """
        if manifest.token == self._acknowledged:
            return self.records.progress(manifest.sink, manifest.token)
        return self.records.advance(manifest.sink, manifest.token, 0, always=True)

    def _apply_from(self, done: int, applier: Applier, advance: Advance) -> None:
        manifest, marked = applier.manifest, time.monotonic()
        applier.begin(places(manifest))
        for reached, rows in enumerate(self._applied(done, applier), done + 1):
            advance(rows)
            # The end is noted by `apply`, once readers see the epoch.
            if reached < len(manifest.chunks) and time.monotonic() - marked > MARK_EVERY:
                if self.records.advance(manifest.sink, manifest.token, reached) is None:
                    raise Superseded
                marked = time.monotonic()
        applier.end()

    def _applied(self, done: int, applier: Applier) -> Iterator[int]:
        """The rows of each chunk, in order, once it is applied; several are on their way."""
        wanted = enumerate(places(applier.manifest)[done:], done)
        serial = applier.detail["mode"] == "update" or applier.detail["versioning"] == "none"
        width = 1 if serial else self.cluster.parallelism
        steps = (partial(applier.apply, ordinal, place) for ordinal, place in wanted)
        return in_order(steps, width, "sparkonce-apply")


def _missing(manifest: Manifest, place: Place) -> StagedDataMissing:
    why = "someone dropped it, or the cluster lost what was staged"
    return losses.missing(manifest, place.attempt, place.seq, why)


def _lost(manifest: Manifest, place: Place) -> StoreLostData:
    return losses.lost(
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
