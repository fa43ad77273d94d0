"""Ingest pipelines: they may send a row elsewhere than option ``index`` says, under another id.

A row that is sent again must find itself; so what can be seen to change its index, id or routing is
refused. What a script does can't be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark_elasticsearch.client import Cluster, path
from sparkonce.errors import StoreRefused

DEFAULT, FINAL, NONE = "index.default_pipeline", "index.final_pipeline", "_none"
MOVES = ("reroute", "date_index_name")
"""Processors that choose the index of a row."""

ADDRESS = ("_index", "_id", "_routing")
"""What others must not write."""


def of(detail: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """The pipelines that a row goes through, but for those that they call.

    Args:
        detail: of a plan.
        settings: of the index, flat.
    """
    if detail["mode"] == "delete":
        return []
    first = detail["pipeline"] or settings.get(DEFAULT, NONE)
    return [str(name) for name in (first, settings.get(FINAL, NONE)) if name != NONE]


def require_kept(cluster: Cluster, detail: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse pipelines that change where a row goes, or its id.

    Raises:
        StoreRefused: it names the pipeline.
    """
    waiting, seen = of(detail, settings), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for kind, about in _processors(_definition(cluster, name)):
            if kind == "pipeline":
                waiting.append(str(about["name"]))
            if kind in MOVES or (about.get("target_field") or about.get("field")) in ADDRESS:
                raise elsewhere(f"Ingest pipeline {name!r} of {detail['index']} has {kind!r}")


def elsewhere(what: str) -> StoreRefused:
    """The error for rows that don't go where option ``index`` says."""
    return StoreRefused(
        what,
        why="a row that is sent again must find itself by its index and id; sent elsewhere by an"
        " ingest pipeline, it could be there twice, or another one be taken for it",
        todo="name the place of the rows in option index (a template, or a query for each), and"
        " write there without such a processor; then restart the query",
    )


def _definition(cluster: Cluster, name: str) -> Mapping[str, Any]:
    """A pipeline; an empty one if there is none of that name, which refuses each row itself."""
    target, doing = path("_ingest", "pipeline", name), f"looking at pipeline {name}"
    answer = cluster.ask(doing, "GET", target, allow=(404,))
    found: Mapping[str, Any] = answer.body.get(name, {}) if answer.status == 200 else {}
    return found


def _processors(about: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The processors of a pipeline, or within one, whatever they are for."""
    inner: Iterable[Mapping[str, Any]] = [
        *about.get("processors", ()),
        *about.get("on_failure", ()),
        *([about["processor"]] if "processor" in about else ()),
    ]
    for one in inner:
        for kind, settings in one.items():
            yield kind, settings
            yield from _processors(settings)
