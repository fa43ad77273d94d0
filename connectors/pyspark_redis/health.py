"""What a Redis server could lose although no query is refused.

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
    """Look at version, rights, persistence, replication, memory, clock; `own` is a key to try."""
    require_fit(client, expiring=False, cluster=cluster)
    info: Mapping[str, Any] = client.info()
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = info.get("valkey_version") or info["redis_version"]
    yield fit(f"{name} {version}, a {info.get('role', 'server')}")
    client.eval(PROBE, 1, own)
    yield fit("The user may write the connector's own keys")
    yield _persistence(setting(client, info, "appendonly"), setting(client, info, "appendfsync"))
    if replicas := int(info.get("connected_slaves", 0)):
        yield _replication(replicas, setting(client, info, "min-replicas-to-write"))
    policy = setting(client, info, "maxmemory-policy") or ""
    if policy.startswith("allkeys"):  # and no maxmemory, or it were refused
        yield risk(
            f"The server's maxmemory-policy is {policy}; it evicts nothing, as maxmemory is 0",
            "once maxmemory is set it may evict the ledger and staged rows; a query refuses that at"
            " its next epoch, and what went before is lost",
            SOME,
        )
    if most := int(info.get("maxmemory", 0)):
        todo = "raise maxmemory, or let rows expire (ttl); sparkonce gc drops what is left over"
        yield share("Memory", int(info["used_memory"]), most, todo)
    seconds, micros = client.time()
    yield clock(seconds + micros / 1e6)


def _persistence(append: str | None, sync: str | None) -> Finding:
    if append is None:
        return risk(
            "The server does not tell whether it keeps an append-only file",
            LOST,
            "grant the user +config|get, or ask the provider of the server",
        )
    if append != "yes":
        return risk(
            "The server keeps no append-only file (appendonly no)",
            LOST,
            "CONFIG SET appendonly yes, also in its configuration",
        )
    if sync != "always":
        return risk(
            f"The append-only file reaches the disk some time after a commit (appendfsync {sync})",
            f"about a second: {LOST}",
            "CONFIG SET appendfsync always, if that matters",
        )
    return fit("Each commit is on disk before it is acknowledged (appendfsync always)")


def _replication(replicas: int, least: str | None) -> Finding:
    if least is None:
        return risk(
            f"{replicas} replicas, and the server does not tell how many a write waits for",
            LOST,
            "grant the user +config|get, or ask the provider of the server",
        )
    if least != "0":
        return fit(f"{replicas} replicas, of which {least} must be there for a write")
    return risk(
        f"{replicas} replicas, and none has to be there for a write (min-replicas-to-write 0)",
        "replication is asynchronous: a failover takes back what the replica has not got, and the"
        " next commit then stops with SinkBehindCheckpoint",
        "CONFIG SET min-replicas-to-write 1 bounds that; only the primary's disk rules it out",
    )
