"""Checks of a Redis server: version, role, eviction, and the largest request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import redis

from pyspark_redis.server.failures import demoted
from sparkonce.errors import ChunkTooLarge, StoreRefused, StoreUnsafe

OLDEST = (6, 2)

SOME = (
    "CONFIG SET maxmemory-policy noeviction; a managed server has that setting in its provider's"
    " console"
)

LEAST = 1024 * 1024  # the smallest value that the server accepts for each of `BOUNDS`, in bytes
OVERHEAD = 64 * 1024  # bytes of a request that are reserved for everything except the payload

BOUNDS = ("proto-max-bulk-len", "client-query-buffer-limit")
"""Settings that limit the size of a request. The server closes the connection of a larger one."""


def require_fit(client: redis.Redis, *, expiring: bool, cluster: bool = False) -> None:
    """Reject a replica, an old server, and one that could lose acknowledged writes.

    `expiring` says that rows have a time to live, `cluster` that a node of a cluster is allowed.
    """
    info = client.info()
    # After a failover a kept connection may lead to a replica; this error closes it.
    if info.get("role") == "slave":
        raise demoted()
    version = str(info["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreRefused(
            f"Redis {version} is too old",
            why="its scripts lack a feature that an atomic commit needs",
            todo="use Redis 6.2 or newer",
        )
    if not cluster:
        require_alone(info)
    _require_no_eviction(
        setting(client, info, "maxmemory-policy"), setting(client, info, "maxmemory"), expiring
    )


def require_alone(info: Mapping[str, Any]) -> None:
    """Reject a node of a cluster where option ``url`` names a single server."""
    if info.get("cluster_enabled"):
        raise StoreRefused(
            "The server is a node of a Redis Cluster",
            why="option url names one server, and a cluster stores rows on several",
            todo="write redis+cluster:// in option url",
        )


def _require_no_eviction(policy: str | None, maxmemory: str | None, expiring: bool) -> None:
    if policy is None:
        raise StoreUnsafe(
            "The server does not report its maxmemory-policy",
            why="INFO omits it and the server rejects CONFIG GET; with allkeys-* the server could"
            " evict the ledger, staged rows and rows of the target",
            todo="grant the user +config|get, so that the connector can read the setting",
        )
    if maxmemory == "0":  # without a limit of memory the server evicts nothing
        return
    if policy.startswith("allkeys"):
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}",
            why="it may evict the ledger and staged rows, which have no TTL, and rows would then be"
            " lost or duplicated silently",
            todo=SOME,
        )
    if expiring and policy.startswith("volatile"):
        raise StoreUnsafe(
            f"The server's maxmemory-policy is {policy}, and keys of this sink expire",
            why="when memory is full, the server silently evicts keys with a TTL long before they"
            " expire",
            todo=f"{SOME}; or remove options ttl and ttlColumn",
        )


class RequestLimit:
    """The largest request; the server closes the connection of a larger one without a reply."""

    def __init__(self, client: Callable[[], redis.Redis]) -> None:
        self.client = client
        self._most: int | None = None

    def of_letter(self, size: int, most: int) -> int:
        """The most bytes, up to `most`, that a dead letter keeps of a row of `size` bytes."""
        if size <= LEAST - OVERHEAD:
            return most
        known = self._known()
        return most if known is None else min(most, known - OVERHEAD)

    def staging(self, size: int) -> str:
        """Describe the staging of a chunk of `size` bytes, for an error; or raise ChunkTooLarge."""
        if size <= LEAST - OVERHEAD:  # every server accepts that, and CONFIG needs an extra right
            return "staging rows"
        bounds, known = " or ".join(BOUNDS), self._known()
        if known is None:
            return (
                f"staging a chunk of {size:,} bytes (if the server's {bounds} is smaller, grant the"
                " user +config|get, so that the connector can check the size first)"
            )
        if size > known - OVERHEAD:
            raise ChunkTooLarge(
                f"Redis accepts no row of {size:,} bytes",
                why=f"its {bounds} is {known:,} bytes",
                todo="raise that setting, or drop or shorten the row's large columns before the"
                " sink",
            )
        return "staging rows"

    def _known(self) -> int | None:
        if self._most is None:
            bounds = [_configured(self.client(), name) for name in BOUNDS]
            self._most = min(map(int, filter(None, bounds))) if all(bounds) else None
        return self._most


def setting(client: redis.Redis, info: Mapping[str, Any], name: str) -> str | None:
    """A setting by its name in CONFIG; None if unknown: managed servers may omit it in INFO."""
    value = info.get(name.replace("-", "_"))
    return _configured(client, name) if value is None else str(value)


def _configured(client: redis.Redis, name: str) -> str | None:
    try:
        value = client.config_get(name).get(name)
    except redis.ResponseError:
        # An ACL may forbid CONFIG; the value is then unknown, and a guess would be unsafe.
        return None
    return None if value is None else str(value)
