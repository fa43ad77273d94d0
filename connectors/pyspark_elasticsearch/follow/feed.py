"""Indices as a feed: an epoch is a range of sequence numbers of each shard.

A split is a range of one shard, and is read from the primary.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from pyspark_elasticsearch.follow import positions, shards
from pyspark_elasticsearch.follow.positions import SequenceRange, require_same
from pyspark_elasticsearch.read import fitness, pages
from pyspark_elasticsearch.read.fields import IndexFields, describe, kind_of
from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.target.aliases import of_sink
from sparkonce.errors import (
    OptionError,
    SnapshotBroken,
    StoreError,
    StoreRefused,
    StoreUnreachable,
    UnreadLost,
)
from sparkonce.options import Options
from sparkonce.reading import STARTS, Position, Scan

log = logging.getLogger("sparkonce")

LARGE = 50_000  # changes of a shard that justify another split
AGAIN = "nothing, if this is temporary: Spark retries the task, and a restarted query resumes here"


@dataclass(frozen=True)
class ShardSplit:
    """A split."""

    of: SequenceRange  # the changes to read
    node: str  # the node of the primary when the index was refreshed
    whole: pages.Slice  # the search, without its point in time


class ElasticsearchFeed:
    """See `sparkonce.reading.Feed`."""

    unit = "changes"

    def __init__(self, cluster: Cluster, options: Options, wanted: Scan) -> None:
        self.cluster, self.options, self.schema = cluster, options, wanted.schema
        self.name, self.of = options["index"], f"indices of {cluster.dialect.name}"
        require_steady(options["query"])
        self._has_warned = False

    def begin(self) -> Position:
        """See `Feed.begin`. Raises for indices that cannot be followed."""
        self.cluster.require_fit(may_hide=True)
        there = self._there(require_all=True)
        return {} if self.options[STARTS] == "earliest" else there

    def latest(self) -> Position:
        """See `Feed.latest`. A missing name matches no index."""
        return self._there()

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. `between` reports lost changes.

        Indices that exist, but that the names do not match now, keep their positions.
        """
        names = [name for name in after if name not in goal]
        existing = shards.existing(self.cluster, names)
        away = {name: {**after[name], "away": True} for name in names if name in existing}
        return {**positions.towards(goal, after, most), **away}

    def passed(self, after: Position, goal: Position) -> Position:
        """See `Feed.passed`."""
        return self.advance(after, goal, None)

    def between(self, after: Position, end: Position) -> Sequence[ShardSplit]:
        """See `Feed.between`. It first refreshes the planned indices for searches."""
        for error in positions.losses(after, end):
            self._raise_or_warn(error)
        wanted = [one for one in positions.between(after, end) if one.rows]
        current = shards.describe_indices(self.cluster, self.name) if wanted else {}
        found = [one for one in wanted if self._is_same(one, current)]
        for name in dict.fromkeys(one.index for one in found):
            shards.refresh(self.cluster, name)
        return [*self._splits(found, current)] if found else []

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`. There are fewer rows if a document changed twice."""
        return sum(one.rows for one in positions.between(after, end))

    def read(self, split: ShardSplit) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`. Rows have no order, as each document occurs once."""
        cluster, of, keep = self.cluster, split.of, self.options["keepAlive"]
        try:
            node = require_same(of, shards.describe_indices(cluster, of.index)).node
            if node != split.node:  # a promoted copy or a new one may lack a refresh
                shards.refresh(cluster, of.index)
            with _opened(cluster, of, node, keep) as point:
                # Otherwise a visible change, or one that hides another, may be lost with the node.
                shard = require_same(of, shards.settled(cluster, of.index))
                if shard.node != node or shard.final < of.end:
                    raise _moved(of)
                whole = replace(split.whole, point=point)
                yield from pages.read(cluster, whole, self.schema, keep)
        except SnapshotBroken as error:
            raise StoreUnreachable(error.what, error.why, AGAIN) from None
        except UnreadLost as error:
            self._raise_or_warn(error)

    def _there(self, *, require_all: bool = False) -> Position:
        found = shards.settled(self.cluster, self.name, require_all=require_all)
        return positions.of(shards.shown(self.cluster, self.name, found))

    def _is_same(self, of: SequenceRange, current: shards.Indices) -> bool:
        try:
            require_same(of, current)
        except UnreadLost as error:
            self._raise_or_warn(error)
            return False
        return True

    def _splits(
        self, found: Sequence[SequenceRange], current: shards.Indices
    ) -> Iterator[ShardSplit]:
        fields = self._fields()
        traits = fitness.traits(fields)
        selection = fitness.selection(self.schema, fields, traits, ())
        to_null = self.options["onUnreadable"] == "null"
        for whole in found:
            node = current[whole.index].shards[whole.shard].node
            many = max(1, min(self.options["numPartitions"], whole.rows // LARGE))
            for one in whole.cut(-(-whole.rows // many)):
                numbers = {"range": {"_seq_no": {"gt": one.after, "lte": one.end}}}
                own = [of_sink(one.sink)] if one.sink else []
                query = reads.all_of(numbers, self.options["query"], *own)
                search = {"query": query, **selection}
                whole_search = pages.Slice("", 0, 1, search, traits, fields.most, to_null)
                yield ShardSplit(one, node, whole_search)

    def _fields(self) -> IndexFields:
        """The current fields: documents may add new ones at any time."""
        fields = describe(self.cluster, self.name, require_all=False)
        require_settled(self.options["query"], fields)
        fitness.require(self.schema, fields, self.options["arrayFields"] or ())
        if not self._has_warned:
            fitness.warn_unknown(self.schema, fields)
            self._has_warned = True
        return fields

    def _raise_or_warn(self, error: UnreadLost) -> None:
        """Raise the error if option ``failOnDataLoss`` is set; else log a warning."""
        if self.options["failOnDataLoss"]:
            raise error
        log.warning("%s", error)


@contextmanager
def _opened(cluster: Cluster, of: SequenceRange, node: str, keep: str) -> Iterator[str]:
    """Open a point in time of one copy of the shard."""
    preference = f"_shards:{of.shard}|{cluster.dialect.primary.format(node)}"
    try:
        point = reads.open_point(cluster, of.index, keep, preference=preference)
    except StoreRefused:
        if require_same(of, shards.describe_indices(cluster, of.index)).node == node:
            raise
        raise _moved(of) from None
    try:
        if not cluster.dialect.is_on(point, node):
            raise _moved(of)
        yield point
    finally:
        with suppress(StoreError):  # the cluster closes it after a while
            reads.close_point(cluster, point)


def _moved(of: SequenceRange) -> StoreUnreachable:
    return StoreUnreachable(
        f"Shard {of.shard} of index {of.index} has another primary now, or an older state",
        why="the shard is moving to another node, a copy has become the primary, or the node is"
        " cut off",
        todo=AGAIN,
    )


# -- queries for following indices: a match depends only on the document itself

LEAVES = (
    *("match_all", "match_none", "ids", "exists", "term", "terms", "range"),
    *("prefix", "wildcard", "regexp", "match", "match_phrase"),
)
"""Allowed queries of one field."""

AROUND: Mapping[str, tuple[str, ...]] = {
    "bool": ("must", "filter", "should", "must_not"),
    "constant_score": ("filter",),
    "nested": ("query",),
}
"""Allowed queries that contain others, and where."""

PARAMS = (
    *("value", "query", "gt", "gte", "lt", "lte", "format", "time_zone", "relation"),
    *("operator", "minimum_should_match", "zero_terms_query", "analyzer", "slop", "lenient"),
    *("case_insensitive", "flags", "boost", "_name", "path", "score_mode", "ignore_unmapped"),
)
"""Allowed parameters of queries; none depends on other documents or indices."""

NOW = re.compile(r"now([+\-/|].*)?", re.DOTALL)


def require_steady(query: Mapping[str, Any]) -> None:
    """Reject a query that a document may match only after it was written (`OptionError`)."""
    for found in _others(query):
        raise OptionError(
            f"Option query has {found!r}, by which a stream may miss documents",
            why="a document may begin to match without a write, after the stream has passed it",
            todo=f"use {', '.join((*LEAVES, *AROUND))} with plain values, and narrow rows further"
            " by where() in Spark",
        )


def require_settled(query: Mapping[str, Any], there: IndexFields) -> None:
    """Reject a query of a field whose values change without a write (`StoreRefused`)."""
    words = {*_words(query)}
    for name, how in _unsettled(there):
        if any(
            fnmatchcase(name, one) or name.startswith(f"{one}.") or one.startswith(f"{name}.")
            for one in words
        ):
            raise StoreRefused(
                f"Option query has field {name!r}, {how}",
                why="a document may begin to match without a write, after the stream has passed it",
                todo="narrow rows by where() in Spark, or store the field in the documents",
            )


COMPUTED = "which a script computes in each search"


def _unsettled(there: IndexFields) -> Iterator[tuple[str, str]]:
    for mapping in there.mappings:
        for name, made in mapping.get("runtime", {}).items():
            if {"script", "input_field"} & {*made}:
                yield name, COMPUTED
        yield from ((name, COMPUTED) for name in mapping.get("derived", {}))  # of OpenSearch
    for name, field in there.every:
        if kind_of(field) == "alias":
            yield name, "an alias, which may later name another field"
        elif kind_of(field) == "constant_keyword" and "value" not in field:
            yield name, "whose only value is not set yet"


def _words(tree: Any) -> Iterator[str]:
    inside = [*tree, *tree.values()] if isinstance(tree, Mapping) else tree
    if isinstance(tree, str):
        yield tree
    elif isinstance(inside, list):
        for one in inside:
            yield from _words(one)


def _others(query: Any) -> Iterator[str]:
    """Everything not allowed in a query and in the queries inside it."""
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
        if field == "_tier":  # the cluster moves indices between tiers
            yield field
        given = value if isinstance(value, Mapping) else {"value": value}
        yield from (name for name in given if name not in PARAMS)
        for each in given.values():
            texts = each if isinstance(each, list) else [each]
            yield from (text for text in texts if isinstance(text, str) and NOW.fullmatch(text))
