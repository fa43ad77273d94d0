"""What a Redis server must be like, its settings, and what one request to it may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import redis

from pyspark_redis.server.failures import demoted
from sparkonce.errors import ChunkTooLarge, StoreRefused, StoreUnsafe

OLDEST = (6, 2)

SOME = (
    "CONFIG SET maxmemory-policy noeviction; where the server is a managed one, its provider's"
    " console has that setting"
)

LEAST = 1024 * 1024  # the least value that the server takes for each of `BOUNDS`, in bytes
OVERHEAD = 64 * 1024  # bytes of a request that are left for all that is not payload

BOUNDS = ("proto-max-bulk-len", "client-query-buffer-limit")
"""Settings that bound what one request may hold. Beyond them the server hangs up."""


def require_fit(client: redis.Redis, *, expiring: bool, cluster: bool = False) -> None:
    """Refuse a replica, an old server, and one that could lose what was acknowledged.

    `expiring` says that rows have a time to live, `cluster` that it may be a node of one.
    """
    info = client.info()
    # A kept connection leads to it after a failover: by this error it is given up.
    if info.get("role") == "slave":
        raise demoted()
    version = str(info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreRefused(
            f"Redis {version} is too old",
            why="its scripts lack what an atomic commit needs",
            todo="use Redis 6.2 or newer",
        )
    if not cluster:
        require_alone(info)
    _require_no_eviction(
        setting(client, info, "maxmemory-policy"), setting(client, info, "maxmemory"), expiring
    )


def require_alone(info: Mapping[str, Any]) -> None:
    """Refuse a node of a cluster where it is asked as the one server."""
    if info.get("cluster_enabled"):
        raise StoreRefused(
            "The server is a node of a Redis Cluster",
            why="option url names one server, and a cluster's rows lie on several",
            todo="write redis+cluster:// in option url",
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


class RequestLimit:
    """What one request may hold; beyond that the server hangs up, and says nothing."""

    def __init__(self, client: Callable[[], redis.Redis]) -> None:
        self.client = client
        self._most: int | None = None

    def of_letter(self, size: int, most: int) -> int:
        """How many bytes of a row of so many bytes a dead letter may hold, `most` at most."""
        if size <= LEAST - OVERHEAD:
            return most
        known = self._known()
        return most if known is None else min(most, known - OVERHEAD)

    def staging(self, size: int) -> str:
        """What is done with a chunk of so many bytes, in words; or raise ChunkTooLarge."""
        if size <= LEAST - OVERHEAD:  # every server takes that, and CONFIG needs a right of its own
            return "staging rows"
        bounds, known = " or ".join(BOUNDS), self._known()
        if known is None:
            return (
                f"staging a chunk of {size:,} bytes (if its {bounds} is smaller, grant the user"
                " +config|get, by which that is known before)"
            )
        if size > known - OVERHEAD:
            raise ChunkTooLarge(
                f"Redis takes no row of {size:,} bytes",
                why=f"its {bounds} is {known:,} bytes",
                todo="raise that setting, or drop or cut the row's large columns before the sink",
            )
        return "staging rows"

    def _known(self) -> int | None:
        if self._most is None:
            bounds = [_configured(self.client(), name) for name in BOUNDS]
            self._most = min(map(int, filter(None, bounds))) if all(bounds) else None
        return self._most


def setting(client: redis.Redis, info: Mapping[str, Any], name: str) -> str | None:
    """A setting by its name in CONFIG; None if unknown: INFO of managed servers may lack it."""
    value = info.get(name.replace("-", "_"))
    return _configured(client, name) if value is None else str(value)


def _configured(client: redis.Redis, name: str) -> str | None:
    try:
        value = client.config_get(name).get(name)
    except redis.ResponseError:
        # An ACL may forbid CONFIG: then nothing is known, and nobody may guess.
        return None
    return None if value is None else str(value)
