"""A Redis Cluster as the target of a chaos run: primaries fail over, slots move."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import redis
from integration.support.proxy import Plan, Proxies, Proxy
from integration.support.redis import Everywhere
from integration.support.servers.redis import version_at
from integration.support.servers.redis_cluster import Node, RedisCluster
from tools.chaos.redis import AT_ONCE, COUNTER, DURABLE, WITNESS, RedisTarget, left, sha, witnesses
from tools.chaos.redis import POINTS as ALONE
from tools.chaos.target import SIDES, Counts, Target, Witness, has
from tools.chaos.topic import BUCKETS

from pyspark_redis.journal import scripts
from pyspark_redis.server.nodes import slot_of

if TYPE_CHECKING:
    from pathlib import Path


POINTS = {
    **{point: ALONE[point] for point in ("stage", "decide", "finish", "clean")},
    "prepare": has(sha(scripts.fence())),
    "apply": has(sha(scripts.apply_to_lanes("hash"))),
    "settle": has(sha(scripts.settle())),
}
MOVED = 200
"""The number of slots in one move."""


class Server(RedisCluster):
    """The cluster as one process; `kill` kills a primary, the ledger's or another."""

    def __init__(self, disk: Path | None) -> None:
        super().__init__(*DURABLE, plan=Plan(), home=disk)
        self.chance = random.Random(1)
        self._killed: list[Node] = []

    @property
    def alive(self) -> bool:
        return len(self.living()) == len(self.nodes)

    def answers(self) -> bool:
        return all(node.answers() for node in self.living())

    def kill(self) -> None:
        """Kill a primary; if a node has ended by itself, as on a full disk, choose that one."""
        ended = [node for node in self.nodes if not node.alive]
        heads = self.heads()
        ledger = [node for node in heads if slot_of(b"{sparkonce}") in node.slots]
        node = ended[0] if ended else self.chance.choice([*heads, *ledger, *ledger])
        node.kill()
        self._killed.append(node)

    def start(self) -> None:
        while self._killed:
            self._killed.pop().start()
        self.wait_until_whole(60)


class ClusterTarget(Target):
    name, format, points = "redis-cluster", "redis", POINTS
    moves, whole = True, False
    in_driver = tuple(point for point in POINTS if point != "stage")
    columns = RedisTarget.columns

    def __init__(self, disk: Path | None) -> None:
        super().__init__(Server(disk))

    @property
    def version(self) -> str:
        return f"{version_at(self.server.nodes[0].url)}, 3 primaries, 3 replicas"

    def proxy(self) -> Proxy:
        doors = [f"127.0.0.1:{one.ports[0]}" for one in self.server.proxies]
        url = f"redis+cluster://{','.join(doors)}"
        return Proxies(self.server.proxies, self.server.plan, url)

    def move(self) -> str:
        heads = self.server.heads()
        origin, other = self.server.chance.sample(heads, 2)
        slots = self.server.chance.sample(origin.slots, MOVED)
        for slot in slots:
            self.server.begin_move(slot, origin, other)
            self.server.end_move(slot, origin, other)
        return f"{len(slots)} slots"

    def options(self, query: str) -> dict[str, str]:
        """Waits for a replica, so that a killed primary loses nothing."""
        return {**RedisTarget.options(self, query), "waitReplicas": "1"}  # type: ignore[arg-type]

    def rows(self) -> Iterator[Witness]:
        for client, names in self._by_node(f"{WITNESS}:"):
            for at in range(0, len(names), AT_ONCE):
                yield from witnesses(client, names[at : at + AT_ONCE])

    def counters(self) -> Counts:
        found: Counts = {}
        for client, names in self._by_node(f"{COUNTER}:"):
            for name in names:
                _, side, bucket = name.decode().split(":")
                n, amount = client.hmget(name, "n", "amount")
                found[side, int(bucket)] = int(n or 0), int(amount or 0)
        return found

    def watch(self) -> Callable[[], tuple[int, int]]:
        """Reads one side only, because a cluster shows epochs in parts."""
        head = self.server.heads()[0]
        client = redis.RedisCluster(head.host, head.port, socket_timeout=5)

        def sides() -> tuple[int, int]:
            with client.pipeline() as pipe:
                for bucket in range(BUCKETS):
                    pipe.hget(f"{COUNTER}:{SIDES[0]}:{bucket}", "n")
                seen = sum(int(n or 0) for n in pipe.execute())
            return seen, seen

        return sides

    def residue(self) -> list[str]:
        """Lanes and their recorded progress belong to the ledger."""
        names = (key for _, key in Everywhere(self.server).keys(b""))
        return left(names, "{sparkonce}:lanes:", "sparkonce:{")

    def _by_node(self, begin: str) -> Iterator[tuple[redis.Redis, list[bytes]]]:
        for client, _ in Everywhere(self.server).nodes:
            # A scan may return a name twice; the key's value counts the effects of its row.
            yield client, list({*client.scan_iter(f"{begin}*", count=AT_ONCE)})
