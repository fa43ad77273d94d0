"""What a cluster says of shards: the history of each, and up to which number it is final.

A shard numbers its changes. Those up to its global checkpoint are in every copy that may become its
primary, so none of their numbers is ever given again, as long as the history is the same.
See https://www.elastic.co/blog/elasticsearch-sequence-ids-6-0
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_elasticsearch.follow.abouts import About, abouts, require_fit
from pyspark_elasticsearch.read.names import asked
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.errors import StoreUnreachable

SHOWN = ",".join(
    f"indices.*.shards.*.{one}"
    for one in (
        *("routing", "commit.user_data.history_uuid"),
        *("seq_no.global_checkpoint", "seq_no.max_seq_no"),
    )
)
ID = 8
"""Characters of a history's name that are kept: 48 bits, by which one shard's histories differ."""

FIRST, LONGEST = 0.01, 0.5
"""Seconds between two looks at what is not final yet."""

Copies = Mapping[str, Sequence[Mapping[str, Any]]]
"""The copies of each shard of an index, as the cluster shows them."""


@dataclass(frozen=True)
class Shard:
    """A shard, as its primary copy is.

    Attributes:
        history: what its numbers belong to. A shard that is restored, made of another one or of
            nothing has a new one, whatever the index is called.
        final: the number up to which changes are final, its global checkpoint.
        last: the highest number that it has given.
        node: that holds the primary.
    """

    history: str
    final: int
    last: int
    node: str


@dataclass(frozen=True)
class Index:
    """An index.

    Attributes:
        shards: all of them, by number.
        is_over: whether nothing writes to it any more, and all that it has is final.
        sink: whose decisions alone are shown, as filters have it; see `following.shown`.
    """

    shards: Sequence[Shard]
    is_over: bool
    sink: str = ""


def look(cluster: Cluster, index: str, *, all_there: bool = False) -> dict[str, Index]:
    """All indices that a name stands for.

    Args:
        cluster: where.
        index: names, aliases, data streams and patterns.
        all_there: whether it is an error that one of several names stands for nothing.

    Raises:
        StoreRefused: an index can't be followed.
        StoreUnreachable: a shard has no primary now.
    """
    found = abouts(cluster, index, all_there=all_there)
    for name, about in found.items():
        require_fit(name, about)
    copies = _copies(cluster, index) if found else {}
    return {name: _index(name, about, copies.get(name, {})) for name, about in found.items()}


def settled(cluster: Cluster, index: str, *, all_there: bool = False) -> dict[str, Index]:
    """The same, once all is final that the primaries have at first.

    Until then a change may go with its primary, and what it came over may be there again; and a new
    primary may tell of less that is final than the old one told.

    Raises:
        StoreRefused: an index can't be followed.
        StoreUnreachable: a shard has no primary now, or takes too long.
    """
    first = now = look(cluster, index, all_there=all_there)
    for pause in _pauses(cluster.timeout):
        if not (late := [*_late(first, now)]):
            return now
        time.sleep(pause)
        if pause == LONGEST:  # an idle primary tells what is on disk by now only if asked for more
            for name in {name for name, _ in late}:
                refresh(cluster, name)
        now = look(cluster, index)
    raise StoreUnreachable(
        f"Changes of shard {late[0][1]} of index {late[0][0]} are not final after"
        f" {cluster.timeout:g} s (option timeout)",
        why="a copy of the shard does not answer, or index.translog.durability=async writes them to"
        " the disk later",
        todo="look at the cluster's health; the query goes on where it stopped",
    )


def refresh(cluster: Cluster, index: str) -> None:
    """Let searches find what the index has now, on each of its copies; of none if it is gone.

    Raises:
        StoreUnreachable: a copy did not answer.
    """
    target = path(index, "_refresh")
    answer = cluster.ask("refreshing an index", "POST", target, allow=(404,))
    told = answer.body["_shards"] if answer.status == 200 else {"failed": 0}
    if told["failed"]:
        raise StoreUnreachable(
            f"Index {index} was not refreshed on {told['failed']} of {told['total']} shards",
            why="a search would not find there what was written last",
            todo="look at the cluster's health; the query tries it again",
        )


def _late(first: Mapping[str, Index], now: Mapping[str, Index]) -> Iterator[tuple[str, int]]:
    """Shards that are not settled. Of one that is another now, nothing is waited for."""
    for name in first.keys() & now.keys():
        pairs = zip(first[name].shards, now[name].shards, strict=False)
        for number, (old, new) in enumerate(pairs):
            if old.history == new.history and new.final < min(old.last, new.last):
                yield name, number


def _pauses(most: float) -> Iterator[float]:
    end, pause = time.monotonic() + most, FIRST
    while time.monotonic() < end:
        yield pause
        pause = min(2 * pause, LONGEST)


def _copies(cluster: Cluster, index: str) -> dict[str, Copies]:
    params = {"level": "shards", "filter_path": SHOWN, "ignore_unavailable": "true"}
    target = path(asked(index), "_stats", "docs")
    told = cluster.ask("looking at shards", "GET", target, params=params)
    return {name: about["shards"] for name, about in told.body.get("indices", {}).items()}


def _index(name: str, about: About, copies: Copies) -> Index:
    shards = [_shard(name, number, copies) for number in range(about.shards)]
    return Index(shards, about.is_over and all(one.final == one.last for one in shards))


def _shard(index: str, number: int, copies: Copies) -> Shard:
    for copy in copies.get(str(number), ()):
        at, numbers = copy["routing"], copy.get("seq_no")
        if at["primary"] and at["state"] != "INITIALIZING" and "commit" in copy and numbers:
            history = copy["commit"]["user_data"]["history_uuid"][:ID]
            final, last = (int(numbers[one]) for one in ("global_checkpoint", "max_seq_no"))
            return Shard(history, max(-1, final), last, at["node"])
    raise StoreUnreachable(
        f"Shard {number} of index {index} has no primary now",
        why="only that tells up to where changes are final",
        todo="look at the cluster's health (GET _cluster/allocation/explain); the query goes on"
        " where it stopped",
    )
