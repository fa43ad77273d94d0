"""The connector's own indices: one for ledgers, one for staged chunks, one for dead letters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import message
from sparkonce.errors import StoreRefused

EXISTS = "resource_already_exists_exception"
_HOLDS = {"ledger": "ledgers", "log": "staged rows", "dead_letter": "dead letters"}


def definition(name: str) -> dict[str, Any]:
    """Settings and mappings of one of the connector's indices."""
    text = files(__package__).joinpath("json", f"{name}.json").read_text("utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def ensure(cluster: Cluster, index: str, name: str) -> None:
    """Create an index from `json/<name>.json` if it is missing; `StoreRefused` on failure."""
    # For an existing index the user needs no right to create it.
    looking = f"checking index {index}"
    if cluster.ask(looking, "HEAD", path(index), allow=(404,)).status == 200:
        return
    body = definition(name)
    body["settings"] |= cluster.dialect.own_settings
    status, error = make(cluster, index, body, allow=(400, 403))
    made_by_hand = (
        f"create it from pyspark_elasticsearch/journal/json/{name}.json with settings"
        f" {json.dumps(cluster.dialect.own_settings)}"
    )
    if error.get("type") in ("index_create_block_exception", "cluster_block_exception"):
        raise cluster.error_of(status, error, f"creating index {index}")
    if status == 403:
        raise StoreRefused(
            f"Index {index} does not exist, and this user may not create it",
            why=f"the connector keeps {_HOLDS[name]} there: {message(error)}",
            todo=f"{made_by_hand}, or grant the right create_index; docs/permissions.md lists it",
        )
    if error:
        raise StoreRefused(
            f"Index {index} could not be created: {error.get('reason')}",
            why=f"{_HOLDS[name]} need their own index",
            todo="correct its name, or let no template of the cluster match it; or if the cluster"
            f" needs other replicas, {made_by_hand}",
        )


def make(
    cluster: Cluster, index: str, body: Mapping[str, Any], allow: tuple[int, ...] = (400,)
) -> tuple[int, Mapping[str, Any]]:
    """Create an index; return the status and the error.

    The error is empty if the index was created, also if others did so first (status 400).
    """
    made = cluster.ask(f"creating index {index}", "PUT", path(index), body=body, allow=allow)
    if made.status not in allow:
        return made.status, {}
    # A front end has errors of its own form.
    error = made.body.get("error")
    if not isinstance(error, Mapping):
        error = {"reason": str(dict(made.body))[:200]}
    return made.status, {} if error.get("type") == EXISTS else error


def own_names(prefix: str) -> tuple[str, str]:
    """The names of the connector's own indices: of ledgers, and of staged chunks."""
    return f"{prefix}-ledger", f"{prefix}-log"


class OwnIndices:
    """The connector's own indices, created on first use."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self.cluster = cluster
        self.ledger, self.log = own_names(prefix)
        self._exist = False

    def ensure(self) -> None:
        """Create missing indices: a first write would create them with wrong mappings."""
        if not self._exist:
            ensure(self.cluster, self.ledger, "ledger")
            ensure(self.cluster, self.log, "log")
            self._exist = True
