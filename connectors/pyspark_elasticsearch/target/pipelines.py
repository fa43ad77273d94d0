"""Ingest pipelines: they may send a row elsewhere than option ``index`` says, under another id.

A row that is sent again must find itself; so what can be seen to change its index, id or routing is
refused. Of what can't be seen (a script, names that are made from a row) the answers tell: see
`whereabouts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.errors import OptionError, StoreRefused

if TYPE_CHECKING:
    from pyspark_elasticsearch.models.documents import Documents

DEFAULT, FINAL, NONE = "index.default_pipeline", "index.final_pipeline", "_none"
MOVES = ("reroute", "date_index_name")
"""Processors that choose the index of a row."""

ADDRESS = ("_index", "_id", "_routing")
"""What others must not write."""

PAGE = 20
"""Pipelines in a request: its line is at most 4 KB (``http.max_initial_line_length``)."""

Definition = Mapping[str, Any]


def of(documents: Documents, settings: Mapping[str, Any]) -> list[str]:
    """The pipelines that a row goes through, but for those that they call."""
    if documents.way.verb == "delete":
        return []
    through = dict(of_index(settings))
    first = documents.pipeline or through.get(DEFAULT)
    return [name for name in (first, through.get(FINAL)) if name]


def of_index(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings of an index that name a pipeline, with its name."""
    named = ((option, str(settings.get(option, NONE))) for option in (DEFAULT, FINAL))
    return [(option, name) for option, name in named if name != NONE]


def tree(cluster: Cluster, first: Iterable[str]) -> dict[str, Definition]:
    """The definitions of pipelines and of those that they call; of what is not there empty ones."""
    found: dict[str, Definition] = {}
    names = set(first)
    while names:
        level = read(cluster, names)
        found |= level
        names = {one for about in level.values() for one in _called(about)} - found.keys()
    return found


def read(cluster: Cluster, names: Iterable[str]) -> dict[str, Definition]:
    """The definitions of these pipelines as they are now; an empty one of what is not there."""
    wanted, found = sorted(names), dict[str, Definition]()
    for start in range(0, len(wanted), PAGE):
        page = wanted[start : start + PAGE]
        target, doing = path("_ingest", "pipeline", ",".join(page)), "looking at ingest pipelines"
        answer = cluster.ask(doing, "GET", target, allow=(404,))
        told = answer.body if answer.status == 200 else {}
        found |= {name: told.get(name, {}) for name in page}
    return found


def require_kept(documents: Documents, found: Mapping[str, Definition]) -> None:
    """Refuse pipelines that can be seen to change where a row goes, or its id.

    Raises:
        OptionError: there is no such pipeline as option ``pipeline`` names.
        StoreRefused: it names the pipeline.
    """
    if documents.pipeline and found.get(documents.pipeline) == {}:
        raise OptionError(
            f"Option pipeline: there is no ingest pipeline {documents.pipeline!r}",
            why="every row would be refused, after its epoch is decided",
            todo="create it, or mend the option",
        )
    for name, about in found.items():
        for kind, settings in _processors(about):
            named = settings.get("target_field") or settings.get("field")
            if kind in MOVES or named in ADDRESS:
                raise elsewhere(f"Ingest pipeline {name!r} of {documents.index} has {kind!r}")


def elsewhere(what: str) -> StoreRefused:
    """The error for rows that don't go where option ``index`` says."""
    return StoreRefused(
        what,
        why="a row that is sent again must find itself by its index and id; sent elsewhere by an"
        " ingest pipeline, it could be there twice, or another one be taken for it",
        todo="name the place of the rows in option index (a template, or a query for each), and"
        " write there without such a processor; then restart the query",
    )


def _called(about: Definition) -> Iterator[str]:
    for kind, settings in _processors(about):
        if kind == "pipeline" and "{{" not in settings["name"]:  # else a row's values name it
            yield str(settings["name"])


def _processors(about: Definition) -> Iterator[tuple[str, Mapping[str, Any]]]:
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
