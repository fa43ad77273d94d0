"""A point in time of indices, and its pages, slice by slice.

See https://www.elastic.co/guide/en/elasticsearch/reference/current/point-in-time-api.html and
https://www.elastic.co/guide/en/elasticsearch/reference/current/paginate-search-results.html
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_elasticsearch.read.documents import Shape
from pyspark_elasticsearch.read.hits import Reader
from pyspark_elasticsearch.read.refusals import require_whole
from pyspark_elasticsearch.read.searches import searched
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.errors import SnapshotBroken

log = logging.getLogger("sparkonce")

READING, COUNTING = "reading documents", "counting documents"
BLOCK = 4 * 1024 * 1024
"""Bytes that a page is to have, by what the one before it had."""

FIRST, FASTER = 50, 4
"""Documents of the first page, and how many times as many each next one has at most."""


@dataclass(frozen=True)
class Slice:
    """A split.

    Attributes:
        point: in time, as the cluster names it.
        number: of so `many` parts of it.
        body: of the search: its query, and what of documents is read.
        shape: of the documents, when the point was opened.
        most: documents that a page may have.
    """

    point: str
    number: int
    many: int
    body: Mapping[str, Any]
    shape: Shape
    most: int


def taken(
    cluster: Cluster, index: str, search: Mapping[str, Any], *wider: Mapping[str, Any]
) -> tuple[Mapping[str, Any], int, int]:
    """The first of several searches that the cluster takes, its documents, and their shards.

    It may refuse one (`search.allow_expensive_queries`, `index.max_terms_count`).
    """
    body = {"query": search["query"], "size": 0, "track_total_hits": True}
    allow = (400,) if wider else ()
    answer = searched(cluster, COUNTING, path(index, "_search"), body, allow)
    if answer.status in allow:
        log.warning("The cluster refuses the conditions of a query, so all rows are read")
        return taken(cluster, index, *wider)
    return search, int(answer.body["hits"]["total"]["value"]), int(answer.body["_shards"]["total"])


def opened(cluster: Cluster, index: str, keep: str, **of: str) -> str:
    """A point in time, which the cluster keeps for so long after its last page.

    Args:
        cluster: where.
        index: what is read.
        keep: for how long, as the cluster writes it.
        of: further parameters, such as ``preference``.
    """
    params = {"keep_alive": keep, **of}
    told = cluster.ask("opening a point in time", "POST", path(index, "_pit"), params=params)
    return str(told.body["id"])


def close(cluster: Cluster, point: str) -> None:
    """Let the cluster forget a point in time."""
    cluster.ask("closing a point in time", "DELETE", "/_pit", body={"id": point}, allow=(404,))


def read(cluster: Cluster, part: Slice, schema: pa.Schema, keep: str) -> Iterator[pa.RecordBatch]:
    """The rows of a slice.

    Args:
        cluster: where.
        part: the slice.
        schema: of the rows.
        keep: for how long the point in time is kept after each page.

    Raises:
        SnapshotBroken: the point in time is not there any more.
    """
    reader = Reader(schema, part.shape)
    asked = {**part.body, "sort": [{"_shard_doc": "asc"}], "track_total_hits": False}
    if part.many > 1:
        asked["slice"] = {"id": part.number, "max": part.many}
    point, size = part.point, min(FIRST, part.most)
    while True:
        asked |= {"pit": {"id": point, "keep_alive": keep}, "size": size}
        answer = searched(cluster, READING, "/_search", asked, (404,))
        if answer.status == 404:
            raise _lost(keep)
        page = reader.page(answer.body["bytes"])
        require_whole(page._asdict(), READING)
        if page.hits:
            yield page.rows
        if page.hits < size:
            return
        asked["search_after"], point = page.last, page.point
        fitting = size * BLOCK // len(answer.body["bytes"])
        size = max(1, min(fitting, size * FASTER, part.most))


def _lost(keep: str) -> SnapshotBroken:
    return SnapshotBroken(
        "The point in time that a read is made of is not there any more",
        why=f"the cluster keeps it for {keep} (option keepAlive) after its last page; a node that"
        " stops, or an index that is deleted, takes it away at once",
        todo="read again, from load() on: Spark plans a DataFrame once; a plan that waits, or has"
        " more splits than Spark has cores, wants a longer keepAlive",
    )
