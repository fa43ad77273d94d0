"""The target as the cluster knows it: which index a name leads to, and whether it is fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch.server.client import Cluster, objects, path
from pyspark_elasticsearch.target import streams
from sparkonce import checks
from sparkonce.errors import OptionError, StoreRefused

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

    @property
    def fields(self) -> Mapping[str, Any]:
        """The mappings of its fields."""
        found: Mapping[str, Any] = self.mappings.get("properties", {})
        return found

    def says(self, setting: str) -> str:
        """A setting, in lower case; empty where it is not set."""
        return str(self.settings.get(setting) or "").lower()


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
            len(aliases) > 1 and not appends,
            f"{named} an alias of {', '.join(sorted(aliases))}",
            "a document is looked up by its id, which may lie in any of them",
            "name one index, or use writeMode=append",
        ),
        (
            any("is_write_index" in about for about in aliases.values()) and not appends,
            f"{named} an alias of {', '.join(aliases)} with is_write_index",
            "so it may come to be an alias of several indices, by a rollover, and a document is"
            " looked up by its id, which may lie in any of them",
            "name the index itself, or use writeMode=append",
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
