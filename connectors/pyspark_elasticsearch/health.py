"""Checks for what an Elasticsearch cluster could lose although it rejects no query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.journal.log import Clock
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.write.preflight import require_safe_indices
from sparkonce.errors import StoreRefused
from sparkonce.health import Finding, clock, fit, risk, share


def examine(cluster: Cluster, own: OwnIndices) -> Iterator[Finding]:
    """Check version, health, copies of the connector's indices, disks and clock."""
    cluster.require_fit()
    require_safe_indices(cluster, [own.ledger, own.log])
    server = cluster.ask("asking the server for its version", "GET", "/").body
    yield fit(
        f"{cluster.dialect.name} {server['version']['number']}, cluster {server['cluster_name']}"
    )
    yield from _rights(cluster, [own.ledger, own.log])
    doing, target = "reading the cluster's health", "/_cluster/health"
    status, health = cluster.ask(doing, "GET", target, allow=(403,))
    if status == 403:  # all of this needs the right ``monitor``
        yield risk(
            "The user may not read the cluster's health",
            "the connector can't check whether a node or a full disk endangers the guarantee",
            "grant the right monitor to the user of sparkonce doctor",
        )
        return
    state = (
        f"The cluster's status is {health['status']}, with {health['number_of_data_nodes']} nodes"
    )
    missing = "a primary shard is missing, and commits that need it wait"
    is_red = health["status"] == "red"
    yield risk(state, missing, "repair the cluster") if is_red else fit(state)
    if int(health["number_of_data_nodes"]) > 1:
        yield from (_copies(cluster, index) for index in (own.ledger, own.log))
    yield from _disks(cluster)
    yield clock(Clock(cluster).now())


def _rights(cluster: Cluster, indices: Sequence[str]) -> Iterator[Finding]:
    """Check whether the user may write ledger and log; no finding if security is off."""
    wanted = {"index": [{"names": indices, "privileges": ["read", "write"]}]}
    doing, target = "reading the user's rights", "/_security/user/_has_privileges"
    status, rights = cluster.ask(doing, "POST", target, body=wanted, allow=(400, 404, 405))
    if status != 200:
        return
    if not rights["has_all_requested"]:
        raise StoreRefused(
            f"The user {rights['username']!r} may not read and write {' and '.join(indices)}",
            why="a query keeps its ledger and staged rows there",
            todo="grant what docs/permissions.md lists for app, or log in as the user of the query",
        )
    yield fit("The user may write ledger and log")


def _copies(cluster: Cluster, index: str) -> Finding:
    name = "index.number_of_replicas"
    target, flat = path(index, "_settings", name), {"flat_settings": "true"}
    found = cluster.ask(f"reading index {index}", "GET", target, params=flat, allow=(403, 404))
    settings = found.body.values() if found.status == 200 else ()
    if all(int(one["settings"].get(name, 0)) for one in settings):
        return fit(f"Index {index} has copies on other nodes")
    return risk(
        f"Index {index} has no copy on another node",
        "if the cluster loses its node, it loses ledgers or staged rows",
        f'PUT /{index}/_settings {{"index.auto_expand_replicas": "0-1"}}',
    )


def _disks(cluster: Cluster) -> Iterator[Finding]:
    stats = cluster.ask("reading the disks of nodes", "GET", "/_nodes/stats/fs", allow=(403,))
    for node in stats.body.get("nodes", {}).values():
        total = node["fs"]["total"]
        used = total["total_in_bytes"] - total["available_in_bytes"]
        todo = "free space: above the flood-stage watermark (95%) indices are read-only"
        yield share(f"Disk of node {node['name']}", used, total["total_in_bytes"], todo)
