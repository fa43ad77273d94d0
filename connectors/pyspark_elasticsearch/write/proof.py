"""Proves that rows of an earlier try are on all copies of their shard.

A conflict shows what the primary has. Its copies may lack that: replication is not ordered, so the
primary answers with a conflict while an earlier request still waits for a copy. If this primary
fails, the row is lost. The cluster acknowledges a write only once all copies that count have it.
So a document of an earlier try is written once more, as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.bulk import ADDRESS, Operation, action
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.failures import message

DOING = "writing rows of an earlier try again"
ONCE, AGAIN = b'"version_type":"external"', b'"version_type":"external_gte"'


class RefusedDocument(NamedTuple):
    """A rejected operation, and its answer."""

    operation: Operation
    item: bulk.Item

    @property
    def is_conflict(self) -> bool:
        """Whether the document has a version of another writer, which is not a fault of the row."""
        return self.item.status == 409

    @property
    def reason(self) -> str:
        """The reason in a dead letter."""
        return f"{self.item.status} {message(self.item.error)}"


def unproven_creations(
    cluster: Cluster, target: str, conflicts: Sequence[RefusedDocument]
) -> list[RefusedDocument]:
    """Conflicts of `create` whose documents could not be written again."""
    lines = [_as_it_is(*one) for one in conflicts]
    answer = bulk.send(cluster, DOING, target, b"".join(lines), len(lines))
    # A block of writes applies to an index only after all earlier writes.
    return [
        one
        for one, item in zip(conflicts, answer, strict=True)
        if not (item.done or _type(item) == "cluster_block_exception")
    ]


def _as_it_is(operation: Operation, item: bulk.Item) -> bytes:
    """An update without changes, which fails if there is no document."""
    named = _address(operation)
    if item.index_name:  # of the index behind a data stream
        named["_index"] = item.index_name
    return f'{json.dumps({"update": named})}\n{{"doc":{{}},"detect_noop":false}}\n'.encode()


def unproven_versions(
    cluster: Cluster, target: str, index: str, conflicts: Sequence[RefusedDocument]
) -> list[RefusedDocument]:
    """Conflicts with an equal version whose documents could not be written again.

    An equal version may also be that of another row, which stays.
    """
    named = [{"_index": index, **_address(one.operation)} for one in conflicts]
    body = {"docs": named}
    found = cluster.ask(DOING, "POST", "/_mget", body=body).body["docs"]
    own = [
        one for one, doc in zip(conflicts, found, strict=True) if _is_of(one.operation.lines, doc)
    ]
    if not own:
        return []
    lines = b"".join(one.operation.lines.replace(ONCE, AGAIN, 1) for one in own)
    answer = bulk.send(cluster, DOING, target, lines, len(own))
    return [
        one
        for one, item in zip(own, answer, strict=True)
        if not (item.done or item.status == 409)  # a later version came
    ]


def _is_of(operation: bytes, stored: Mapping[str, Any]) -> bool:
    """Whether a document may be that of the operation."""
    document = operation.partition(b"\n")[2]
    if not (document and stored.get("found")):
        return not document and not stored.get("found")
    return bool(stored.get("_source") == json.loads(document))


def _address(operation: Operation) -> dict[str, Any]:
    return {name: one for name, one in action(operation.lines).items() if name in ADDRESS}


def _type(item: bulk.Item) -> str:
    return str(item.error.get("type", "")) if item.error else ""
