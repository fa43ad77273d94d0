"""The protocol's steps in Elasticsearch. See `records` and `log` for the documents they keep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark_elasticsearch import apart, indices, preflight
from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.delivery import Delivery, Means
from pyspark_elasticsearch.log import Log
from pyspark_elasticsearch.records import Records
from sparkonce.protocol import (
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


class ElasticsearchStore:
    """See `sparkonce.protocol.Store`.

    Args:
        cluster: sends each request once.
        own: the connector's own indices.
        plan: what the sink does; None where only the ledgers are looked after.
        options: of today, whatever a manifest says.
    """

    def __init__(
        self,
        cluster: Cluster,
        own: indices.OwnIndices,
        plan: Plan | None,
        options: Mapping[str, Any],
    ) -> None:
        self.cluster, self.indices, self.plan = cluster, own, plan
        self.records, self.log = Records(cluster, own), Log(cluster, own)
        self.dead_letter: str | None = options["deadLetter"]
        self._watch = preflight.Watch(cluster, plan.detail["create"] if plan else None)
        self._means = Means(
            cluster, self.records, self.log, self._watch, self.dead_letter, options["maxBadRows"]
        )
        self._checked = -CHECKED_FOR
        self._delivery: Delivery | None = None

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
        if self.dead_letter is not None:
            indices.ensure(self.cluster, self.dead_letter, "dead_letter")
            preflight.require_safe_index(self.cluster, self.dead_letter)
        self._checked = time.monotonic()

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        return self.records.read(name)

    def swap(self, name: str, new: Record) -> Record:
        """See `Store.swap`."""
        return self.records.swap(name, new)

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
        self.log.append(chunk)

    def staged(self, sink: str) -> list[Staged]:
        """See `Store.staged`."""
        return self.log.attempts(sink, fresh=self.plan is None)

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`."""
        return self.delivery(manifest).prepare()

    def publish(self, decided: Record, finish: Finish, manifest: Manifest) -> None:  # noqa: ARG002
        """See `Store.publish`. Elasticsearch has no transactions."""
        return

    def decide(self, decided: Record, manifest: Manifest) -> Record:
        """See `Store.decide`."""
        return self.delivery(manifest).decide(decided)

    def apply(self, manifest: Manifest, advance: Advance = ignore) -> Applied:
        """See `Store.apply`."""
        if self.plan is None and self.dead_letter is not None:
            self._require_apart(manifest.notes.get("index") or manifest.detail["index"])
        return self.delivery(manifest).apply(advance)

    def delivery(self, manifest: Manifest) -> Delivery:
        """The way of this epoch, from its `prepare` on, or from here; of others nothing is kept."""
        if self._delivery is None or self._delivery.manifest.token != manifest.token:
            self._delivery = Delivery(self._means, manifest)
        return self._delivery

    def discard(self, sink: str, attempts: Sequence[str], over: str | None = None) -> None:
        """See `Store.discard`. Elasticsearch has no transactions: it looks, then drops."""
        if attempts and over in (None, self.read(sink).stamp):
            self.log.drop(sink, attempts, self._delivery.places if self._delivery else ())

    def _require_apart(self, index: str) -> None:
        own = self.indices.ledger, self.indices.log
        apart.require_apart(self.cluster, index, own, self.dead_letter)
