"""A private Redis Cluster: primaries that share the slots, each with replicas."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from integration.support.proxy import Plan, Proxy
from integration.support.servers.process import HERE, HOST, Place, wait_until
from integration.support.servers.redis import RedisProcess, connect

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from typing_extensions import Self

SLOTS = 16_384
BUS = 10_000
"""The offset from a node's port to the port of its cluster bus."""

CONFIG = (
    "cluster-enabled yes",
    "cluster-node-timeout 1500",
    "cluster-replica-validity-factor 0",
    "repl-diskless-sync-delay 0",
)


class Node(RedisProcess):
    """A node; the port of its bus is free, too."""

    def __init__(self, *config: str, announces: bool = False, place: Place = HERE) -> None:
        super().__init__(*CONFIG, *config, place=place)
        if announces:  # clients use another address, other nodes do not
            with (self.directory / "redis.conf").open("a") as file:
                file.write(f"cluster-announce-bus-port {self.port + BUS}\n")

    def ask(self, *command: Any) -> Any:
        with connect(self.url) as client:
            return client.execute_command(*command)

    @property
    def id(self) -> str:
        return self.ask("CLUSTER", "MYID").decode()

    @property
    def me(self) -> list[str]:
        """The node's own line: id, address, flags, id of its primary; from index 8 its slots."""
        lines = self.ask("CLUSTER", "NODES").decode().splitlines()
        return next(line.split() for line in lines if "myself" in line)

    @property
    def is_primary(self) -> bool:
        return bool(self.ask("ROLE")[0] == b"master")

    @property
    def slots(self) -> list[int]:
        """The slots that the node serves, in its own view."""
        bounds = ([int(end) for end in one.split("-")] for one in self.me[8:] if one[0] != "[")
        return [slot for low, *high in bounds for slot in range(low, (high or [low])[0] + 1)]


def new_node(*config: str, announces: bool = False, place: Place = HERE) -> Node:
    while True:
        node = Node(*config, announces=announces, place=place)
        if node.port + BUS < 65_536:
            with socket.socket() as bus:
                if bus.connect_ex((HOST, node.port + BUS)):
                    return node
        node.close()


class RedisCluster:
    """A cluster of primaries and replicas; a context manager.

    Args:
        config: the configuration of each node.
        plan: the faults of requests; each node then announces the address of a proxy.
        home: the folder of the first node's data.
    """

    def __init__(
        self,
        *config: str,
        primaries: int = 3,
        replicas: int = 1,
        plan: Plan | None = None,
        home: Path | None = None,
    ) -> None:
        self.config, self.primaries, self.replicas, self.plan = config, primaries, replicas, plan
        self.home = home
        self.nodes: list[Node] = []
        self.proxies: list[Proxy] = []

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for _ in range(self.primaries * (1 + self.replicas)):
                self.nodes.append(started.enter_context(self._new_node()))
            self._join()
            self._running = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"{node.host}:{node.port}" for node in self.nodes[:3])

    def living(self) -> list[Node]:
        return [node for node in self.nodes if node.alive]

    def heads(self) -> list[Node]:
        """The living primaries."""
        return [node for node in self.living() if node.is_primary]

    def owner(self, slot: int) -> Node:
        return next(node for node in self.heads() if slot in node.slots)

    def replicas_of(self, primary: Node) -> list[Node]:
        known = primary.id
        return [node for node in self.living() if node.me[3] == known]

    def wait_until_whole(self, seconds: float = 30) -> None:
        wait_until(lambda: all(map(is_whole, self.living())), seconds, "the cluster is not whole")

    def move(self, slot: int, to: Node) -> None:
        """Move a slot with its keys, as `redis-cli --cluster reshard` does."""
        origin = self.owner(slot)
        self.begin_move(slot, origin, to)
        self.end_move(slot, origin, to)

    def begin_move(self, slot: int, origin: Node, to: Node) -> None:
        to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", origin.id)
        origin.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)

    def end_move(self, slot: int, origin: Node, to: Node) -> None:
        """Move the remaining keys, and notify all nodes."""
        while keys := origin.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            migrate(origin, to, keys)
        known = to.id
        for node in [to, *(one for one in self.heads() if one is not to)]:
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", known)

    def _new_node(self) -> Node:
        if self.plan is None:
            return new_node(*self.config)
        where = [f'dir "{self.home}"'] if self.home and not self.nodes else []
        door = Proxy("redis://nobody", self.plan)
        own = (*self.config, *where, f"cluster-announce-port {door.ports[0]}")
        node = new_node(*own, announces=True)
        door.lead_to(node.url)
        self.proxies.append(door)
        return node

    def _join(self) -> None:
        heads, others = self.nodes[: self.primaries], self.nodes[self.primaries :]
        bounds = [SLOTS * at // self.primaries for at in range(self.primaries + 1)]
        for epoch, node in enumerate(self.nodes, 1):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for node, first, end in zip(heads, bounds, bounds[1:], strict=False):
            node.ask("CLUSTER", "ADDSLOTS", *range(first, end))
        for node in self.nodes[1:]:
            node.ask("CLUSTER", "MEET", self.nodes[0].host, self.nodes[0].port)
        wait_until(self._all_know_all, 20, "the nodes do not know each other")
        for at, node in enumerate(others):
            node.ask("CLUSTER", "REPLICATE", heads[at % self.primaries].id)
        wait_until(lambda: all(map(_is_linked, others)), 20, "a replica is not in step")
        self.wait_until_whole()

    def _all_know_all(self) -> bool:
        return all(
            b"cluster_known_nodes:%d" % len(self.nodes) in node.ask("CLUSTER", "INFO")
            and b"handshake" not in node.ask("CLUSTER", "NODES")
            for node in self.nodes
        )


def migrate(origin: Node, to: Node, keys: Iterable[bytes]) -> None:
    origin.ask("MIGRATE", to.host, to.port, "", 0, 5000, "KEYS", *keys)


def _is_linked(node: Node) -> bool:
    role = node.ask("ROLE")
    return bool(role[0] == b"slave" and role[3] == b"connected")


def is_whole(node: Node) -> bool:
    """Whether the node accepts requests, and knows a primary for every slot."""
    return node.answers() and b"cluster_state:ok" in node.ask("CLUSTER", "INFO")
