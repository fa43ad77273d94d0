"""The target as the cluster knows it: which index a name leads to, and whether it is fit."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark_elasticsearch import kept, pipelines, streams
from pyspark_elasticsearch.client import Cluster, objects, path
from pyspark_elasticsearch.failures import FLOOD
from pyspark_elasticsearch.models.documents import Documents, Guard
from sparkonce import checks
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable, StoreUnsafe
from sparkonce.suggestions import suggestion
from sparkonce.values import seconds

log = logging.getLogger("sparkonce")

TOMBSTONES = 3600
"""Seconds for which a deleted document's version must be remembered."""


FLOODED = "read_only_allow_delete"
_PARTS = ("_source", "_routing", "dynamic")
"""Of the mappings, all that another index of the same name must not have otherwise unseen."""

_WHOLE = {"include_defaults": "true"}
_BRIEF = {
    "filter_path": ",".join(
        ["*.aliases", "*.data_stream", "*.settings", *(f"*.mappings.{part}" for part in _PARTS)]
    )
}


class Target(NamedTuple):
    """An index.

    Attributes:
        name: of the index itself, whatever alias leads to it; or of the data stream.
        settings: flat, defaults included.
        mappings: of its fields.
        since: of a data stream, the index that takes its writes; the settings are that one's.
        sign: all that was set of it, with its uuid: as long as that stays it is what it was.
    """

    name: str
    settings: Mapping[str, Any]
    mappings: Mapping[str, Any]
    since: str
    sign: Any


def resolve(
    cluster: Cluster, name: str, *, appends: bool = False, whole: bool = True
) -> Target | None:
    """The index that a name leads to now; None if there is none.

    Args:
        cluster: where.
        name: of the index, an alias or a data stream.
        appends: whether rows are added; else it must be one index for ever.
        whole: with all that there is to know of it.

    Raises:
        OptionError: it leads to several, or to one for a while only.
    """
    answer = cluster.ask(
        f"looking at index {name}",
        "GET",
        path(name),
        params={"flat_settings": "true", **(_WHOLE if whole else _BRIEF)},
        allow=(404,),
    )
    if answer.status == 404:
        return None
    found = objects(answer.body)
    if any(about.get("data_stream") == name for about in found.values()):
        since = _behind_stream(cluster, name, appends=appends)
        return _target(name, found.get(since, {}), since)
    chosen = name if name in found else _behind_alias(name, found, appends=appends)
    return _target(chosen, found[chosen])


def _target(name: str, about: Mapping[str, Any], since: str = "") -> Target:
    mappings, given = about.get("mappings", {}), about.get("settings", {})
    settings = {**about.get("defaults", {}), **given}
    sign = name, since, given, [mappings.get(part) for part in _PARTS]
    return Target(name, settings, mappings, since, sign)


def require_there(cluster: Cluster, name: str, *, appends: bool) -> Target:
    """The index, which was there when the query began.

    Raises:
        StoreRefused: it is not there any more.
    """
    found = resolve(cluster, name, appends=appends, whole=False)
    if found is None:
        raise StoreRefused(
            f"There is no index {name} any more",
            why="it was deleted since the query began; the rows of earlier epochs are gone with it",
            todo="restore it from a snapshot, or create it, then restart the query; to write all"
            " rows again, start a new checkpoint",
        )
    return found


def require_safe(target: Target) -> None:
    """Refuse an index that may lose what it has acknowledged, or that takes no writes.

    Raises:
        StoreUnsafe: ``index.translog.durability`` is ``async``.
        StoreRefused: it is read-only.
        StoreUnreachable: it is so for now.
    """
    settings = target.settings
    if str(settings.get("index.translog.durability", "request")).lower() == "async":
        raise StoreUnsafe(
            f"Index {target.name} has index.translog.durability=async",
            why="rows that were acknowledged are lost if a node dies within seconds, and the epoch"
            " is finished by then",
            todo=f'PUT {target.name}/_settings {{"index.translog.durability": "request"}}',
        )
    if settings.get("index.verified_before_close") == "true":
        raise _blocked(target.name, "is closed", f"POST {target.name}/_open")
    for block in ("read_only", "write", FLOODED):
        if str(settings.get(f"index.blocks.{block}")).lower() == "true":
            said = f"has index.blocks.{block}"
            if block == FLOODED:  # which passes: the same is asked again for a while
                todo = f"{FLOOD.todo}, after which it removes the block by itself, or remove it"
                raise StoreUnreachable(f"Index {target.name} {said}", FLOOD.why, todo)
            raise _blocked(target.name, said, "remove the block")


def require_mapped(target: Target, columns: Sequence[str]) -> None:
    """Refuse a column that a strict mapping lacks: every row would be, after its decision.

    Raises:
        OptionError: it names the column.
    """
    fields = target.mappings.get("properties", {})
    if str(target.mappings.get("dynamic")) != "strict":
        return
    for name in columns:
        # A dot leads into an object, which may be mapped otherwise.
        if name not in fields and name.partition(".")[0] not in fields:
            raise OptionError(
                f"Column {name!r} of the query is not in the mapping of index {target.name}",
                why=f"the mapping is strict, and its fields are {', '.join(sorted(fields))}",
                todo=suggestion(name, fields) or "add it to the mapping, or drop it",
            )


