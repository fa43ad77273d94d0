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
    """Make an index, by `json/<name>.json`, unless it is there; `StoreRefused` if it can't be."""
    # The user need not have the right to make it where it is there.
    looking = f"looking for index {index}"
    if cluster.ask(looking, "HEAD", path(index), allow=(404,)).status == 200:
        return
    status, error = make(cluster, index, definition(name), allow=(400, 403))
    if status == 403:
        raise StoreRefused(
            f"There is no index {index}, and this user may not make it",
            why=f"the connector keeps {_HOLDS[name]} there: {message(error)}",
            todo=f"create it with what pyspark_elasticsearch/journal/json/{name}.json holds, or"
            " grant the right create_index; docs/elasticsearch.md shows both",
        )
    if error:
        raise StoreRefused(
            f"Index {index} could not be made: {error.get('reason')}",
            why=f"{_HOLDS[name]} need an index of their own",
            todo="mend its name, let no template of the cluster match it, or create it as"
            " docs/elasticsearch.md shows",
        )


def make(
    cluster: Cluster, index: str, body: Mapping[str, Any], allow: tuple[int, ...] = (400,)
) -> tuple[int, Mapping[str, Any]]:
    """Make an index: the status, and what the cluster says against it.

    That is nothing if it was made, also by others since somebody looked (status 400).
    """
    made = cluster.ask(f"making index {index}", "PUT", path(index), body=body, allow=allow)
    error = made.body.get("error", {}) if made.status in allow else {}
    return made.status, {} if error.get("type") == EXISTS else error


def own_names(prefix: str) -> tuple[str, str]:
    """The names of the connector's own indices: of ledgers, and of staged chunks."""
    return f"{prefix}-ledger", f"{prefix}-log"


class OwnIndices:
    """The names of the connector's own indices, made when they are first needed."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self.cluster = cluster
        self.ledger, self.log = own_names(prefix)
        self._are_there = False

    def ensure(self) -> None:
        """See that they are there: an index made by a first write would have wrong mappings."""
        if not self._are_there:
            ensure(self.cluster, self.ledger, "ledger")
            ensure(self.cluster, self.log, "log")
            self._are_there = True
