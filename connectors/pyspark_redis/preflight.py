"""What a Redis server must be like, so that it can't lose what a commit has acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkonce.errors import StoreRefused, StoreUnreachable, StoreUnsafe

OLDEST = (6, 2)


def require_fit(info: Mapping[str, Any]) -> None:
    """Check the answer of INFO.

    Raises:
        StoreUnsafe: the eviction policy could drop the ledger.
        StoreRefused: the server is too old, or a node of a cluster.
    """
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
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy.startswith("allkeys"):
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}",
            why="it may evict the ledger and staged rows, which have no TTL, and then rows are"
            " lost or doubled in silence",
            todo="CONFIG SET maxmemory-policy noeviction (or one of volatile-*)",
        )


def is_replica() -> StoreUnreachable:
    """The error for a replica, which may be made a primary, or be replaced by one, in a moment."""
    return StoreUnreachable(
        "The server is a replica",
        why="it takes no writes",
        todo="point option url at the primary",
    )
