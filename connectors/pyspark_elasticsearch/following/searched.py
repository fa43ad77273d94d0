"""What a search by a name looks at: an alias may have a filter, or a routing to some shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from pyspark_elasticsearch.following.positions import Stretch
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.errors import StoreUnreachable


@dataclass(frozen=True)
class Searched:
    """What is searched.

    Attributes:
        filters: of each index.
        shards: of all of them, by index and number.
    """

    filters: Mapping[str, Sequence[Any]]
    shards: Set[tuple[str, int]]

    def has(self, one: Stretch) -> bool:
        """Whether the shard is looked at. Of an index that is gone the task will tell."""
        return (one.index, one.shard) in self.shards or one.index not in self.filters

    def filters_of(self, one: Stretch) -> Sequence[Any]:
        """Queries that its documents match."""
        return self.filters.get(one.index, ())


def searched(cluster: Cluster, index: str) -> Searched:
    """What the cluster would search.

    See https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search-shards

    Raises:
        StoreUnreachable: a shard has no copy that can be searched, and by that no name in the list.
    """
    params = {"ignore_unavailable": "true"}
    told = cluster.ask("asking for filters", "GET", path(index, "_search_shards"), params=params)
    if not all(told.body["shards"]):
        raise StoreUnreachable(
            f"A shard of {index} has no copy that can be searched now",
            why="no node holds one that has started",
            todo="look at the cluster's health; the query tries it again",
        )
    filters = {
        name: [about["filter"]] if "filter" in about else []
        for name, about in told.body["indices"].items()
    }
    shards = {(copies[0]["index"], int(copies[0]["shard"])) for copies in told.body["shards"]}
    return Searched(filters, shards)
