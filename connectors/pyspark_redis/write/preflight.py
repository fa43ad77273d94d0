"""What a Redis server must be like, so that it can't lose what a commit has acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from pyspark_redis.server.failures import demoted
from pyspark_redis.server.settings import setting
from sparkonce.errors import StoreRefused, StoreUnsafe

OLDEST = (6, 2)

SOME = (
    "CONFIG SET maxmemory-policy noeviction; where the server is a managed one, its provider's"
    " console has that setting"
)


def require_fit(client: redis.Redis, *, expiring: bool, cluster: bool = False) -> None:
    """Refuse a server that could lose what was acknowledged.

    Args:
        client: of the server.
        expiring: whether the sink's rows have a time to live.
        cluster: whether it may be a node of a cluster.

    Raises:
        Demoted: it is a replica.
        StoreRefused: it is too old, or a node of a cluster where it must be none.
        StoreUnsafe: it could evict the ledger or rows, or does not say whether it could.
    """
    info = client.info()
    # A kept connection leads to it after a failover: by this error it is given up.
    if info.get("role") == "slave":
        raise demoted()
    _require_able(info)
    if not cluster:
        require_alone(info)
    _require_no_eviction(
        setting(client, info, "maxmemory-policy"), setting(client, info, "maxmemory"), expiring
    )


def require_alone(info: Mapping[str, Any]) -> None:
    """Refuse a node of a cluster where it is asked as the one server.

    Raises:
        StoreRefused: it is one.
    """
    if info.get("cluster_enabled"):
        raise StoreRefused(
            "The server is a node of a Redis Cluster",
            why="option url names one server, and a cluster's rows lie on several",
            todo="write redis+cluster:// in option url",
        )


def _require_able(info: Mapping[str, Any]) -> None:
    version = str(info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreRefused(
            f"Redis {version} is too old",
            why="its scripts lack what an atomic commit needs",
            todo="use Redis 6.2 or newer",
        )


def _require_no_eviction(policy: str | None, maxmemory: str | None, expiring: bool) -> None:
    if policy is None:
        raise StoreUnsafe(
            "The server does not tell its maxmemory-policy",
            why="INFO leaves it out and CONFIG GET is refused; with allkeys-* it could evict the"
            " ledger, staged rows and the target's",
            todo="grant the user +config|get, so that it can be asked for",
        )
    if maxmemory == "0":  # without a limit of memory the policy never comes to evict anything
        return
    if policy.startswith("allkeys"):
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}",
            why="it may evict the ledger and staged rows, which have no TTL, and then rows are"
            " lost or doubled in silence",
            todo=SOME,
        )
    if expiring and policy.startswith("volatile"):
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}, and keys of this sink expire",
            why="when memory is full it evicts keys that have a TTL long before they expire, in"
            " silence",
            todo=f"{SOME}; or leave options ttl and ttlColumn out",
        )
