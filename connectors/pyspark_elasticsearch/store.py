"""The steps of the protocol in Elasticsearch. `records` and `log` have the documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark_elasticsearch import health
from pyspark_elasticsearch.journal import dead_letters, indices
from pyspark_elasticsearch.journal.log import StagingLog, places
from pyspark_elasticsearch.journal.records import LedgerRecords
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.target.aliases import IndexNames
from pyspark_elasticsearch.write import fitness, preflight
from pyspark_elasticsearch.write.delivery import Delivery, DeliveryMeans, stale_read
from pyspark_elasticsearch.write.documents import Documents
from sparkonce.exactly_once import conflicts
from sparkonce.health import Finding
from sparkonce.protocol import (
    Advance,
    Applied,
    Finish,
    Manifest,
    P,
    Part,
    Plan,
    Proposal,
    Record,
    no_progress,
)

CHECKED_FOR = 60.0  # seconds for which a check of cluster and target holds


class ElasticsearchStore:
    """See `sparkonce.store.Store`. Current options apply, also to older manifests."""

    def __init__(
        self, cluster: Cluster, own: indices.OwnIndices, options: Mapping[str, Any]
    ) -> None:
        self.cluster, self.indices = cluster, own
        self.records = records = LedgerRecords(cluster, own)
        self.log = log = StagingLog(cluster, own)
        self.read, self.swap = records.read, records.swap
        self.unfinished, self.decided_after = records.unfinished, records.decided_after
        self.stage, self.staged = log.append, log.attempts
        self.dead_letter: str | None = options["deadLetter"]
        self._watch = preflight.TargetWatch(cluster)
        self._means = DeliveryMeans(
            cluster,
            records,
            log,
            self._watch,
            IndexNames(records),
            self.dead_letter,
            options["maxBadRows"],
        )
        self._checked = -CHECKED_FOR

    def check(self, plan: P) -> P:
        """Check cluster and target, unless they passed a moment ago."""
        # `prepare` checks the target again before each decision.
        if time.monotonic() - self._checked >= CHECKED_FOR:
            self._require_fit(plan)
            self._checked = time.monotonic()
        return plan

    def _require_fit(self, plan: Plan[Documents] | None) -> None:
        self.cluster.require_fit()
        self.indices.ensure()
        preflight.require_safe_indices(self.cluster, [self.indices.ledger, self.indices.log])
        if plan is not None:
            self._require_apart(plan.detail.index)
            self._watch.require_fit(plan.detail)
        if self.dead_letter is not None:
            indices.ensure(self.cluster, self.dead_letter, "dead_letter")
            safe = fitness.require_safe
            preflight.require_safe_indices(self.cluster, [self.dead_letter], safe)

    def letterboxes(self) -> list[dead_letters.LetterBox]:
        """See `sparkonce.letterbox`."""
        if self.dead_letter is not None:
            return [dead_letters.LetterBox(self.cluster, self.dead_letter)]
        return list(dead_letters.boxes(self.cluster))

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        return health.examine(self.cluster, self.indices)

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. It takes two steps, as Elasticsearch has no transactions."""
        there = self.swap(name, new, over)
        if there.stamp == new.stamp:
            self.discard(name, attempts, new.stamp)
        return there

    def names(self) -> list[str]:
        """See `Store.names`."""
        return sorted({*self.records.names(), *self.log.sinks()})

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`."""
        return Delivery(self._means, manifest).prepare()

    def publish(self, proposal: Proposal, finish: Finish) -> None:  # noqa: ARG002
        """See `Store.publish`. Elasticsearch has no transactions."""
        return

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`. Without transactions, it reads and then writes."""
        manifest = proposal.manifest
        gone = self.log.missing(places(manifest.sink, manifest.parts))
        if gone is None:
            return self.records.decide(proposal)
        # The winner of a race may have dropped these chunks; then no data is lost.
        there = self.read(manifest.sink)
        if there.stamp != proposal.over:
            return there
        if self.log.exists(gone):
            raise stale_read(manifest, gone.seq)
        why = "someone dropped it, or the cluster lost staged chunks"
        raise conflicts.missing(manifest, gone.attempt, gone.seq, why)

    def apply(
        self, manifest: Manifest, advance: Advance = no_progress, since: float | None = None
    ) -> Applied:
        """See `Store.apply`."""
        delivery = Delivery(self._means, manifest, since)
        # `recover` may be the first run with option deadLetter.
        if since is None and self.dead_letter is not None:
            self._require_apart(manifest.notes.get("index") or delivery.documents.index)
        return delivery.apply(advance)

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        """See `Store.discard`. Without transactions, it reads and then drops."""
        if attempts and over in (None, self.read(sink).stamp):
            self.log.drop(sink, attempts, places(sink, parts))

    def _require_apart(self, index: str) -> None:
        own = self.indices.ledger, self.indices.log
        preflight.require_apart(self.cluster, index, own, self.dead_letter)
