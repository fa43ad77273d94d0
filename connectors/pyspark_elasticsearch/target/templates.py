"""Option ``index`` as a template of names: ``events-{country}-{at:yyyy.MM.dd}``.

Its names are unknown before its rows arrive. So the checks cover every index and index template of
the cluster that may match such a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.target import pipelines, safety
from sparkonce import templates
from sparkonce.errors import OptionError
from sparkonce.templates import Namer, Segment

FORBIDDEN = r'[\\/*?"<>| ,#:\x00-\x1f]|^[-_+]|^\.{0,2}$'
"""Characters, beginnings and names that are not allowed; capitals are not, either."""

LONGEST = 255  # bytes of a name
LOOKING = "reading templates of indices"
FLAT = {"flat_settings": "true"}
SETTINGS = (
    *(pipelines.DEFAULT, pipelines.FINAL),
    *(name for name, _, _ in safety.ALL),
    *safety.CLOSED,
)
"""The settings of an index that the guarantee depends on."""
LIKE = "events-{country}-{at:yyyy.MM.dd}"
ADVICE = "filter such rows out, or correct the column before the sink, for example lower(country)"


def index_name(text: str) -> str:
    """Parse option ``index``: an index, an alias, or a template; else `ValueError`."""
    plain = templates.plain(text)
    if len(text) > LONGEST or plain != plain.lower() or re.search(FORBIDDEN, plain):
        raise ValueError(
            'one index or alias, in lower case, without spaces and any of \\ / * ? " < > | , # :,'
            " and not beginning with - _ +; or a template for such names"
        )
    return text


def plain_name(text: str) -> str:
    """Parse the name of one index; else `ValueError`."""
    if "{" in text:
        raise ValueError("the name of one index")
    return index_name(text)


def names(segments: Sequence[Segment], rows: pa.RecordBatch, reserved: Sequence[str] = ()) -> Any:
    """The index of each row.

    Raises:
        BadRow: a row has none, an invalid one or a reserved one.
    """
    namer = Namer("index", segments, ADVICE)
    made = namer.names(rows)
    too_long = pc.greater(pc.binary_length(made), LONGEST)
    capitals = pc.not_equal(made, pc.utf8_lower(made))
    wrong = pc.or_(pc.or_(pc.match_substring_regex(made, FORBIDDEN), capitals), too_long)
    namer.refuse(rows, wrong, "{!r} is not a valid name", made)
    taken = pc.is_in(made, value_set=pa.array(reserved, pa.string()))
    namer.refuse(rows, taken, "{!r} is reserved for this connector", made)
    return made


@lru_cache
def meet(one: str, other: str) -> bool:
    """Whether a name may match both patterns, in which ``*`` matches any text."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return meet(one[1:], other) or meet(one, other[1:])
    if other[0] == "*":
        return meet(other, one)
    return one[0] == other[0] and meet(one[1:], other[1:])


def settings(
    cluster: Cluster, pattern: str, option: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and `SETTINGS` of all indices that match a pattern, and of templates for others.

    `OptionError` if future ones would be data streams.
    """
    target = path(pattern, "_settings", ",".join(SETTINGS))
    doing = f"reading indices {pattern}"
    # One index with a block of metadata rejects this for all. Answers to rows show pipelines.
    found = cluster.ask(doing, "GET", target, params=FLAT, allow=(403, 404))
    if found.status == 200:
        yield from ((f"Index {name}", one["settings"]) for name, one in found.body.items())
    yield from _of_new(cluster, pattern, option)


def stream_of(cluster: Cluster, name: str) -> str:
    """The index template that creates a data stream of this name; empty if none does."""
    for template, about in _matching(cluster, name):
        return template if "data_stream" in about else ""
    return ""


def _matching(cluster: Cluster, pattern: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The index templates that may apply to names of a pattern, by descending priority."""
    # Without the right to read templates, answers to rows still show what one of them does.
    status, body = cluster.ask(LOOKING, "GET", "/_index_template", allow=(403, 404))
    found = body.get("index_templates", ()) if status == 200 else ()
    for one in sorted(found, key=lambda one: -one["index_template"].get("priority", 0)):
        patterns = one["index_template"]["index_patterns"]
        if any(meet(each, pattern) for each in patterns):
            yield one["name"], one["index_template"]
        if _covers(patterns, pattern):
            return


def _covers(patterns: Sequence[str], pattern: str) -> bool:
    # Only a star matches a star of ours, so a match is one of all of our names.
    return any(fnmatchcase(pattern, each) for each in patterns)


def _of_new(cluster: Cluster, pattern: str, option: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, about in _matching(cluster, pattern):
        if "data_stream" in about:
            raise OptionError(
                f"Option index={option!r}: index template {name} makes data streams for such names",
                why="a data stream takes new documents only, and after a rollover it would store a"
                " repeated row twice",
                todo="choose names that the template does not match, for example with another"
                " prefix, or name one data stream in option index with writeMode=append",
            )
        # A role that may read templates may lack the right to simulate one.
        simulate = path("_index_template", "_simulate", name)
        made = cluster.ask(LOOKING, "POST", simulate, allow=(403,))
        template = made.body["template"] if made.status == 200 else about.get("template", {})
        yield f"Index template {name}", dict(_flat(template.get("settings", {})))
        if _covers(about["index_patterns"], pattern):
            return
    yield from _of_legacy(cluster, pattern)


def _of_legacy(cluster: Cluster, pattern: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The older templates, which apply together where no index template does."""
    status, body = cluster.ask(LOOKING, "GET", "/_template", params=FLAT, allow=(403, 404))
    found = [*body.items()] if status == 200 else []

    def order(one: tuple[str, Mapping[str, Any]]) -> int:
        return -int(one[1].get("order", 0))

    over: dict[str, Any] = {}  # settings by templates of a higher order, for all names
    for _, same in groupby(sorted(found, key=order), key=order):
        those = [(one, about["index_patterns"], about.get("settings", {})) for one, about in same]
        for name, patterns, settings in those:
            if any(meet(each, pattern) for each in patterns):
                yield f"Template {name}", {**settings, **over}
        for _, patterns, settings in those:
            if _covers(patterns, pattern):
                over = {**settings, **over}


def _flat(settings: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by whole names, of which any part may be an object."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{at}{name}.")
        else:
            yield f"{at}{name}", value
