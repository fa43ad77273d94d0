"""Ingest pipelines: they may send a row elsewhere than option ``index`` says, or make it newer.

A row that is sent again must find itself, and be as old as it was; so a pipeline is refused unless
all of it is proven to leave index, id, routing and version alone: see `processors`. Of pipelines
that nobody could look at beforehand the answers tell: see `whereabouts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.target.processors import ADDRESS, touched
from sparkonce.errors import OptionError, StoreRefused

if TYPE_CHECKING:
    from pyspark_elasticsearch.write.documents import Documents

DEFAULT, FINAL, NONE = "index.default_pipeline", "index.final_pipeline", "_none"
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
    """Refuse pipelines, unless all that they do leaves alone what addresses a document.

    Raises:
        OptionError: there is no such pipeline as option ``pipeline`` names, or the server would
            take a column for what addresses a document.
        StoreRefused: it names the pipeline.
    """
    if documents.pipeline and found.get(documents.pipeline) == {}:
        raise OptionError(
            f"Option pipeline: there is no ingest pipeline {documents.pipeline!r}",
            why="every row would be refused, after its epoch is decided",
            todo="create it, or mend the option",
        )
    if found and (taken := [name for name in documents.columns if name in ADDRESS]):
        raise OptionError(
            f"Column {taken[0]!r} can't go through ingest pipeline {min(found)!r}",
            why="a pipeline takes no document with such a field, and refuses every row, after its"
            " epoch is decided",
            todo="rename the column before the sink, or write into an index without a pipeline",
        )
    for name in _lacking(found):
        raise OptionError(
            f"There is no ingest pipeline {name!r}, which {documents.index} or another one names",
            why="every row that comes to it would be refused, after its epoch is decided",
            todo="create it, or let nothing name it",
        )
    for name, about in found.items():
        for kind, settings in _processors(about):
            if said := touched(kind, settings):
                raise StoreRefused(
                    f"Ingest pipeline {name!r} of {documents.index} has {kind!r}, {said}",
                    why="index, id and routing tell a row that is sent again, and the version an"
                    " older one: were they changed, it could be there twice, or undo a newer row."
                    " So a pipeline may do only what is known to leave them alone",
                    todo="do that work in the query, or by a processor that docs/elasticsearch.md"
                    ' lists ("Ingest pipelines"), with names of fields that are written out and do'
                    " not begin with _; then restart the query",
                )


def _lacking(found: Mapping[str, Definition]) -> list[str]:
    """Those that are not there, but for those that may be missing where they are called."""
    calls = [
        told for one in found.values() for kind, told in _processors(one) if kind == "pipeline"
    ]
    may = {one["name"] for one in calls if one.get("ignore_missing_pipeline")}
    must = {one["name"] for one in calls if not one.get("ignore_missing_pipeline")}
    return [name for name, about in found.items() if about == {} and name not in may - must]


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
        if kind == "pipeline" and "{{" not in settings["name"]:  # else it is refused
            yield str(settings["name"])


def _processors(about: Definition) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The processors of a pipeline, or within one, whatever they are for."""
    inner: Iterable[Mapping[str, Any]] = [
        *about.get("processors", ()),
        *about.get("on_failure", ()),
        *([about["processor"]] if "processor" in about else ()),
    ]
    for one in inner:
        for kind, told in one.items():
            # In short the server takes a script as its text alone.
            settings = told if isinstance(told, Mapping) else {"source": told}
            yield kind, settings
            yield from _processors(settings)
