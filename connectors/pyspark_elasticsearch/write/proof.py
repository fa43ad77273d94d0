"""Proves that rows of an earlier try are on all copies of their shard.

A conflict shows what the primary has. Its copies may lack that: replication is not ordered, so the
primary answers with a conflict while an earlier request still waits for a copy. If this primary
fails, the row is lost. The cluster acknowledges a write only once all copies that count have it.
So a document of an earlier try is written once more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.bulk import ADDRESS, Operation, action, as_it_is, is_blocked
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.failures import classify, message
from pyspark_elasticsearch.target.lookup import resolve
from pyspark_elasticsearch.write.fitness import dropped
from sparkonce.errors import FailureKind

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


Pair = tuple[RefusedDocument, bytes]
"""A conflict, and the operation that proves its row."""


@dataclass(frozen=True)
class RowProof:
    """Writes rows again.

    Attributes:
        cluster: that has them.
        target: the path of bulk requests.
        index: the index or data stream of the rows; empty if each names its own.
        params: of requests that send a row as it was sent, such as its pipeline.
    """

    cluster: Cluster
    target: str
    index: str
    params: Mapping[str, str]

    def of_creations(self, conflicts: Sequence[RefusedDocument]) -> list[RefusedDocument]:
        """Conflicts of `create` whose rows are not proven.

        An update writes a document as it is, or fails if none exists. Where `_source` lacks
        fields, an update would drop them; nobody can have updated the row there, so it is sent.
        """
        named = [self._named(one) for one in conflicts]
        places = [one.get("_index", self.index) for one in named]
        drops = {name: self.drops_fields(name) for name in {*places}}
        unproven, whole = list[RefusedDocument](), list[Pair]()
        partial = list[tuple[RefusedDocument, Mapping[str, Any]]]()
        for one, by, place in zip(conflicts, named, places, strict=True):
            if drops[place] is None:
                unproven.append(one)
            elif drops[place]:
                partial.append((one, by))
            else:
                whole.append((one, as_it_is(by)))
        anew = [*self._anew(partial)]
        unproven += [one for one, line in anew if not line]
        anew = [pair for pair in anew if pair[1]]
        return unproven + self._left(whole, {}) + self._left(anew, self.params)

    def of_versions(self, conflicts: Sequence[RefusedDocument]) -> list[RefusedDocument]:
        """Conflicts with an equal version whose rows are not proven.

        An equal version may also be that of another row, which stays.
        """
        named = [{"_index": self.index, **_address(one.operation)} for one in conflicts]
        pairs, behind = list[Pair](), list[RefusedDocument]()
        for one, doc in zip(conflicts, self._documents(named), strict=True):
            lines = one.operation.lines
            provided = int(action(lines)["version"])
            if doc.get("found") and int(doc["_version"]) < provided:
                behind.append(one)  # a copy that lags
            elif not doc.get("found") or _is_of(lines, doc):
                pairs.append((one, lines.replace(ONCE, AGAIN, 1)))
        left = [one for one in self._left(pairs, self.params) if one.item.status != 409]
        return behind + left  # after another conflict a later version exists

    def _named(self, one: RefusedDocument) -> dict[str, Any]:
        """The address of a document; with the index behind a data stream."""
        behind = {"_index": one.item.index_name} if one.item.index_name else {}
        found = {**_address(one.operation), **behind}
        # Some clusters reject an index in the body of a request (allow_explicit_index).
        return {key: text for key, text in found.items() if (key, text) != ("_index", self.index)}

    def drops_fields(self, index: str) -> bool | None:
        """Whether an index keeps only a part of each document; None if a node does not know it."""
        found = resolve(self.cluster, index, appends=True)
        return None if found is None else bool(dropped(found))

    def _anew(
        self, rows: Sequence[tuple[RefusedDocument, Mapping[str, Any]]]
    ) -> Iterator[tuple[RefusedDocument, bytes]]:
        """Operations that send rows over their documents; empty where no document was found."""
        found = self._documents([{"_index": self.index, **by} for _, by in rows])
        for (one, by), doc in zip(rows, found, strict=True):
            if not doc.get("found"):
                yield one, b""
                continue
            guard = {"if_seq_no": doc["_seq_no"], "if_primary_term": doc["_primary_term"]}
            document = one.operation.lines.partition(b"\n")[2]
            yield one, json.dumps({"index": {**by, **guard}}).encode() + b"\n" + document

    def _documents(self, named: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The documents at these addresses, as a copy has them.

        Raises:
            StoreError: a shard did not answer.
        """
        if not named:
            return []
        answer = self.cluster.ask(DOING, "POST", "/_mget", body={"docs": named})
        docs = list(answer.body["docs"])
        for error in (doc["error"] for doc in docs if "error" in doc):
            raise self.cluster.error_of(503, error, DOING)
        return docs

    def _left(self, pairs: Sequence[Pair], params: Mapping[str, str]) -> list[RefusedDocument]:
        """The conflicts whose operation was not acknowledged.

        Raises:
            StoreError: the cluster rejects an operation for good.
        """
        if not pairs:
            return []
        lines = b"".join(line for _, line in pairs)
        answer = bulk.send(self.cluster, DOING, self.target, lines, len(pairs), params)
        left = []
        for (one, _), item in zip(pairs, answer, strict=True):
            if item.done or is_blocked(item):
                continue
            kind = classify(item.status, item.error).kind
            passes = kind in (FailureKind.PASSING, FailureKind.LOST)
            if not passes and item.status not in (404, 409):
                raise self.cluster.error_of(item.status, item.error, DOING)
            left.append(RefusedDocument(one.operation, item))
        return left


def _is_of(operation: bytes, stored: Mapping[str, Any]) -> bool:
    """Whether a document of an equal version may be that of the operation."""
    document = operation.partition(b"\n")[2]
    return bool(document) and stored.get("_source", ...) in (json.loads(document), ...)


def _address(operation: Operation) -> dict[str, Any]:
    return {name: one for name, one in action(operation.lines).items() if name in ADDRESS}
