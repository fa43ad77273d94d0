"""The protocol's steps in a Redis Cluster: ledger and log in one slot, rows and progress in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from pyspark_redis import health
from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.cluster.lanes import Known, Lanes, State
from pyspark_redis.journal.dead_letters import DeadLetters
from pyspark_redis.server.nodes import ClusterSession
from pyspark_redis.server.slots import SLOTS
from pyspark_redis.store import RedisStore
from pyspark_redis.write import preflight, refusals
from sparkonce.errors import SinkBehindCheckpoint
from sparkonce.exactly_once.bad_rows import NONE, MaxBadRows
from sparkonce.exactly_once.ledger import from_record
from sparkonce.health import Finding
from sparkonce.protocol import Manifest, P, Record

Fault = Callable[[str, int], SinkBehindCheckpoint]


class LaneStore(RedisStore):
    """See `RedisStore`; what differs is where rows go.

    Args:
        session: of the cluster.
        dead_letters: as there.
        most: as there.
        on_lost_commit: option ``onLostCommit``.
    """

    session: ClusterSession

    def __init__(
        self,
        session: ClusterSession,
        dead_letters: DeadLetters | None = None,
        most: MaxBadRows = NONE,
        on_lost_commit: str | None = None,
    ) -> None:
        super().__init__(session, dead_letters, most)
        self.on_lost_commit = on_lost_commit

    def check(self, plan: P) -> P:
        """Refuse a node that could lose the ledger, or rows that expire."""
        expiring = plan is not None and plan.detail.expires
        with self.session.asking("asking the nodes for their settings"):
            for client in self.session.nodes.primaries():
                preflight.require_fit(client, expiring=expiring, cluster=True)
            if self.dead_letters:
                self.dead_letters.require_fit()
        return plan

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        probes = Lanes(self.session, "probe")
        with self.session.asking("asking the nodes for their settings"):
            first = {one.address: one.first for one in reversed(self.session.nodes.ranges())}
            for (host, port), slot in sorted(first.items()):
                client = self.session.nodes.of(slot)
                for finding in health.examine(client, probes.of(slot), cluster=True):
                    yield finding._replace(what=f"{host}:{port}: {finding.what}")

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`. Before a record goes what lanes have seen of its sink."""
        if new.revision and over and not (applied or new.token):
            self._learn_what_is_given_up(name, over)
        if not new.revision and over:
            with self.session.asking("forgetting a sink"):
                Lanes(self.session, name).drop(self.session.record(name), over)
        return super().swap(name, new, over, applied)

    def _learn_what_is_given_up(self, name: str, over: str) -> None:
        """Or what lanes have of it would look as if the ledger had lost it."""
        record = self.read(name)
        ledger = from_record(record, name) if record.token and record.stamp == over else None
        if ledger is not None and ledger.decision.manifest is not None:
            self._delivery(ledger.decision.manifest).learn()

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Draws a fence, and sees that all lanes have what came before.

        Raises:
            SinkBehindCheckpoint: a node has lost what it had acknowledged.
        """
        lanes = Lanes(self.session, manifest.sink)
        with self.session.asking("looking at the slots of the cluster"):
            goes_on, known = self._goes_on(manifest), lanes.known()
            states = list(lanes.states(range(SLOTS) if goes_on else known.slots))
            if not goes_on and (fault := _fault(known, states)):
                self._require_alone(manifest, lanes, fault)
            highest = int(max((max(one.fences) for one in states), default=0))
            fence = lanes.draw(highest)
        return replace(manifest, notes={"fence": fence, "goes_on": goes_on})

    def _require_alone(self, manifest: Manifest, lanes: Lanes, fault: Fault) -> None:
        """Raise a fault, unless another driver has decided an epoch meanwhile: that is no loss."""
        record = self.read(manifest.sink)
        ledger = from_record(record, manifest.sink)
        if ledger is not None and ledger.decision.manifest is not None:
            return
        if not _fault(lanes.known(), lanes.states(range(SLOTS))):
            return
        if self.read(manifest.sink).stamp == record.stamp:
            raise fault(manifest.sink, manifest.epoch)

    def _goes_on(self, manifest: Manifest) -> bool:
        return self.on_lost_commit == f"continue@{manifest.epoch}"

    def _delivery(self, manifest: Manifest) -> ClusterDelivery:
        delivery = ClusterDelivery(self.session, manifest, self.most)
        delivery.goes_on = delivery.goes_on or self._goes_on(manifest)
        return delivery


def _fault(known: Known, states: Iterable[State]) -> Fault | None:
    """What is said of the first lane that has seen something else than is known."""
    for side in known.differing(states):
        return refusals.lane_behind if side < 0 else refusals.ledger_behind
    return None
