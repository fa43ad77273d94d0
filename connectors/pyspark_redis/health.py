"""Risks of a Redis server that can lose data although it passes the checks of a query.

The manual: https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import redis

from pyspark_redis.server.preflight import SOME, require_fit, setting
from pyspark_redis.server.session import PROBE
from sparkonce.health import LOST, Finding, clock, fit, risk, share


def examine(client: redis.Redis, own: str, *, cluster: bool = False) -> Iterator[Finding]:
    """Check version, rights, persistence, replication, memory and clock; `own` is a test key."""
    require_fit(client, expiring=False, cluster=cluster)
    info: Mapping[str, Any] = client.info()
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info["redis_version"]
    yield fit(f"{name} {version}, a {info.get('role', 'server')}")
    client.eval(PROBE, 1, own)
    yield fit("The user may write the connector's keys")
    yield _persistence(setting(client, info, "appendonly"), setting(client, info, "appendfsync"))
    if replicas := int(info.get("connected_slaves", 0)):
        yield _replication(replicas, setting(client, info, "min-replicas-to-write"))
    policy = setting(client, info, "maxmemory-policy") or ""
    if policy.startswith("allkeys"):  # without maxmemory, or `require_fit` had rejected it
        yield risk(
            f"The server's maxmemory-policy is {policy}; it evicts nothing, as maxmemory is 0",
            "with maxmemory set, the server may evict the ledger and staged rows; a query stops at"
            " its next epoch, but evicted data is lost",
            SOME,
        )
    if most := int(info.get("maxmemory", 0)):
        todo = "raise maxmemory, or let rows expire (ttl); sparkonce gc drops leftover staged rows"
        yield share("Memory", int(info["used_memory"]), most, todo)
    seconds, micros = client.time()
    yield clock(seconds + micros / 1e6)


def _persistence(append: str | None, sync: str | None) -> Finding:
    if append is None:
        return risk(
            "The server does not report whether it keeps an append-only file",
            LOST,
            "grant the user +config|get, or ask the provider of the server",
        )
    if append != "yes":
        return risk(
            "The server keeps no append-only file (appendonly no)",
            LOST,
            "CONFIG SET appendonly yes, and the same in its configuration file",
        )
    if sync != "always":
        return risk(
            f"The append-only file reaches the disk some time after a commit (appendfsync {sync})",
            f"about a second: {LOST}",
            "CONFIG SET appendfsync always, if that loss matters",
        )
    return fit("Each commit is on disk before it is acknowledged (appendfsync always)")


def _replication(replicas: int, least: str | None) -> Finding:
    if least is None:
        return risk(
            f"{replicas} replicas, and the server does not report how many a write needs",
            LOST,
            "grant the user +config|get, or ask the provider of the server",
        )
    if least != "0":
        return fit(f"{replicas} replicas, of which {least} must be connected for a write")
    return risk(
        f"{replicas} replicas, and a write needs none of them (min-replicas-to-write 0)",
        "replication is asynchronous: a failover loses the writes that the replica lacks, and the"
        " next commit then stops with SinkBehindCheckpoint",
        "CONFIG SET min-replicas-to-write 1 limits the loss; only the primary's disk prevents it",
    )
