"""Indices as a feed: an epoch is what lies between two numbers of each shard."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pyspark_elasticsearch.follow import losses, positions, shards, splits, steady
from pyspark_elasticsearch.follow.abouts import existing
from pyspark_elasticsearch.follow.positions import Stretch
from pyspark_elasticsearch.follow.shards import Index
from pyspark_elasticsearch.follow.shown import shown
from pyspark_elasticsearch.follow.splits import Part
from pyspark_elasticsearch.read import fit
from pyspark_elasticsearch.read.described import Described, described
from pyspark_elasticsearch.server.client import Cluster
from sparkonce.errors import UnreadLost
from sparkonce.feeds import STARTS, Position
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

LARGE = 50_000
"""Numbers of a shard that are worth several splits."""


class ElasticsearchFeed:
    """See `sparkonce.feeds.Feed`."""

    unit, of = "changes", "indices of Elasticsearch"

    def __init__(self, cluster: Cluster, options: Options, wanted: Scan) -> None:
        self.cluster, self.options, self.schema = cluster, options, wanted.schema
        self.name = options["index"]
        steady.require(options["query"])
        self._is_told = False

    def begin(self) -> Position:
        """See `Feed.begin`. All that can't be followed is refused."""
        there = self._there(all_there=True)
        return {} if self.options[STARTS] == "earliest" else there

    def latest(self) -> Position:
        """See `Feed.latest`. A name that is gone stands for nothing."""
        return self._there()

    def advance(self, after: Position, goal: Position, most: int | None) -> Position:
        """See `Feed.advance`. What is gone is told when it is planned.

        Indices that the names do not stand for at the moment keep their places.
        """
        names = [name for name in after if name not in goal]
        there = existing(self.cluster, names)
        away = {name: {**after[name], "away": True} for name in names if name in there}
        return {**positions.towards(goal, after, most), **away}

    def passed(self, after: Position, goal: Position) -> Position:
        """See `Feed.passed`."""
        return self.advance(after, goal, None)

    def between(self, after: Position, end: Position) -> Sequence[Part]:
        """See `Feed.between`. What is planned is made visible to searches first."""
        for error in losses.unknown(after, end):
            self._tell_loss(error)
        wanted = [one for one in positions.between(after, end) if one.rows]
        there = shards.look(self.cluster, self.name) if wanted else {}
        found = [one for one in wanted if self._is_there(one, there)]
        for name in dict.fromkeys(one.index for one in found):
            shards.refresh(self.cluster, name)
        return [*self._parts(found, there)] if found else []

    def behind(self, after: Position, end: Position) -> int:
        """See `Feed.behind`. Rows are fewer where a document changed twice."""
        return sum(one.rows for one in positions.between(after, end))

    def read(self, split: Part) -> Iterator[pa.RecordBatch]:
        """See `Feed.read`."""
        try:
            yield from splits.read(self.cluster, split, self.schema, self.options["keepAlive"])
        except UnreadLost as error:
            self._tell_loss(error)

    def _there(self, *, all_there: bool = False) -> Position:
        """The position behind all that is final, and shown."""
        found = shards.settled(self.cluster, self.name, all_there=all_there)
        return positions.of(shown(self.cluster, self.name, found))

    def _is_there(self, of: Stretch, there: Mapping[str, Index]) -> bool:
        try:
            losses.require_same(of, there)
        except UnreadLost as error:
            self._tell_loss(error)
            return False
        return True

    def _parts(self, found: Sequence[Stretch], there: Mapping[str, Index]) -> Iterator[Part]:
        about = self._described()
        shape = fit.shape(about)
        asked = fit.search(self.schema, about, shape, ())
        for whole in found:
            node = there[whole.index].shards[whole.shard].node
            for one in self._cut(whole):
                query = splits.query(one, self.options["query"])
                yield Part(one, node, {"query": query, **asked}, shape, about.most)

    def _cut(self, whole: Stretch) -> Iterator[Stretch]:
        many = max(1, min(self.options["numPartitions"], whole.rows // LARGE))
        return whole.cut(-(-whole.rows // many))

    def _described(self) -> Described:
        """The fields as they are now: documents may bring new ones at any time."""
        about = described(self.cluster, self.name, all_there=False)
        steady.require_settled(self.options["query"], about)
        fit.require_arrays(self.options["arrayFields"] or (), about)
        fit.require(self.schema, about)
        if not self._is_told:
            fit.tell_unknown(self.schema, about)
            self._is_told = True
        return about

    def _tell_loss(self, error: UnreadLost) -> None:
        """Raise or warn, as option ``failOnDataLoss`` says."""
        if self.options["failOnDataLoss"]:
            raise error
        log.warning("%s", error)
