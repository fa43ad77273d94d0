"""Reads the state of shards: the numbers up to which changes are final and visible.

A shard numbers its changes. Every copy that may become the primary has all changes up to the global
checkpoint, so within one history the shard never reuses their numbers.
See https://www.elastic.co/blog/elasticsearch-sequence-ids-6-0

An alias may have a filter, or a routing to some shards, and both may change at any time. A query
would never read the documents that the alias hides when the query passes them. So this module
rejects such aliases, except one of option ``visibleAlias``. Its filter hides decisions of its sink
that are incomplete, and later shows all of them. A query stops before the first hidden document.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark_elasticsearch.read.fields import asked, left_out
from pyspark_elasticsearch.server.client import Cluster, by_name, path
from pyspark_elasticsearch.server.reads import batches, index_names, search
from pyspark_elasticsearch.target import aliases
from pyspark_elasticsearch.target.aliases import AliasFilter
from sparkonce.errors import StoreRefused, StoreUnreachable

LOOKING, ASKING = "reading indices", "reading filters of aliases"
OFF = "index.disable_sequence_numbers"
SETTINGS = ",".join(
    f"*.settings.index.{one}"
    for one in (
        *("number_of_shards", "mode", "disable_sequence_numbers"),
        *("verified_before_close", "blocks.read_only", "blocks.write"),
        *("ingestion_source.type", "remote_store.enabled"),
    )
)
COPIES = ",".join(
    f"indices.*.shards.*.{one}"
    for one in (
        *("routing", "commit.user_data.history_uuid"),
        *("seq_no.global_checkpoint", "seq_no.max_seq_no"),
    )
)
BATCH = 12  # names in the line of a request, which has 4 KB at most
NUMBERED = ("standard", "logsdb", "lookup")  # modes of indices that keep numbers by default

ID = 8
"""Characters of a history's name to keep: 48 bits distinguish the histories of one shard."""

FIRST, LONGEST = 0.01, 0.5  # seconds between two checks of changes that are not final
Copies = Mapping[str, Sequence[Mapping[str, Any]]]
"""The copies of each shard of an index, in the cluster's form."""


@dataclass(frozen=True)
class Shard:
    """The state of a shard in its primary.

    Its numbers belong to a history. A new, restored, split or shrunk shard has a new history, under
    any name of the index.
    """

    history: str
    final: int  # the number up to which changes are final, its global checkpoint
    last: int  # the highest number in use
    node: str  # the node of the primary


@dataclass(frozen=True)
class IndexInfo:
    """An index."""

    shards: Sequence[Shard]  # all of them, by number
    is_over: bool  # it accepts no writes, and all its changes are final
    sink: str = ""  # digest of the only sink whose decisions are visible; see `shown`


Indices = Mapping[str, IndexInfo]  # by name


def describe_indices(cluster: Cluster, index: str, *, require_all: bool = False) -> Indices:
    """All indices that names, aliases, data streams and patterns resolve to.

    With `require_all`, each of several names must resolve to an index.

    Raises:
        StoreRefused: an index can't be followed.
        StoreUnreachable: a shard has no primary now.
    """
    params = {
        "filter_path": SETTINGS,
        "expand_wildcards": "open,closed",
        **cluster.dialect.settings_only,
    }
    if "," in index and not require_all:  # a single name without rights would seem to be missing
        params["ignore_unavailable"] = "true"
    allowed = () if require_all else (404,)
    status, body = cluster.ask(LOOKING, "GET", path(asked(index)), params=params, allow=allowed)
    found = by_name(body) if body and status == 200 else {}
    settings = {name: about["settings"]["index"] for name, about in found.items()}
    off, out = _off_by_mode(cluster, index, settings), left_out(cluster, index)
    wanted = {name: one for name, one in settings.items() if name not in out}
    for name, one in wanted.items():
        _require_followable(name, one, name in off)
    copies = _copies(cluster, index) if wanted else {}
    return {name: _info(name, one, copies.get(name, {})) for name, one in wanted.items()}


def existing(cluster: Cluster, names: Sequence[str]) -> set[str]:
    """Those of some indices that exist, and that the user may see."""
    params = {"ignore_unavailable": "true", **cluster.dialect.settings_only}
    found = (
        index_names(cluster, LOOKING, ",".join(page), (403, 404), **params)
        for page in batches(names, BATCH)
    )
    return set[str]().union(*found)


