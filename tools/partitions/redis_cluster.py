"""A Redis Cluster: three primaries and three replicas, one on each machine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from integration.support.servers.redis_cluster import Node, RedisCluster, new_node
from tools.chaos.redis import DURABLE
from tools.chaos.redis_cluster import ClusterTarget
from tools.partitions.cluster import Cluster
from tools.partitions.network import Network
from tools.partitions.plan import CLOCK
from tools.partitions.sentinel import NO_CLOCK, OPEN

from pyspark_redis.server.nodes import slot_of


class Apart(RedisCluster):
    """The nodes of a cluster, each on its machine; `join` makes them one."""

    def __init__(self, nodes: list[Node]) -> None:
        super().__init__()
        self.nodes = nodes

    def join(self) -> None:
        self._join()


class ThreePrimaries(ClusterTarget, Cluster):
    """Every epoch is done once the replica has it, so it may take over."""

    name = "redis-cluster"
    settings = "`waitReplicas` 1, one replica of each primary"
    machines = "n1", "n2", "n3", "n4", "n5", "n6"
    skipped: ClassVar = {CLOCK: NO_CLOCK}
    replicas = 1

    def __init__(self, network: Network, home: Path) -> None:
        Cluster.__init__(self, network, home)
        for name in self.machines:
            own = (*OPEN, *DURABLE, f'dir "{self.disks[name].home}"')
            self.servers[name] = [new_node(*own, place=self.place(name))]
        self.server = Apart([node for (node,) in self.servers.values()])  # type: ignore[misc]

    def start(self, stack: ExitStack) -> None:
        super().start(stack)
        self.server.join()

    @property
    def url(self) -> str:
        return str(self.server.url)

    @property
    def sink_url(self) -> str:
        return self.url

    def options(self, query: str) -> dict[str, str]:
        return {**super().options(query), "waitReplicas": str(self.replicas)}

    def leader(self) -> str:
        """The primary of the ledger's slot, of the newest configuration."""
        return self._primary_of("{sparkonce}")

    def home_of(self, key: str) -> str:
        return self.door(self._primary_of(key))

    def _primary_of(self, key: str) -> str:
        heads = [node for node in self.server.heads() if slot_of(key.encode()) in node.slots]
        newest = max(heads, key=lambda node: int(node.me[6]), default=None)
        found = (name for name, (node,) in self.servers.items() if node is newest)
        return next(found, self.machines[0])

    def is_whole(self) -> bool:
        self.server.wait_until_whole(5)
        roles = [node.ask("ROLE") for node in self.server.nodes]
        linked = [role for role in roles if role[0] == b"slave" and role[3] == b"connected"]
        return len(linked) == len(self.machines) // 2
