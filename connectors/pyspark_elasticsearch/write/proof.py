"""Proves that rows of an earlier try are on all copies of their shard.

A conflict shows what the primary has. Its copies may lack that: replication is not ordered, so the
primary answers with a conflict while an earlier request still waits for a copy. If this primary
fails, the row is lost. The cluster acknowledges a write only once all copies that count have it.
So a document of an earlier try is written once more, as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.bulk import ADDRESS, Operation, action
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.failures import message
from pyspark_elasticsearch.target.lookup import resolve
from pyspark_elasticsearch.write.fitness import dropped

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
    cluster: Cluster, target: str, index: str, conflicts: Sequence[RefusedDocument]
) -> list[RefusedDocument]:
    """Conflicts of `create` whose documents could not be written again."""
    named = [_named(one, index) for one in conflicts]
    drop_fields = {name: _drops_fields(cluster, name) for name in {one["_index"] for one in named}}
    pairs = [*zip(conflicts, named, strict=True)]
    whole = [pair for pair in pairs if not drop_fields[pair[1]["_index"]]]
    sent = [(one, _as_it_is(about)) for one, about in whole]
    sent += _anew(cluster, [pair for pair in pairs if drop_fields[pair[1]["_index"]]])
    lines = b"".join(line for _, line in sent)
    answer = bulk.send(cluster, DOING, target, lines, len(sent)) if sent else []
    return [
        one
        for (one, _), item in zip(sent, answer, strict=True)
        # A block of writes applies to an index only after all earlier writes.
        if not (item.done or _type(item) == "cluster_block_exception")
    ]


def _named(one: RefusedDocument, index: str) -> dict[str, Any]:
    """The address of a document, in the index behind a data stream."""
    found = {"_index": index, **_address(one.operation)}
    return found | ({"_index": one.item.index_name} if one.item.index_name else {})


def _drops_fields(cluster: Cluster, index: str) -> bool:
    found = resolve(cluster, index, appends=True)
    return found is not None and bool(dropped(found))


def _as_it_is(named: Mapping[str, Any]) -> bytes:
    """An update without changes, which fails if there is no document."""
    return f'{json.dumps({"update": named})}\n{{"doc":{{}},"detect_noop":false}}\n'.encode()


def _anew(
    cluster: Cluster, pairs: Sequence[tuple[RefusedDocument, dict[str, Any]]]
) -> Iterator[tuple[RefusedDocument, bytes]]:
    """The rows of documents that nobody has changed, where an update would drop fields."""
    found = _documents(cluster, [named for _, named in pairs])
    for (one, named), doc in zip(pairs, found, strict=True):
        if not doc.get("found"):
            yield one, one.operation.lines
        elif doc["_version"] == 1:
            guard = {"if_seq_no": doc["_seq_no"], "if_primary_term": doc["_primary_term"]}
            document = one.operation.lines.partition(b"\n")[2]
            yield one, json.dumps({"index": {**named, **guard}}).encode() + b"\n" + document


def _documents(cluster: Cluster, named: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The documents at these addresses, as a copy has them."""
    if not named:
        return []
    answer = cluster.ask(DOING, "POST", "/_mget", body={"docs": named})
    return list(answer.body["docs"])


def unproven_versions(
    cluster: Cluster, target: str, index: str, conflicts: Sequence[RefusedDocument]
) -> list[RefusedDocument]:
    """Conflicts with an equal version whose documents could not be written again.

    An equal version may also be that of another row, which stays.
    """
    named = [{"_index": index, **_address(one.operation)} for one in conflicts]
    found = _documents(cluster, named)
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
