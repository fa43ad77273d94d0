"""What a name shows of indices: all that they have, or what the alias of one of our sinks does.

An alias may have a filter, or a routing to some shards, and both may change at any time. What such
an alias hides when a query passes it would never come. So they are refused, but for option
``visibleAlias``: its filter hides decisions of its sink that are not whole yet, all of which it
will show. A query stops before the first document of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark_elasticsearch.follow.shards import Index, refresh
from pyspark_elasticsearch.read.names import asked
from pyspark_elasticsearch.read.searches import searched
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.target import visibility
from pyspark_elasticsearch.target.visibility import Shown
from sparkonce.errors import StoreRefused, StoreUnreachable

DOING = "asking what is shown"

Told = Mapping[str, Any]
"""What a search by a name would look at.

See https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search-shards
"""


def shown(cluster: Cluster, index: str, there: Mapping[str, Index]) -> dict[str, Index]:
    """The same indices, each up to the first document that is not shown yet.

    Args:
        cluster: where.
        index: the name that is followed.
        there: what it stood for a moment ago.

    Raises:
        StoreRefused: an alias hides documents otherwise.
        StoreUnreachable: a shard has no copy that can be searched, and by that no name in the list.
    """
    told = _told(cluster, index) if there else {}
    return {name: _shown(cluster, name, about, told) for name, about in there.items()}


def _told(cluster: Cluster, index: str) -> Told:
    shown = {"ignore_unavailable": "true", "filter_path": "indices,shards.index,shards.shard"}
    body = cluster.ask(DOING, "GET", path(asked(index), "_search_shards"), params=shown).body
    told: Told = {"indices": {}, "shards": [], **body}
    if not all(told["shards"]):
        raise StoreUnreachable(
            f"A shard of {index} has no copy that can be searched now",
            why="no node holds one that has started",
            todo="look at the cluster's health; the query tries it again",
        )
    return told


def _shown(cluster: Cluster, index: str, about: Index, told: Told) -> Index:
    if index not in told["indices"]:  # gone since, as the next look will tell
        return about
    numbers = {copies[0]["shard"] for copies in told["shards"] if copies[0]["index"] == index}
    if not numbers >= {*range(len(about.shards))}:
        raise _hides(index, told, "a routing to some shards")
    query = told["indices"][index].get("filter")
    if query is None:
        return about
    by = visibility.shown_by(query)
    if by is None:
        raise _hides(index, told, "a filter")
    return _upto(cluster, index, about, by)


def _hides(index: str, told: Told, how: str) -> StoreRefused:
    aliases = " and ".join(told["indices"][index].get("aliases", ()))
    return StoreRefused(
        f"Index {index} can't be followed by alias {aliases}, which has {how}",
        why="it may change at any time: what it hides when the query passes would never come",
        todo="name the index itself, or its data stream, in option index, and say which documents"
        " by option query, or by where() in Spark",
    )


def _upto(cluster: Cluster, index: str, about: Index, by: Shown) -> Index:
    """What of an index lies before all that its alias will show later."""
    refresh(cluster, index)  # else a search does not find all that is hidden
    firsts = _hidden(cluster, index, about, by)
    shards = [
        replace(shard, final=min(shard.final, first - 1))
        for shard, first in zip(about.shards, firsts, strict=True)
    ]
    return Index(shards, about.is_over and shards == [*about.shards], by.sink)


def _hidden(cluster: Cluster, index: str, about: Index, by: Shown) -> Iterator[int]:
    """The first number of each shard whose document is hidden; the next one if none is."""
    body = {
        "query": visibility.hidden(by),
        "sort": [{"_seq_no": "asc"}],
        "size": 1,
        "_source": False,
        "track_total_hits": False,
    }
    for number, shard in enumerate(about.shards):
        target, preference = path(index, "_search"), f"_shards:{number}"
        answer = searched(cluster, DOING, target, body, preference=preference).body
        hits = answer["hits"]["hits"]
        yield int(hits[0]["sort"][0]) if hits else shard.final + 1