def _info(name: str, settings: Mapping[str, Any], copies: Copies) -> IndexInfo:
    shards = [_shard(name, at, copies) for at in range(int(settings["number_of_shards"]))]
    # An index still accepts writes by name after a rollover.
    is_over = "true" in settings.get("blocks", {}).values()
    return IndexInfo(shards, is_over and all(one.final == one.last for one in shards))


def _off_by_mode(cluster: Cluster, index: str, settings: Mapping[str, Any]) -> set[str]:
    """Indices without numbers, by the default of their mode.

    The cluster needs 2 ms to show the defaults of each index, so this asks only if necessary.
    """
    if not any(
        one.get("mode", "standard") not in NUMBERED and "disable_sequence_numbers" not in one
        for one in settings.values()
    ):
        return set()
    params = {"include_defaults": "true", "flat_settings": "true", "ignore_unavailable": "true"}
    shown = cluster.ask(LOOKING, "GET", path(asked(index), "_settings", OFF), params=params).body
    return {name for name, about in shown.items() if about["defaults"].get(OFF) == "true"}


def _require_followable(index: str, settings: Mapping[str, Any], is_off: bool) -> None:
    out = f"leave it out of option index (such as logs-*,-{index})"
    if settings.get("verified_before_close") == "true":
        raise StoreRefused(
            f"Index {index} is closed, so a query can't follow it",
            why="a closed index cannot be read",
            todo=f"open it (POST {index}/_open), or {out}",
        )
    if settings.get("ingestion_source", {}).get("type", "none").lower() != "none":
        raise StoreRefused(
            f"Index {index} can't be followed: it has index.ingestion_source.type",
            why="it takes documents from that source, without numbers of changes",
            todo=f"follow the source itself, or {out}",
        )
    if settings.get("remote_store", {}).get("enabled") == "true":
        raise StoreRefused(
            f"Index {index} can't be followed: it has index.remote_store.enabled=true",
            why="sparkonce was not tested there: a change that counts as final may be lost with its"
            " node",
            todo=f"reindex it into a cluster without remote-backed storage, or {out}",
        )
    if is_off or settings.get("disable_sequence_numbers") == "true":
        raise StoreRefused(
            f"Index {index} can't be followed: it does not keep numbers of changes",
            why=f"{OFF} is true, by its settings or its index.mode",
            todo=f"recreate it with {OFF} false (in its index template), or {out}",
        )


def settled(cluster: Cluster, index: str, *, require_all: bool = False) -> Indices:
    """The indices, once all changes that the primaries have at first are final.

    Until then a change may be lost with its primary, and the previous state of the document may
    return. A new primary may also report fewer final changes than the old one. `StoreUnreachable`
    if this exceeds option ``timeout``.
    """
    first = now = describe_indices(cluster, index, require_all=require_all)
    end, pause = time.monotonic() + cluster.timeout, FIRST
    while late := [*_late(first, now)]:
        if time.monotonic() > end:
            raise StoreUnreachable(
                f"Changes of shard {late[0][1]} of index {late[0][0]} are not final after"
                f" {cluster.timeout:g} s (option timeout)",
                why="a copy of the shard does not answer, or index.translog.durability=async writes"
                " them to the disk later",
                todo="check the cluster's health; the query resumes where it stopped",
            )
        time.sleep(pause)
        if pause == LONGEST:  # a refresh makes an idle primary report what is on disk
            for name in {name for name, _ in late}:
                refresh(cluster, name)
        now, pause = describe_indices(cluster, index), min(2 * pause, LONGEST)
    return now


def refresh(cluster: Cluster, index: str) -> None:
    """Refresh each copy of the index for searches; nothing if the index is missing."""
    target = path(index, "_refresh")
    answer = cluster.ask("refreshing an index", "POST", target, allow=(404,))
    copies = answer.body["_shards"] if answer.status == 200 else {"failed": 0}
    if copies["failed"]:
        raise StoreUnreachable(
            f"Index {index} was not refreshed on {copies['failed']} of {copies['total']} shards",
            why="a search there would not find the last writes",
            todo="check the cluster's health; the query retries",
        )


