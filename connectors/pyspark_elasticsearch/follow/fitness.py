"""Queries by which indices can be followed: whether a document matches changes with it alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from pyspark_elasticsearch.read.fields import IndexFields, kind_of
from sparkonce.errors import OptionError, StoreRefused

LEAVES = (
    *("match_all", "match_none", "ids", "exists", "term", "terms", "range"),
    *("prefix", "wildcard", "regexp", "match", "match_phrase"),
)
"""Queries of one field."""

AROUND: Mapping[str, tuple[str, ...]] = {
    "bool": ("must", "filter", "should", "must_not"),
    "constant_score": ("filter",),
    "nested": ("query",),
}
"""Queries that have others, and where."""

PARAMS = (
    *("value", "query", "gt", "gte", "lt", "lte", "format", "time_zone", "relation"),
    *("operator", "minimum_should_match", "zero_terms_query", "analyzer", "slop", "lenient"),
    *("case_insensitive", "flags", "boost", "_name", "path", "score_mode", "ignore_unmapped"),
)
"""What queries may say beside; none lets other documents, or other indices, have a say."""

NOW = re.compile(r"now([+\-/|].*)?", re.DOTALL)


def require_steady(query: Mapping[str, Any]) -> None:
    """Refuse a query that may have a document match later than it was written (`OptionError`)."""
    for found in _others(query):
        raise OptionError(
            f"Option query has {found!r}, by which a stream may miss documents",
            why="a document may begin to match while nobody writes it, and be passed by then",
            todo=f"use {', '.join((*LEAVES, *AROUND))} with plain values, and narrow rows further"
            " by where() in Spark",
        )


def require_settled(query: Mapping[str, Any], there: IndexFields) -> None:
    """Refuse a query of a field whose values change without a write (`StoreRefused`)."""
    words = {*_words(query)}
    for name, how in _unsettled(there):
        if any(fnmatchcase(name, one) or name.startswith(f"{one}.") for one in words):
            raise StoreRefused(
                f"Option query has field {name!r}, {how}",
                why="a document may begin to match while nobody writes it, and be passed by then",
                todo="narrow rows by where() in Spark, or let documents themselves have the field",
            )


def _unsettled(there: IndexFields) -> Iterator[tuple[str, str]]:
    for mapping in there.mappings:
        for name, made in mapping.get("runtime", {}).items():
            if {"script", "input_field"} & {*made}:
                yield name, "which a script makes at each search"
    for name, field in there.every:
        if kind_of(field) == "alias":
            yield name, "an alias, which may become that of another field"
        elif kind_of(field) == "constant_keyword" and "value" not in field:
            yield name, "whose one value is not set yet"


def _words(tree: Any) -> Iterator[str]:
    inside = [*tree, *tree.values()] if isinstance(tree, Mapping) else tree
    if isinstance(tree, str):
        yield tree
    elif isinstance(inside, list):
        for one in inside:
            yield from _words(one)


def _others(query: Any) -> Iterator[str]:
    """What is not known, in a query and those inside it."""
    if not isinstance(query, Mapping):
        yield str(query)
        return
    for kind, body in query.items():
        if kind in LEAVES and isinstance(body, Mapping):
            yield from _of_leaf(body)
        elif kind in AROUND and isinstance(body, Mapping):
            inside = [body[name] for name in AROUND[kind] if name in body]
            for one in inside:
                for each in one if isinstance(one, list) else [one]:
                    yield from _others(each)
            yield from (name for name in body if name not in (*AROUND[kind], *PARAMS))
        else:
            yield kind


def _of_leaf(body: Mapping[str, Any]) -> Iterator[str]:
    for field, value in body.items():
        if field == "_tier":  # an index moves on its own
            yield field
        given = value if isinstance(value, Mapping) else {"value": value}
        yield from (name for name in given if name not in PARAMS)
        for each in given.values():
            texts = each if isinstance(each, list) else [each]
            yield from (text for text in texts if isinstance(text, str) and NOW.fullmatch(text))
