"""Indices that rows may name: those that are there, and what the cluster makes of new ones.

A template of names leads to names that nobody knows before its rows come. So all are looked at that
could be among them, and one that can't be shown to be another's counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.target.pipelines import DEFAULT, FINAL
from sparkonce.errors import OptionError

DOING = "looking at templates of indices"
FLAT = {"flat_settings": "true"}


@lru_cache
def meet(one: str, other: str) -> bool:
    """Whether a name may match two patterns, in which ``*`` stands for any text."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return meet(one[1:], other) or meet(one, other[1:])
    if other[0] == "*":
        return meet(other, one)
    return one[0] == other[0] and meet(one[1:], other[1:])


def settings(cluster: Cluster, pattern: str, option: str) -> Iterator[Mapping[str, Any]]:
    """The pipelines of all indices that rows may name, as settings.

    Args:
        cluster: where.
        pattern: of their names.
        option: the template of their names.

    Raises:
        OptionError: a new one would be a data stream.
    """
    target = path(pattern, "_settings", f"{DEFAULT},{FINAL}")
    doing = f"looking at indices {pattern}"
    # One index with a block of metadata refuses it for all; answers to rows tell the rest.
    there = cluster.ask(doing, "GET", target, params=FLAT, allow=(403, 404))
    if there.status == 200:
        yield from (about["settings"] for about in there.body.values())
    yield from _of_new(cluster, pattern, option)


def stream_of(cluster: Cluster, name: str) -> str:
    """The index template that makes a data stream of this name; empty where none does."""
    for template, about in _matching(cluster, name):
        return template if "data_stream" in about else ""
    return ""


def _matching(cluster: Cluster, pattern: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The index templates that may rule names of a pattern, those that go before others first."""
    # Without the right to look at templates the answers to rows still tell what one of them does.
    told = cluster.ask(DOING, "GET", "/_index_template", allow=(403, 404))
    found = told.body.get("index_templates", ()) if told.status == 200 else ()
    for one in sorted(found, key=lambda one: -one["index_template"].get("priority", 0)):
        patterns = one["index_template"]["index_patterns"]
        if any(meet(each, pattern) for each in patterns):
            yield one["name"], one["index_template"]
        # A star of ours is matched by a star alone, so that all of our names are among its own.
        if any(fnmatchcase(pattern, each) for each in patterns):
            return


def _of_new(cluster: Cluster, pattern: str, option: str) -> Iterator[Mapping[str, Any]]:
    for name, about in _matching(cluster, pattern):
        if "data_stream" in about:
            raise _streams(option, name)
        # A role that may look at templates may lack the right to have one tried.
        made = cluster.ask(DOING, "POST", path("_index_template", "_simulate", name), allow=(403,))
        template = made.body["template"] if made.status == 200 else about.get("template", {})
        kept = template.get("settings", {}).get("index", {})
        yield {f"index.{setting}": value for setting, value in kept.items()}
    told = cluster.ask(DOING, "GET", "/_template", params=FLAT, allow=(403, 404))
    for about in told.body.values() if told.status == 200 else ():
        if any(meet(each, pattern) for each in about["index_patterns"]):
            yield about.get("settings", {})


def _streams(option: str, name: str) -> OptionError:
    return OptionError(
        f"Option index={option!r}: index template {name} makes data streams of such names",
        why="a data stream takes new documents only, and behind a rollover a row that is sent again"
        " would be there twice",
        todo="choose names that the template does not match, such as a beginning of their own, or"
        " name one data stream in option index with writeMode=append",
    )