def _late(first: Indices, now: Indices) -> Iterator[tuple[str, int]]:
    """Shards that are not settled, without those that have a new history."""
    for name in first.keys() & now.keys():
        pairs = zip(first[name].shards, now[name].shards, strict=False)
        for number, (old, new) in enumerate(pairs):
            if old.history == new.history and new.final < min(old.last, new.last):
                yield name, number


def _copies(cluster: Cluster, index: str) -> dict[str, Copies]:
    params = {"level": "shards", "filter_path": COPIES, "ignore_unavailable": "true"}
    target = path(asked(index), "_stats", "docs")
    body = cluster.ask("reading shards", "GET", target, params=params).body
    return {name: about["shards"] for name, about in body.get("indices", {}).items()}


def _shard(index: str, number: int, copies: Copies) -> Shard:
    for copy in copies.get(str(number), ()):
        at, numbers = copy["routing"], copy.get("seq_no")
        if at["primary"] and at["state"] != "INITIALIZING" and "commit" in copy and numbers:
            history = copy["commit"]["user_data"]["history_uuid"][:ID]
            final, last = (int(numbers[one]) for one in ("global_checkpoint", "max_seq_no"))
            return Shard(history, max(-1, final), last, at["node"])
    raise StoreUnreachable(
        f"Shard {number} of index {index} has no primary now",
        why="only the primary reports up to where changes are final",
        todo="check the cluster's health (GET _cluster/allocation/explain); the query resumes"
        " where it stopped",
    )


def shown(cluster: Cluster, index: str, found: Indices) -> Indices:
    """The indices that `describe_indices` found, up to the first hidden document.

    `StoreRefused` for an alias that hides documents in another way.
    """
    if not found:
        return found
    params = {"ignore_unavailable": "true", "filter_path": "indices,shards.index,shards.shard"}
    body = cluster.ask(ASKING, "GET", path(asked(index), "_search_shards"), params=params).body
    if not all(body.get("shards", ())):  # a shard without a searchable copy has no name
        raise StoreUnreachable(
            f"A shard of {index} has no searchable copy now",
            why="no node has a started copy",
            todo="check the cluster's health; the query retries",
        )
    return {name: _shown(cluster, name, one, body) for name, one in found.items()}


def _shown(cluster: Cluster, name: str, index: IndexInfo, searched: Mapping[str, Any]) -> IndexInfo:
    # https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search-shards
    by = searched.get("indices", {}).get(name)
    if by is None:  # deleted since; the next look-up reports it
        return index
    shards = searched.get("shards", ())
    numbers = {copies[0]["shard"] for copies in shards if copies[0]["index"] == name}
    if not numbers >= {*range(len(index.shards))}:
        raise _hides(name, by, "a routing to some shards")
    query = by.get("filter")
    if query is None:
        return index
    shows = aliases.shown_by(query)
    if shows is None:
        raise _hides(name, by, "a filter")
    return _until_hidden(cluster, name, index, shows)


def _hides(index: str, by: Mapping[str, Any], how: str) -> StoreRefused:
    names = " and ".join(by.get("aliases", ()))
    return StoreRefused(
        f"Index {index} can't be followed by alias {names}, which has {how}",
        why="it may change at any time, and the query would never read the documents that it hides"
        " now",
        todo="name the index itself, or its data stream, in option index, and select documents"
        " by option query, or by where() in Spark",
    )


def _until_hidden(cluster: Cluster, name: str, index: IndexInfo, shows: AliasFilter) -> IndexInfo:
    refresh(cluster, name)  # otherwise a search misses hidden documents
    shards = [
        replace(shard, final=min(shard.final, _first_hidden(cluster, name, at, shows) - 1))
        for at, shard in enumerate(index.shards)
    ]
    return IndexInfo(shards, index.is_over and shards == [*index.shards], shows.sink)


def _first_hidden(cluster: Cluster, index: str, shard: int, shows: AliasFilter) -> int:
    """The first number of a hidden document in a shard; above all numbers if none is."""
    body = {
        "query": aliases.hidden(shows),
        "sort": [{"_seq_no": "asc"}],
        "size": 1,
        "_source": False,
        "track_total_hits": False,
    }
    target, preference = path(index, "_search"), f"_shards:{shard}"
    found = search(cluster, ASKING, target, body, preference=preference).body["hits"]["hits"]
    return int(found[0]["sort"][0]) if found else 2**63
