"""Redis as the target of a chaos run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from integration.support.servers.process import wait_until
from integration.support.servers.redis import RedisProcess, connect, version_at
from tools.chaos.target import BOTH, COUNTERS, ROWS, Counts, Target, Witness, has

from pyspark_redis.journal import scripts

if TYPE_CHECKING:
    from pathlib import Path

    from tools.chaos.world import ChaosWorld

DURABLE = ("appendonly yes", "appendfsync always")
WITNESS, COUNTER = "event", "count"
DRAWS = 14
"""The number of random columns. It makes Redis apply an epoch above 2,666 rows chunk by chunk."""

AT_ONCE = 5000


def sha(text: str) -> bytes:
    return hashlib.sha1(text.encode()).hexdigest().encode()  # as Redis names a script


POINTS = {
    "stage": has(b"\r\nMULTI\r\n", b":log:", b"\r\nSADD\r\n"),
    "publish": has(sha(scripts.publish("hash"))),
    "decide": has(sha(scripts.decide())),
    "apply": has(sha(scripts.apply("hash"))),
    "finish": has(sha(scripts.swap()), b'"manifest":null'),
    "clean": has(sha(scripts.discard())),
}


class RedisTarget(Target):
    name = format = "redis"
    points = POINTS
    in_driver = ("publish", "decide", "apply", "finish", "clean")
    columns = (
        *("part", "place", "1L as n", "amount"),
        *(f"pmod(hash(draw, {number}), 1000L) as draw{number}" for number in range(DRAWS)),
    )

    def __init__(self, disk: Path | None) -> None:
        where = [f'dir "{disk}"'] if disk else []
        super().__init__(RedisProcess(*DURABLE, *where))

    @property
    def version(self) -> str:
        return version_at(self.url)

    def options(self, query: str) -> dict[str, str]:
        keys = {ROWS: f"{WITNESS}:{{part}}:{{place}}", COUNTERS: f"{COUNTER}:{{side}}:{{bucket}}"}
        return {"key": keys[query], "writeMode": "increment"}

    def rows(self) -> Iterator[Witness]:
        with connect(self.url) as client:
            # A scan may return a name twice; the key's value counts the effects of its row.
            names = iter({*client.scan_iter(f"{WITNESS}:*", count=AT_ONCE)})
            while some := list(islice(names, AT_ONCE)):
                yield from witnesses(client, some)

    def counters(self) -> Counts:
        with connect(self.url) as client:
            found = _counts(client, [*_sides(client)])
        return {at: (int(n or 0), int(amount or 0)) for at, (n, amount) in found.items()}

    def watch(self) -> Callable[[], tuple[int, int]]:
        client = connect(self.url)

        def sides() -> tuple[int, int]:
            found = _counts(client, BOTH)
            left, right = (
                sum(int(n or 0) for (side, _), (n, _) in found.items() if side == wanted)
                for wanted in ("left", "right")
            )
            return left, right

        return sides

    def residue(self) -> list[str]:
        with connect(self.url) as client:
            return left(client.scan_iter("*", count=AT_ONCE))

    def last_checks(self) -> Mapping[str, Callable[[ChaosWorld], str]]:
        return {"failover to a replica that lacks the last epochs": failover}


def left(names: Iterable[bytes], *more: str) -> list[str]:
    """The keys that belong to neither rows nor ledgers; `more` has other prefixes of ledgers."""
    ledgers = (f"{{sparkonce}}:{name}" for name in ("record:", "names", "decided"))
    known = (*ledgers, f"{WITNESS}:", f"{COUNTER}:", *more)
    return [name for name in (one.decode() for one in names) if not name.startswith(known)]


def failover(world: ChaosWorld) -> str:
    """Promote a replica that lacks the last epochs."""
    target = world.target
    with RedisProcess(f"replicaof 127.0.0.1 {target.server.port}") as replica:
        with connect(replica.url) as client:
            wait_until(lambda: _in_step(client), 60, "the replica is not in step")
            client.replicaof("NO", "ONE")
        world.advance(2)
        target.server.kill()
        world.proxy.lead_to(replica.url)
        return world.must_fail("SinkBehindCheckpoint")


def _in_step(client: object) -> bool:
    return client.info("replication")["master_link_status"] == "up"  # type: ignore[attr-defined]


def witnesses(client: object, names: list[bytes]) -> Iterator[Witness]:
    with client.pipeline(transaction=False) as pipe:  # type: ignore[attr-defined]
        for name in names:
            pipe.hmget(name, "n", "amount")
        for name, (n, amount) in zip(names, pipe.execute(), strict=True):
            _, partition, offset = name.split(b":")
            yield Witness(int(partition), int(offset), int(n or 0), int(amount or 0))


def _sides(client: object) -> set[tuple[str, int]]:
    """Every counter that exists, known or not."""
    names = client.scan_iter(f"{COUNTER}:*", count=AT_ONCE)  # type: ignore[attr-defined]
    apart = (name.decode().split(":") for name in names)
    return {(side, int(bucket)) for _, side, bucket in apart}


def _counts(
    client: object, counters: Sequence[tuple[str, int]]
) -> dict[tuple[str, int], list[bytes | None]]:
    """These counters at one moment."""
    with client.pipeline(transaction=True) as pipe:  # type: ignore[attr-defined]
        for side, bucket in counters:
            pipe.hmget(f"{COUNTER}:{side}:{bucket}", "n", "amount")
        return dict(zip(counters, pipe.execute(), strict=True))
