"""The steps of the protocol on one Redis server; one script writes ledger, log and rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import redis

from pyspark_redis import health
from pyspark_redis.journal.dead_letters import LetterBox, letterboxes
from pyspark_redis.journal.journal import Journal
from pyspark_redis.server import preflight
from pyspark_redis.server.session import RedisSession
from pyspark_redis.write.delivery import Delivery, RedisDelivery
from sparkonce.health import Finding
from sparkonce.options import Options
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Finish,
    Manifest,
    P,
    Proposal,
    Record,
    no_progress,
)


class RedisSteps(Journal):
    """What a single server and a cluster share; see `sparkonce.store.Store`.

    `options` are the current options; a decided epoch keeps the options of its decision.
    """

    is_cluster = False
    looking = "reading the server's settings"

    def __init__(self, session: RedisSession, options: Options) -> None:
        super().__init__(session)
        self.options, name = options, options["deadLetter"]
        self.dead_letters = LetterBox(session, name) if name else None

    @abstractmethod
    def delivery(self, manifest: Manifest) -> RedisDelivery:
        """The delivery that applies a decision to the target."""

    def servers(self) -> list[redis.Redis]:
        """Clients of the servers that `check` examines."""
        return [self.session.client]

    def check(self, plan: P) -> P:
        """Reject a server that could lose the ledger, or rows that expire."""
        expiring = plan is not None and plan.detail.expires
        with self.session.asking(self.looking):
            for client in self.servers():
                preflight.require_fit(client, expiring=expiring, cluster=self.is_cluster)
            if self.dead_letters:
                self.dead_letters.require_fit()
        return plan

    def letterboxes(self) -> list[LetterBox]:
        """See `sparkonce.letterbox.KeepsLetters`."""
        return letterboxes(self.session, self.dead_letters)

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`."""
        return self.delivery(proposal.manifest).decide(proposal)

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = no_progress,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`."""
        return self.delivery(manifest).apply(advance)


class RedisStore(RedisSteps):
    """See `sparkonce.store.Store`."""

    small_cost = 48_000
    """The most cost (`PlanDetail.cost`) that one script publishes: blocks the server < 20 ms."""

    def delivery(self, manifest: Manifest) -> Delivery:
        """See `RedisSteps.delivery`."""
        return Delivery(self.session, manifest, self.options["maxBadRows"])

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        with self.session.asking(self.looking):
            yield from health.examine(self.session.client, self.session.key("probe"))

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. A single server needs no preparation."""
        return manifest

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        """See `Store.publish`. One script, if the epoch is small."""
        delivery = self.delivery(proposal.manifest)
        if not delivery.fits_one_step(self.small_cost):
            return None
        return delivery.publish(proposal, finish(ALL_STORED))