def require_fit(target: Target, documents: Documents) -> None:
    """Refuse an index that can't take these rows, or would refuse each after its decision.

    Raises:
        OptionError: it says which.
        StoreUnsafe: it has no sequence numbers.
    """
    refusals = [*_of_streams(target, documents)] if target.since else []
    checks.refuse((*refusals, *_of_ids(target, documents)))
    kept.require_numbered(target.name, target.settings)


def _of_streams(target: Target, documents: Documents) -> Iterator[checks.Contradiction]:
    stream = f"index={target.name!r}, a data stream"
    yield (
        documents.alias,
        f"Options visibleAlias and {stream}, contradict each other",
        "the alias would show one of its indices",
        "leave visibleAlias out, or write into an index",
    )
    yield (
        documents.routing,
        f"Option routing does not go with {stream}",
        "a row that is sent again is looked for by its id, in all indices of the stream",
        "leave it out",
    )
    named = ", ".join(map(repr, pipelines.of(documents, target.settings)))
    yield (
        named,
        f"Rows for data stream {target.name} would go through ingest pipeline {named}",
        "a row that is sent again is looked for by its id, and a pipeline can change that",
        "leave option pipeline out, and set index.default_pipeline and index.final_pipeline to"
        " _none in the stream's last index and its index template; or write into an index, or a"
        " rollover alias",
    )
    yield (
        streams.TIMESTAMP not in documents.columns,
        f"The query has no column {streams.TIMESTAMP!r}, and {target.name} is a data stream",
        "every document of a data stream must have it",
        "name a column so: .withColumn('@timestamp', ...)",
    )


def _of_ids(target: Target, documents: Documents) -> Iterator[checks.Contradiction]:
    yield (
        target.settings.get("index.mode") == "time_series",
        f"Option index: {target.name} has index.mode=time_series",
        "it makes ids itself, and by its id a row that is sent again is told",
        "write into an index of another mode",
    )
    asks = str(target.mappings.get("_routing", {}).get("required")).lower() == "true"
    yield (
        asks and not documents.routing,
        f"Option routing is missing, and the mapping of {target.name} asks for a routing",
        "every row would be refused, after its epoch is decided",
        "name the column in option routing",
    )


def prepare_for(cluster: Cluster, target: Target, documents: Documents) -> None:
    """Let the index be what a write mode needs: the guard's mapping, tombstones that last."""
    if documents.way.guard is Guard.SCRIPT:
        kept.prepare_for_scripts(cluster, target.name, target.settings, target.mappings)
    deletes = documents.way.verb == "delete" or documents.op
    if deletes and _seconds(str(target.settings.get("index.gc_deletes", "60s"))) < TOMBSTONES:
        body = {"index.gc_deletes": f"{TOMBSTONES}s"}
        answer = cluster.ask(
            "raising index.gc_deletes",
            "PUT",
            path(target.name, "_settings"),
            body=body,
            allow=(403,),
        )
        if answer.status == 403:
            log.warning(
                "Index %s forgets after %s what was deleted, and this user may not change that:"
                " a write that is late by more brings a deleted document back",
                target.name,
                target.settings.get("index.gc_deletes", "60s"),
            )


def _behind_stream(cluster: Cluster, name: str, *, appends: bool) -> str:
    if not appends:
        raise OptionError(
            f"Option index={name!r} names a data stream, and rows are not appended",
            why="a data stream takes new documents only, and a rollover moves on to another index",
            todo="name an index, or use writeMode=append",
        )
    return streams.backing(cluster, name)[-1]


def _behind_alias(name: str, found: Mapping[str, Any], *, appends: bool) -> str:
    aliases = {index: about.get("aliases", {}).get(name, {}) for index, about in found.items()}
    writable = [index for index, about in aliases.items() if about.get("is_write_index")]
    rollover = len(aliases) > 1 or any("is_write_index" in about for about in aliases.values())
    named = f"Option index={name!r} names"
    refusals = (
        (
            any("data_stream" in about for about in found.values()),
            f"{named} an alias of a data stream",
            "a row that is sent again is looked up by the name of the stream itself",
            "name the data stream, an index, or an alias of one",
        ),
        (
            any("index_routing" in about for about in aliases.values()),
            f"{named} an alias that routes documents",
            "rows go to the index behind it, where its routing does not reach them: they would be"
            " second documents beside those that others write by the alias",
            "name the index, and the column of the routing in option routing",
        ),
        (
            rollover and not appends,
            f"{named} an alias of {len(aliases)} indices that rolls over",
            "a document is looked up by its id, which may lie in any of them",
            "name one index, or use writeMode=append",
        ),
        (
            not writable and len(aliases) > 1,
            f"{named} an alias of {', '.join(sorted(aliases))}",
            "none of them is its write index",
            "set is_write_index on one of them, or name an index",
        ),
    )
    checks.refuse(refusals)
    return next(iter(writable or aliases))


def _blocked(index: str, what: str, todo: str) -> StoreRefused:
    return StoreRefused(
        f"Index {index} {what}", why="it takes no writes", todo=f"{todo}, then restart the query"
    )


def _seconds(text: str) -> float:
    try:
        return float(seconds(0, float("inf"))(text))
    except ValueError:  # micros and nanos
        return 0.0
