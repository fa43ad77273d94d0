"""The rest of a decided epoch goes to another index: the first one takes no writes any more.

Ids are made from what was decided. So once the first index can't take a row any more, a look-up by
id tells for ever which rows are there; only the others go to the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark_elasticsearch import pipelines, streams, targets
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.sending import Operation
from sparkonce.errors import StoreRefused, StoreUnreachable
from sparkonce.protocol import Manifest

BEFORE = "before"
"""The note of a manifest that names the indices where its rows may be already."""


def redirected(cluster: Cluster, manifest: Manifest, index: str) -> Manifest:
    """The manifest with another index; the first one is closed to writes, also to those under way.

    Raises:
        StoreRefused: the rows can't go there, or what is in the first index can't be known.
    """
    detail, notes = manifest.detail, manifest.notes
    if detail["mode"] != "append" or detail["visibleAlias"] or not _is_index(notes):
        raise StoreRefused(
            f"Epoch {manifest.epoch} of {detail['index']} can't go to another index",
            why="that is for writeMode=append into an index or an alias, without visibility=epoch:"
            " a key names a document in its index, and a data stream moves on by itself",
            todo="let the index take writes again, then restart the query",
        )
    if detail["routing"]:
        raise StoreRefused(
            f"Epoch {manifest.epoch} of {detail['index']} can't go to another index",
            why="it has option routing, and which rows the first index has is looked up by their"
            " ids alone: those with a routing would not be found, and be there twice",
            todo="let the index take writes again, then restart the query",
        )
    there = targets.require_there(cluster, {**detail, "index": notes["index"]})
    new = targets.resolve(cluster, {**detail, "index": index})
    if new is not None and new.name == there.name and notes.get(BEFORE):
        return manifest  # redirected already, by a command that died before it could finish
    if new is None or new.since or new.name == there.name:
        raise StoreRefused(
            f"Epoch {manifest.epoch} can't go to {index}",
            why="it is no index, or the one where the rows go now",
            todo="name another index, or an alias of one; create it first if need be",
        )
    targets.require_safe(new)
    targets.require_ids_fit(new, detail)
    targets.require_mapped(new, detail["columns"])
    through = pipelines.tree(cluster, pipelines.of(detail, new.settings))
    pipelines.require_kept({**detail, "index": index}, through)
    _close_to_writes(cluster, there)
    before = [*notes.get(BEFORE, ()), there.name]
    return replace(manifest, notes={**notes, "index": new.name, BEFORE: before})


def without_those_there(
    cluster: Cluster, before: Iterable[str], rows: Sequence[Operation]
) -> list[Operation]:
    """The rows that none of these indices has."""
    left = {streams.id_of(one.lines): one for one in rows}
    for index in before:
        for id_ in streams.found(cluster, index, [*left]) if left else ():
            del left[id_]
    return [*left.values()]


def _close_to_writes(cluster: Cluster, index: targets.Target) -> None:
    """Wait for what is under way; a block that was set by settings alone has not waited.

    Elasticsearch 8 does not look once more at the shards of an index that is closed already, so it
    is opened for a moment. What comes in then is there by the time that rows are looked up.
    """
    said = _block(cluster, index.name)
    if not said.get("indices") and _has_block(index):
        body = {"index.blocks.write": None}
        opening, settings = f"opening index {index.name} to writes", path(index.name, "_settings")
        opened = cluster.ask(opening, "PUT", settings, body=body, allow=(400, 403))
        if opened.status != 200:
            return  # read-only for good, such as a mounted snapshot: nothing can be under way
        said = _block(cluster, index.name)
    blocked = [one.get("blocked") for one in said.get("indices", ())]
    if not (said["acknowledged"] and said["shards_acknowledged"] and blocked and all(blocked)):
        raise StoreUnreachable(
            f"Not every shard of {index.name} was closed to writes in time",
            why="a row that is on its way there could be written twice",
            todo="look into the cluster, and run the command again",
        )


def _block(cluster: Cluster, name: str) -> Mapping[str, Any]:
    doing = f"closing index {name} to writes"
    said: Mapping[str, Any] = cluster.ask(doing, "PUT", path(name, "_block", "write")).body
    return said


def _has_block(index: targets.Target) -> bool:
    return str(index.settings.get("index.blocks.write")).lower() == "true"


def _is_index(notes: Mapping[str, Any]) -> bool:
    """Whether rows go to one index, and to no data stream."""
    return bool(notes.get("index")) and not notes.get("since")
