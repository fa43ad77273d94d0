"""Redis behind Sentinel: a primary and two replicas, with a Sentinel on each machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

from integration.support.servers.redis import (
    SERVICE,
    RedisProcess,
    SentinelProcess,
    connect,
    version_at,
)
from tools.chaos.redis import DURABLE, RedisTarget
from tools.partitions.cluster import Cluster
from tools.partitions.network import Network
from tools.partitions.plan import CLOCK

OPEN = ("protected-mode no",)
NO_CLOCK = "Debian's redis-server, with jemalloc, does not start under libfaketime"
QUORUM = 2
CONFIRMED = ("min-replicas-to-write 1", "min-replicas-max-lag 10")
WAIT = "`waitReplicas` to the number of replicas"


class SentinelCluster(RedisTarget, Cluster):
    """Three machines. Every write of an epoch waits for `replicas` of the two others."""

    machines = "n1", "n2", "n3"
    skipped: ClassVar = {CLOCK: NO_CLOCK}
    replicas = 0
    config: tuple[str, ...] = ()

    def __init__(self, network: Network, home: Path) -> None:
        Cluster.__init__(self, network, home)
        first: RedisProcess | None = None
        self.redis: dict[str, RedisProcess] = {}
        self.sentinels: dict[str, SentinelProcess] = {}
        for name in self.machines:
            own = (*OPEN, *DURABLE, *self.config, f'dir "{self.disks[name].home}"')
            follows = (f"replicaof {first.host} {first.port}",) if first else ()
            server = RedisProcess(*own, *follows, place=self.place(name))
            first = first or server
            sentinel = SentinelProcess(first, *OPEN, quorum=QUORUM, place=self.place(name))
            self.redis[name], self.sentinels[name] = server, sentinel
            self.servers[name] = [server, sentinel]

    @property
    def url(self) -> str:
        return self.redis[self.leader()].url

    @property
    def sink_url(self) -> str:
        doors = ",".join(f"{one.host}:{one.port}" for one in self.sentinels.values())
        return f"redis+sentinel://{doors}/{SERVICE}/0"

    @property
    def version(self) -> str:
        return f"{version_at(self.redis['n1'].url)}, 3 Sentinels, a primary, 2 replicas"

    def options(self, query: str) -> dict[str, str]:
        return {**super().options(query), "waitReplicas": str(self.replicas)}

    def leader(self) -> str:
        votes = Counter(filter(None, map(self._vote, self.machines)))
        return votes.most_common(1)[0][0] if votes else self.machines[0]

    def is_whole(self) -> bool:
        leader = self.leader()
        linked = 0
        for name in self.machines:
            with connect(self.redis[name].url) as client:
                role = client.execute_command("ROLE")
            linked += role[0] == b"slave" and role[3] == b"connected"
        return linked == len(self.machines) - 1 and {*map(self._vote, self.machines)} == {leader}

    def _vote(self, name: str) -> str | None:
        """The machine of the primary, as the Sentinel of a machine sees it."""
        try:
            with connect(self.sentinels[name].url) as client:
                host, _ = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        except Exception:
            return None
        return next(one for one in self.machines if self.redis[one].host == host.decode())


class AsyncSentinel(SentinelCluster):
    """Replicas receive writes when they do: a failover loses what they lack."""

    name, loses = "redis-sentinel-async", True
    settings = "`waitReplicas` 0, `min-replicas-to-write` 0"
    advice = WAIT


class OneSentinel(SentinelCluster):
    """Every epoch is done once one of two replicas has it; the other one may take over."""

    name, replicas, loses = "redis-sentinel-one", 1, True
    config = CONFIRMED
    settings = "`waitReplicas` 1 of 2, `min-replicas-to-write` 1"
    advice = WAIT


class SafeSentinel(SentinelCluster):
    """Every epoch is done once both replicas have it, so each of them may take over."""

    name, replicas = "redis-sentinel", 2
    config = CONFIRMED
    settings = "`waitReplicas` 2 of 2, `min-replicas-to-write` 1"
