"""Data streams: the cluster chooses the backing index of a row, and takes it by no other name.

After a rollover a repeated row would go to another index than before, where its id is new. So
before rows are sent again their ids are looked up in the backing indices since the decision. What
was on its way meanwhile, and landed before a rollover that the repeated row came after, is found
by a second look, and the later one of the two is taken back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from pyspark_elasticsearch import bulk
from pyspark_elasticsearch.client import Cluster, path
from sparkonce.errors import StoreUnreachable

LOOKING = "looking for rows that are there already"
TIMESTAMP = "@timestamp"
"""The field that every document of a data stream must have."""

Post = Callable[[Sequence[bytes]], "list[bulk.Item] | int"]
"""Sends operations, and gives what became of each, or the status of a refusal of all."""


def backing(cluster: Cluster, name: str) -> list[str]:
    """The indices of a data stream, in their order: the last one takes its writes."""
    target = path("_resolve", "index", name)
    told = cluster.ask(f"looking at {name}", "GET", target, allow=(404,))
    found = told.body.get("data_streams", []) if told.status == 200 else []
    return [str(index) for one in found for index in one["backing_indices"]]


class Resender:
    """Sends operations to a data stream again.

    Args:
        cluster: where.
        name: of the stream.
        since: the index that took its writes when the rows were decided.
    """

    def __init__(self, cluster: Cluster, name: str, since: str) -> None:
        self.cluster, self.name, self.since = cluster, name, since

    def send(self, operations: Sequence[bytes], post: Post) -> list[bulk.Item] | int:
        """What became of each operation, each of them a ``create`` with an id of its own.

        Raises:
            StoreError: the cluster can't do it; the same can be tried again.
        """
        known, ids = self._since(), [_id(one) for one in operations]
        done = self._found(known[:-1], ids)
        rest = [one for one, id_ in zip(operations, ids, strict=True) if id_ not in done]
        answer = post(rest) if rest else []
        if isinstance(answer, int):
            return answer
        missing = [id_ for id_ in ids if id_ not in done]
        self._take_back(known, dict(zip(missing, answer, strict=True)))
        items = iter(answer)
        return [bulk.Item(200, None) if id_ in done else next(items) for id_ in ids]

    def _since(self) -> list[str]:
        there = backing(self.cluster, self.name)
        return there[there.index(self.since) :] if self.since in there else there

    def _found(self, indices: Iterable[str], ids: Sequence[str]) -> set[str]:
        """Those of the ids that one of these indices has."""
        found: set[str] = set()
        for index in indices:
            target, body = path(index, "_mget"), {"ids": list(ids)}
            params = {"_source": "false"}
            told = self.cluster.ask(LOOKING, "POST", target, params=params, body=body, allow=(404,))
            docs = told.body["docs"] if told.status == 200 and ids else []
            found.update(doc["_id"] for doc in docs if doc.get("found"))
        return found

    def _take_back(self, known: Sequence[str], answers: dict[str, bulk.Item]) -> None:
        """Delete what landed behind a rollover, and is there before it as well."""
        later = {
            id_: item.place
            for id_, item in answers.items()
            if item.done and item.place and item.place not in known[-1:]
        }
        twice = self._found(known, list(later)) if later else set()
        if twice:
            deletes = [{"delete": {"_index": later[id_], "_id": id_}} for id_ in sorted(twice)]
            lines = "".join(f"{json.dumps(one)}\n" for one in deletes).encode()
            said = bulk.send(self.cluster, "taking rows back", "/_bulk", lines, len(deletes))
            if isinstance(said, int) or not bulk.all_done(said):
                raise StoreUnreachable(f"Elasticsearch did not take back {len(deletes)} rows")


def _id(operation: bytes) -> str:
    (told,) = json.loads(operation.partition(b"\n")[0]).values()
    return str(told["_id"])
