"""The steps of the protocol in a Redis Cluster: ledger and log in one slot, rows in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import redis

from pyspark_redis import health
from pyspark_redis.cluster.delivery import ClusterDelivery
from pyspark_redis.cluster.lanes import (
    LaneProgress,
    Lanes,
    NodeProgress,
    lane_behind,
    ledger_behind,
)
from pyspark_redis.server.nodes import SLOTS, ClusterSession
from pyspark_redis.store import RedisSteps
from sparkonce.errors import SinkBehindCheckpoint
from sparkonce.exactly_once.ledger import from_record
from sparkonce.health import Finding
from sparkonce.protocol import Finish, Manifest, Proposal, Record

Fault = Callable[[str, int], SinkBehindCheckpoint]


class ClusterStore(RedisSteps):
    """See `sparkonce.store.Store`. No step writes to two slots, so each lane has its own progress.

    Option ``onLostCommit`` decides how to continue after a lane or the ledger lost progress.
    """

    is_cluster = True
    looking = "reading the nodes' settings"

    session: ClusterSession

    def servers(self) -> list[redis.Redis]:
        """See `RedisSteps.servers`. Returns all primaries."""
        return self.session.nodes.primaries()

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        probes = Lanes(self.session, "probe")
        with self.session.asking(self.looking):
            first = {one.address: one.first for one in reversed(self.session.nodes.ranges())}
            for (host, port), slot in sorted(first.items()):
                client = self.session.nodes.of(slot)
                for finding in health.examine(client, probes.of(slot), cluster=True):
                    yield finding._replace(what=f"{host}:{port}: {finding.what}")

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`. Before it removes a record, it forgets the progress of the lanes."""
        if new.revision and over and not (applied or new.token):
            self._learn_what_is_given_up(name, over)
        if not new.revision and over:
            with self.session.asking("forgetting a sink"):
                Lanes(self.session, name).drop(self.session.record(name), over)
        return super().swap(name, new, over, applied)

    def _learn_what_is_given_up(self, name: str, over: str) -> None:
        """Record the progress of a dropped decision, or its rows look like a loss of the ledger."""
        record = self.read(name)
        ledger = from_record(record, name) if record.token and record.stamp == over else None
        if ledger is not None and ledger.decision.manifest is not None:
            self.delivery(ledger.decision.manifest).learn()

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Draws a fence, and checks that no lane has lost earlier epochs."""
        lanes = Lanes(self.session, manifest.sink)
        with self.session.asking("reading the slots of the cluster"):
            accepts_loss, known = self._accepts_loss(manifest), lanes.known()
            states = list(lanes.states(range(SLOTS) if accepts_loss else known.slots))
            if not accepts_loss and (fault := _fault(known, states)):
                self._require_alone(manifest, lanes, fault)
            highest = int(max((max(one.fences) for one in states), default=0))
            fence = lanes.draw(highest)
        return replace(manifest, notes={"fence": fence, "accepts_loss": accepts_loss})

    def _require_alone(self, manifest: Manifest, lanes: Lanes, fault: Fault) -> None:
        """Raise a fault, unless another driver decided an epoch meanwhile, which is not a loss."""
        record = self.read(manifest.sink)
        ledger = from_record(record, manifest.sink)
        if ledger is not None and ledger.decision.manifest is not None:
            return
        if not _fault(lanes.known(), lanes.states(range(SLOTS))):
            return
        if self.read(manifest.sink).stamp == record.stamp:
            raise fault(manifest.sink, manifest.epoch)

    def _accepts_loss(self, manifest: Manifest) -> bool:
        given = self.options["onLostCommit"]
        if given == f"continue@{manifest.epoch}":
            return True
        # Of lost epochs: as long as the ledger ends before them.
        ledger = from_record(self.read(manifest.sink), manifest.sink)
        reached = ledger.decision.epoch if ledger is not None else -1
        return bool(given == f"continue@{reached + 1}-{manifest.epoch - 1}")

    def publish(self, proposal: Proposal, finish: Finish) -> None:
        """See `Store.publish`. Returns None, because no script can write to many slots."""

    def delivery(self, manifest: Manifest) -> ClusterDelivery:
        """See `RedisSteps.delivery`."""
        delivery = ClusterDelivery(self.session, manifest, self.options["maxBadRows"])
        delivery.accepts_loss = delivery.accepts_loss or self._accepts_loss(manifest)
        return delivery


def _fault(known: LaneProgress, nodes: Iterable[NodeProgress]) -> Fault | None:
    """The error for the first lane whose progress differs from the recorded one."""
    for side in known.differing(nodes):
        return lane_behind if side < 0 else ledger_behind
    return None
