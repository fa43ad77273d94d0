"""Elasticsearch: three nodes, and one replica of each shard."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from integration.support.servers.elasticsearch import ElasticsearchProcess, connect, private_tree
from tools.chaos.elasticsearch import ElasticsearchTarget
from tools.partitions import plan
from tools.partitions.cluster import Cluster
from tools.partitions.network import Network

QUICK = (
    "cluster.fault_detection.follower_check.timeout: 2s",
    "cluster.fault_detection.follower_check.retry_count: 2",
    "cluster.fault_detection.leader_check.timeout: 2s",
    "cluster.fault_detection.leader_check.retry_count: 2",
    "cluster.publish.timeout: 10s",
    "discovery.find_peers_interval: 500ms",
)
"""Lets a cluster notice within seconds what it notices within a minute by default."""


class ElasticsearchCluster(ElasticsearchTarget, Cluster):
    """An acknowledged write is on each copy that the master counts as in sync."""

    name, replicas = "elasticsearch", 1
    settings = "one replica, `wait_for_active_shards` 1"
    advice = "one replica or more"
    skipped: ClassVar = {plan.CLOCK: "Elasticsearch's Java does not start under libfaketime"}
    machines = "n1", "n2", "n3"

    def __init__(self, network: Network, home: Path) -> None:
        Cluster.__init__(self, network, home)
        self._seen = {}
        self.nodes: dict[str, ElasticsearchProcess] = {}
        for name in self.machines:
            own = f"node.name: {name}"
            node = ElasticsearchProcess(
                private_tree(), own, *QUICK, heap="768m", place=self.place(name)
            )
            node.data = self.disks[name].home / "data"
            self.nodes[name], self.servers[name] = node, [node]
        seeds = ", ".join(f'"{node.transport}"' for node in self.nodes.values())
        for node in self.nodes.values():
            with (node.settings / "elasticsearch.yml").open("a") as file:
                file.write(f"discovery.seed_hosts: [{seeds}]\n")
                file.write(f"cluster.initial_master_nodes: [{', '.join(self.machines)}]\n")

    @classmethod
    def obtain(cls) -> None:
        private_tree()

    def start(self, stack: ExitStack) -> None:
        """Start all nodes together: none is ready before most of them are."""
        for disk in self.disks.values():
            stack.callback(disk.close)
        for node in self.nodes.values():
            stack.callback(node.close)
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(ElasticsearchProcess.start, self.nodes.values()):
                pass

    @property
    def url(self) -> str:
        return self.nodes[self.leader()].url

    @property
    def sink_url(self) -> str:
        return ",".join(node.url for node in self.nodes.values())

    @property
    def version(self) -> str:
        return f"{super().version}, 3 nodes, {self.replicas} replica"

    def leader(self) -> str:
        """The node with the primary shard of the ledger, before there is one the master."""
        votes = Counter(filter(None, map(self._vote, self.machines)))
        return votes.most_common(1)[0][0] if votes else self.machines[0]

    def is_whole(self) -> bool:
        for node in self.nodes.values():
            with connect(node.url, request_timeout=5) as client:
                health = client.cluster.health()
                if health["number_of_nodes"] != len(self.machines):
                    return False
                if health["status"] != "green":
                    # After five failures the cluster no longer tries to allocate a copy.
                    client.cluster.reroute(retry_failed=True, metric="none")
                    return False
        return self._shards_write()

    def _shards_write(self) -> bool:
        """Whether each shard writes; an operator restarts nodes with one that does not.

        After a full disk a node may keep a shard as started whose log of operations is closed.
        """
        with connect(self.nodes[self.machines[0]].url, request_timeout=30) as client:
            done = client.indices.flush(force=True, wait_if_ongoing=True)["_shards"]
            if not done["failed"]:
                return True
            names = {key: one["name"] for key, one in client.nodes.info()["nodes"].items()}
        for name in {names[one["routing"]["node"]] for one in done["failures"]}:
            self.nodes[name].restart()
        return False

    def _vote(self, name: str) -> str | None:
        """The leader in the state of the cluster that a node has."""
        try:
            with connect(self.nodes[name].url, request_timeout=2) as client:
                state = client.cluster.state(
                    local=True, metric=["routing_table", "nodes", "master_node"]
                )
        except Exception:
            return None
        known = {key: node["name"] for key, node in state["nodes"].items()}
        ledger = state["routing_table"]["indices"].get("sparkonce-ledger", {"shards": {}})
        primaries = [
            shard["node"]
            for shards in ledger["shards"].values()
            for shard in shards
            if shard["primary"]
        ]
        return known.get((primaries or [state["master_node"]])[0])
