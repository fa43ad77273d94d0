"""Empties an index, as a TRUNCATE in a stream of changes requires.

Each document is deleted with the version of the chunk that has the TRUNCATE. So a document that the
chunk or a later one has written stays, also if a driver repeats the chunk an hour later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark_elasticsearch.server.bulk import numbered
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.reads import close_point, open_point, pages
from pyspark_elasticsearch.write.proof import RefusedDocument
from pyspark_elasticsearch.write.sending import Sender
from sparkonce.errors import StoreUnreachable

DOING, KEEP = "emptying an index", "10m"
PAGE = 5000
"""The number of documents that a request deletes."""


def empty(cluster: Cluster, sender: Sender, index: str, version: int) -> list[RefusedDocument]:
    """Delete the documents of an index that are older than a version.

    The rows of all earlier chunks must be there.

    Returns:
        Deletes that the cluster rejected.
    """
    refused = list[RefusedDocument]()
    # The search below sees what a refresh has made visible.
    answer = cluster.ask(DOING, "POST", path(index, "_refresh"), allow=(404,))
    if answer.status == 404:
        return refused
    if answer.body["_shards"]["failed"]:
        raise StoreUnreachable(f"A shard of index {index} did not refresh while {DOING}")
    for hits in _hits(cluster, index):
        lines = b"".join(_delete(one, version) for one in hits)
        refused += sender.settle(numbered(lines))
    return refused


def _hits(cluster: Cluster, index: str) -> Iterator[list[dict[str, Any]]]:
    point = open_point(cluster, index, KEEP)
    try:
        body = {
            "size": PAGE,
            "pit": {"id": point, "keep_alive": KEEP},
            "sort": [cluster.dialect.tie],
        }
        yield from pages(cluster, DOING, None, {**body, "_source": False})
    finally:
        close_point(cluster, point)


def _delete(hit: Mapping[str, Any], version: int) -> bytes:
    about = {
        "_index": hit["_index"],
        "_id": hit["_id"],
        "version": version,
        "version_type": "external",
    }
    if "_routing" in hit:
        about["routing"] = hit["_routing"]
    return json.dumps({"delete": about}).encode() + b"\n"
