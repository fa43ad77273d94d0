"""What a Redis server must be like, so that it can't lose what a commit has acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from pyspark_redis.server.failures import demoted
from sparkonce.errors import ChunkTooLarge, StoreRefused, StoreUnsafe

OLDEST = (6, 2)

LEAST = 1024 * 1024
"""The least value that the server takes for each of `BOUNDS`, in bytes."""

OVERHEAD = 64 * 1024
"""Bytes of a request that are left for all that is not payload."""

BOUNDS = ("proto-max-bulk-len", "client-query-buffer-limit")
"""Settings that bound what one request may hold. Beyond them the server hangs up."""

SOME = (
    "CONFIG SET maxmemory-policy noeviction; where the server is a managed one, its provider's"
    " console has that setting"
)


def require_fit(client: redis.Redis, *, expiring: bool) -> None:
    """Refuse a server that could lose what was acknowledged.

    Args:
        client: of the server.
        expiring: whether the sink's rows have a time to live.

    Raises:
        Demoted: it is a replica.
        StoreRefused: it is too old, or a node of a cluster.
        StoreUnsafe: it could evict the ledger or rows, or does not say whether it could.
    """
    info = client.info()
    # A kept connection leads to it after a failover: by this error it is given up.
    if info.get("role") == "slave":
        raise demoted()
    _require_able(info)
    _require_no_eviction(
        setting(client, info, "maxmemory-policy"), setting(client, info, "maxmemory"), expiring
    )


class Room:
    """What one request may hold; beyond that the server hangs up, and says nothing."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self._most: int | None = None

    def staging(self, size: int) -> str:
        """What is done with a chunk of so many bytes, in words; with a hint if nothing is known.

        Raises:
            ChunkTooLarge: the server takes only smaller ones.
        """
        if size <= LEAST - OVERHEAD:  # every server takes that, and CONFIG needs a right of its own
            return "staging rows"
        named = " or ".join(BOUNDS)
        if self._most is None:
            bounds = [_configured(self.client, name) for name in BOUNDS]
            self._most = min(map(int, filter(None, bounds))) if all(bounds) else None
        if self._most is None:
            return (
                f"staging a chunk of {size:,} bytes (if its {named} is smaller, grant the user"
                " +config|get, by which that is known before)"
            )
        if size > self._most - OVERHEAD:
            raise ChunkTooLarge(
                f"Redis takes no row of {size:,} bytes",
                why=f"its {named} is {self._most:,} bytes",
                todo="raise that setting, or drop or cut the row's large columns before the sink",
            )
        return "staging rows"


def _require_able(info: Mapping[str, Any]) -> None:
    version = str(info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreRefused(
            f"Redis {version} is too old",
            why="its scripts lack what an atomic commit needs",
            todo="use Redis 6.2 or newer",
        )
    if info.get("cluster_enabled"):
        raise StoreRefused(
            "The server is a node of a Redis Cluster",
            why="a commit is atomic within one server only",
            todo="use a server that is not in cluster mode",
        )


def _require_no_eviction(policy: str | None, maxmemory: str | None, expiring: bool) -> None:
    if policy is None:
        raise StoreUnsafe(
            "The server does not tell its maxmemory-policy",
            why="INFO leaves it out and CONFIG GET is refused; with allkeys-* it could evict the"
            " ledger, staged rows and the target's",
            todo="grant the user +config|get, so that it can be asked for",
        )
    if policy.startswith("allkeys"):
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}",
            why="it may evict the ledger and staged rows, which have no TTL, and then rows are"
            " lost or doubled in silence",
            todo=SOME,
        )
    # Without a limit of memory the policy never comes to evict anything.
    if expiring and policy.startswith("volatile") and maxmemory != "0":
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}, and the rows of this sink have a ttl",
            why="when memory is full it evicts keys that have a TTL long before they expire, in"
            " silence",
            todo=f"{SOME}; or leave option ttl out",
        )


def setting(client: redis.Redis, info: Mapping[str, Any], name: str) -> str | None:
    """A setting, which INFO may leave out, as that of some managed servers does; None if unknown.

    Args:
        client: of the server.
        info: what it tells by INFO.
        name: as CONFIG has it.
    """
    value = info.get(name.replace("-", "_"))
    return _configured(client, name) if value is None else str(value)


def _configured(client: redis.Redis, name: str) -> str | None:
    try:
        value = client.config_get(name).get(name)
    except redis.ResponseError:
        # An ACL may forbid CONFIG: then nothing is known, and nobody may guess.
        return None
    return None if value is None else str(value)
