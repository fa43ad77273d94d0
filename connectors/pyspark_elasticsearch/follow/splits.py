"""Stretches as splits: how the documents of one are found, and on which copy of the shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_elasticsearch.follow import shards
from pyspark_elasticsearch.follow.losses import require_same
from pyspark_elasticsearch.follow.positions import Stretch
from pyspark_elasticsearch.read import pages
from pyspark_elasticsearch.read.documents import Shape
from pyspark_elasticsearch.read.pages import Slice
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.target.visibility import of_sink
from sparkonce.errors import SnapshotBroken, StoreError, StoreRefused, StoreUnreachable

AGAIN = "nothing, if it passes: Spark tries the task again, and a restart goes on where it stopped"


@dataclass(frozen=True)
class Part:
    """A split.

    Attributes:
        of: what is read.
        node: that held the shard's primary when the index was refreshed.
        body: of the search: its query, and what of documents is read.
        shape: of the documents.
        most: documents that a page may have.
    """

    of: Stretch
    node: str
    body: Mapping[str, Any]
    shape: Shape
    most: int


def query(stretch: Stretch, narrowed: Mapping[str, Any]) -> dict[str, Any]:
    """The documents of a stretch that another query finds, too."""
    numbers = {"range": {"_seq_no": {"gt": stretch.after, "lte": stretch.end}}}
    own = [of_sink(stretch.sink)] if stretch.sink else []
    return {"bool": {"filter": [numbers, narrowed, *own]}}


def read(cluster: Cluster, part: Part, schema: pa.Schema, keep: str) -> Iterator[pa.RecordBatch]:
    """The rows of a split, in any order: a document comes once.

    Args:
        cluster: where.
        part: the split.
        schema: of the rows.
        keep: for how long the cluster keeps a point in time after each page.

    Raises:
        UnreadLost: the shard is not there, or is not the one that was planned.
        StoreUnreachable: it is somewhere else than it was, or not ready.
    """
    of, node = part.of, _ready(cluster, part)
    with _opened(cluster, of, node, keep) as point:
        _require_final(cluster, of, node)
        whole = Slice(point, 0, 1, part.body, part.shape, part.most)
        try:
            yield from pages.read(cluster, whole, schema, keep)
        except SnapshotBroken as error:
            raise StoreUnreachable(error.what, error.why, AGAIN) from None


def _ready(cluster: Cluster, part: Part) -> str:
    """The node that holds the shard's primary, which finds all that was planned."""
    shard = require_same(part.of, shards.look(cluster, part.of.index))
    if shard.node != part.node:  # it was a copy, or is a new one, and may not be refreshed
        shards.refresh(cluster, part.of.index)
    return shard.node


@contextmanager
def _opened(cluster: Cluster, of: Stretch, node: str, keep: str) -> Iterator[str]:
    """A point in time of one copy of the shard."""
    preference = f"_shards:{of.shard}|_only_nodes:{node}"
    try:
        point = pages.opened(cluster, of.index, keep, preference=preference)
    except StoreRefused:
        if require_same(of, shards.look(cluster, of.index)).node == node:
            raise
        raise _moved(of) from None
    try:
        yield point
    finally:
        with suppress(StoreError):  # the cluster closes it in time
            pages.close(cluster, point)


def _require_final(cluster: Cluster, of: Stretch, node: str) -> None:
    """Wait until no change that is seen on a node, or hides another, can be gone with it.

    Raises:
        StoreUnreachable: the node's copy is not the primary, or lacks what was planned.
    """
    shard = require_same(of, shards.settled(cluster, of.index))
    if shard.node != node or shard.final < of.end:
        raise _moved(of)


def _moved(of: Stretch) -> StoreUnreachable:
    return StoreUnreachable(
        f"Shard {of.shard} of index {of.index} has another primary now, or an older state",
        why="it moves to another node, a copy has just taken over, or the node that was asked is"
        " cut off",
        todo=AGAIN,
    )
