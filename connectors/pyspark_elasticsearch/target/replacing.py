"""Mode overwrite: a batch goes into an index of its own, which then takes the alias over.

Readers see the old index until all rows of the new one can be found. Then, in one update of the
cluster's state, its aliases lead to the new index and it is deleted, see
https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-indices-update-aliases
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.journal.records import Destination
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import message
from sparkonce.errors import StoreRefused, StoreUnreachable

log = logging.getLogger("sparkonce")

DOING = "replacing an index"
FIRST = "-000001"
"""What the name of an alias is followed by in that of the first index that is made for it."""

OF_ITSELF = ("uuid", "creation_date", "provided_name", "version", "resize", "blocks", "history")
"""Settings that an index does not share with its successor."""


def successor(alias: str, token: str) -> str:
    """The name of the index that a decision writes into."""
    return f"{alias}-{token[:16]}"


def make(cluster: Cluster, to: Destination, alias: str) -> bool:
    """Make the index of an overwrite as the one is that it replaces, unless it is there.

    Gives whether it is wanted: not where another overwrite has replaced that index meanwhile.

    Raises:
        StoreRefused: it can't be made.
    """
    if cluster.ask(DOING, "HEAD", path(to.index), allow=(404,)).status == 200:
        return True
    answer = cluster.ask(DOING, "GET", path(to.replaces), allow=(404,))
    if answer.status == 404:
        _require_superseded(cluster, to, alias)
        return False
    about = answer.body[to.replaces]
    settings = {k: v for k, v in about["settings"]["index"].items() if k not in OF_ITSELF}
    body = {"settings": {"index": settings}, "mappings": about["mappings"]}
    _, error = indices.make(cluster, to.index, body)
    if error and error.get("type") != indices.EXISTS:
        raise StoreRefused(
            f"Index {to.index}, which replaces {to.replaces}, could not be made: {message(error)}",
            why="it gets settings and mappings of that one, and the cluster refuses them",
            todo="mend what it names, then run `sparkonce recover`",
        )
    return True


def take_over(cluster: Cluster, to: Destination, alias: str) -> None:
    """Let all aliases of the old index lead to the new one, and delete the old one.

    Raises:
        StoreUnreachable: not all nodes have taken it in time.
        StoreRefused: neither index is there.
    """
    answer = cluster.ask(DOING, "GET", path(to.replaces, "_alias"), allow=(404,))
    if answer.status == 404:
        _leave(cluster, to, alias)
        return
    cluster.ask(DOING, "POST", path(to.index, "_refresh"))
    aliases: Mapping[str, Mapping[str, Any]] = answer.body[to.replaces]["aliases"]
    moved = [
        {"add": {"index": to.index, "alias": name, **about}} for name, about in aliases.items()
    ]
    body = {"actions": [{"remove_index": {"index": to.replaces}}, *moved]}
    done = cluster.ask(DOING, "POST", "/_aliases", body=body, allow=(404,))
    if done.status == 404:  # the old index has gone since the look
        _leave(cluster, to, alias)
    elif not done.body["acknowledged"]:
        raise StoreUnreachable(
            f"Some nodes did not take aliases of {to.index} in time",
            why="they are slow, or the cluster loses some",
            todo="look into the cluster, then run `sparkonce recover`",
        )


def _leave(cluster: Cluster, to: Destination, alias: str) -> None:
    """Where the old index is gone: another try was first, or a later overwrite took its place."""
    if to.index not in _behind(cluster, alias):
        _require_superseded(cluster, to, alias)
        # No alias will lead to it.
        cluster.ask(DOING, "DELETE", path(to.index), allow=(404,))


def _behind(cluster: Cluster, alias: str) -> Collection[str]:
    """The indices to which an alias leads."""
    answer = cluster.ask(DOING, "GET", path("_alias", alias), allow=(404,))
    return list(answer.body) if answer.status == 200 else []


def _require_superseded(cluster: Cluster, to: Destination, alias: str) -> None:
    """Go on only where the alias leads to the index of an overwrite that was decided later.

    Raises:
        StoreRefused: it leads nowhere.
    """
    others = _behind(cluster, alias)
    if not others:
        raise StoreRefused(
            f"Index {to.replaces} is there no more, nor is one behind alias {alias}",
            why="something else has deleted it since the batch was decided",
            todo="make it anew, with its aliases, then run `sparkonce recover`",
        )
    log.warning("%s comes too late: %s has replaced %s", to.index, others, to.replaces)
