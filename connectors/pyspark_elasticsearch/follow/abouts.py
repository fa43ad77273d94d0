"""What a cluster says of indices: whether they can be followed, and whether they are over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_elasticsearch.read.names import asked, left_out
from pyspark_elasticsearch.server.client import Cluster, Told, objects, path
from sparkonce.errors import StoreRefused

LOOKING = "looking at indices"
OFF = "index.disable_sequence_numbers"
SETTINGS = (
    *("number_of_shards", "mode", "disable_sequence_numbers"),
    *("verified_before_close", "blocks.read_only", "blocks.write"),
)
SHOWN = ",".join(f"*.settings.index.{one}" for one in SETTINGS)
AT_ONCE = 12
"""Names in the line of a request, which has 4 KB at most."""

NUMBERED = ("standard", "logsdb", "lookup")
"""Modes of indices that keep numbers, as long as no setting says otherwise."""


@dataclass(frozen=True)
class About:
    """An index.

    Attributes:
        shards: how many it has.
        is_closed: whether nothing can be read of it.
        is_numbered: whether it keeps the numbers of changes.
        is_over: whether it takes no writes any more. One that rolled over takes those by its name.
    """

    shards: int
    is_closed: bool
    is_numbered: bool
    is_over: bool


def abouts(cluster: Cluster, index: str, *, all_there: bool) -> dict[str, About]:
    """All indices that a name stands for.

    Args:
        cluster: where.
        index: names, aliases, data streams and patterns.
        all_there: whether it is an error that one of several names stands for nothing.
    """
    params = {
        "filter_path": SHOWN,
        "features": "settings",
        "expand_wildcards": "open,closed",
    }
    if "," in index and not all_there:  # of a single name, a lack of rights would pass for a lack
        params["ignore_unavailable"] = "true"
    allowed = () if all_there else (404,)
    status, body = cluster.ask(LOOKING, "GET", path(asked(index)), params=params, allow=allowed)
    told = objects(body) if body and status == 200 else {}
    off, out = _off_by_mode(cluster, index, told), left_out(cluster, index)
    return {name: _about(about, name in off) for name, about in told.items() if name not in out}


def existing(cluster: Cluster, names: Sequence[str]) -> set[str]:
    """Those of some indices that exist, and that the user may see."""
    params = {"filter_path": SHOWN, "features": "settings", "ignore_unavailable": "true"}
    found = set[str]()
    for at in range(0, len(names), AT_ONCE):
        asked = path(",".join(names[at : at + AT_ONCE]))
        status, body = cluster.ask(LOOKING, "GET", asked, params=params, allow=(403, 404))
        found.update(objects(body) if body and status == 200 else ())
    return found


def _about(told: Told, is_off: bool) -> About:
    settings = told["settings"]["index"]
    return About(
        shards=int(settings["number_of_shards"]),
        is_closed=settings.get("verified_before_close") == "true",
        is_numbered=not is_off and settings.get("disable_sequence_numbers") != "true",
        is_over="true" in settings.get("blocks", {}).values(),
    )


def require_fit(index: str, about: About) -> None:
    """Refuse an index that can't be followed.

    Raises:
        StoreRefused: it is closed, or keeps no numbers.
    """
    out = f"leave it out of option index (such as logs-*,-{index})"
    if about.is_closed:
        raise StoreRefused(
            f"Index {index} is closed, so that it can't be followed",
            why="nothing can be read of it now",
            todo=f"open it (POST {index}/_open), or {out}",
        )
    if not about.is_numbered:
        raise StoreRefused(
            f"Index {index} can't be followed: it does not keep the numbers of its changes",
            why=f"{OFF} is true, by its settings or its index.mode",
            todo=f"make it anew with {OFF} false (in its index template), or {out}",
        )


def _off_by_mode(cluster: Cluster, index: str, told: Mapping[str, Told]) -> set[str]:
    """Indices that lack numbers though no setting of their own says so.

    The cluster takes 2 ms to show the defaults of each, so it is not always asked.
    """
    if not any(_may_be_off(about["settings"]["index"]) for about in told.values()):
        return set()
    params = {"include_defaults": "true", "flat_settings": "true", "ignore_unavailable": "true"}
    shown = cluster.ask(LOOKING, "GET", path(asked(index), "_settings", OFF), params=params).body
    return {name for name, about in shown.items() if about["defaults"].get(OFF) == "true"}


def _may_be_off(settings: Mapping[str, Any]) -> bool:
    mode = settings.get("mode", "standard")
    return mode not in NUMBERED and "disable_sequence_numbers" not in settings
