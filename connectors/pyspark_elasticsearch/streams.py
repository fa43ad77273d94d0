"""Data streams: the cluster chooses the backing index of a row, and takes it by no other name.

After a rollover a repeated row would go to another index than before, where its id is new. So
before rows are sent again their ids are looked up in the backing indices since the decision. What
was on its way meanwhile, and landed before a rollover that the repeated row came after, is found
by a second look, and the later one of the two is taken back.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyspark_elasticsearch import bulk, pipelines
from pyspark_elasticsearch.chunks import operations
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.failures import of_answer
from pyspark_elasticsearch.whereabouts import LOOKS, PAUSE, take_back
from sparkonce.errors import StoreRefused

LOOKING = "looking for rows that are there already"
GONE = "index_not_found_exception"
TIMESTAMP = "@timestamp"
"""The field that every document of a data stream must have."""

Post = Callable[[Sequence[bytes]], "list[bulk.Item] | int"]
"""Sends operations, and gives what became of each, or the status of a refusal of all."""


def backing(cluster: Cluster, name: str) -> list[str]:
    """The indices of a data stream, in their order: the last one takes its writes."""
    target = path("_resolve", "index", name)
    told = cluster.ask(f"looking at {name}", "GET", target, allow=(404,))
    found = told.body["data_streams"] if told.status == 200 else []
    return [str(index) for one in found for index in one["backing_indices"]]


def found(cluster: Cluster, index: str, ids: Sequence[str]) -> set[str]:
    """Those of the ids that this index has."""
    target, body = path(index, "_mget"), {"ids": list(ids)}
    params = {"_source": "false"}
    told = cluster.ask(LOOKING, "POST", target, params=params, body=body, allow=(404,))
    docs = told.body["docs"] if told.status == 200 else []
    for error in (doc["error"] for doc in docs if "error" in doc):
        if error.get("type") != GONE:  # deleted since, and the row with it
            raise of_answer(503, error, LOOKING)
    return {doc["_id"] for doc in docs if doc.get("found")}


class Resender:
    """Sends operations to a data stream again.

    Args:
        cluster: where.
        name: of the stream.
        since: the index that took its writes when the rows were decided.
    """

    def __init__(self, cluster: Cluster, name: str, since: str) -> None:
        self.cluster, self.name, self.since = cluster, name, since
        self._own = frozenset[str]()

    def send(self, rows: Sequence[bytes], post: Post) -> list[bulk.Item] | int:
        """What became of each operation, each of them a ``create`` with an id of its own.

        Raises:
            StoreError: the cluster can't do it; the same can be tried again.
        """
        known, ids = self._since(), [id_of(one) for one in rows]
        done = self._once(known, ids) if len(known) > 1 else set()
        rest = [one for one, id_ in zip(rows, ids, strict=True) if id_ not in done]
        answer = post(rest) if rest else []
        if isinstance(answer, int):
            return answer
        missing = [id_ for id_ in ids if id_ not in done]
        later = [id_ for id_, item in zip(missing, answer, strict=True) if _is_behind(known, item)]
        if later:
            self._once(self._since(), later)
        items = iter(answer)
        return [bulk.Item(200, None) if id_ in done else next(items) for id_ in ids]

    def require_within(self, lines: bytes, answer: Sequence[bulk.Item]) -> None:
        """Take rows back that an ingest pipeline has sent out of the stream, which had none before.

        They would be looked for in the stream alone, not be found, and be sent once more.

        Raises:
            StoreRefused: there were such rows.
        """
        places = {item.place for item in answer if _is_there(item)}
        for _ in range(LOOKS):
            if places <= self._own:
                return
            if self._own:
                time.sleep(PAUSE)
            # Of a document that a pipeline dropped the answer names the stream.
            self._own = frozenset(["", self.name, *backing(self.cluster, self.name)])
        gone = [
            (item.place, id_of(one))
            for one, item in zip(operations(lines), answer, strict=True)
            if _is_there(item) and item.place not in self._own
        ]
        if not gone:
            return
        take_back(self.cluster, _deletions(gone))
        raise pipelines.elsewhere(
            f"{len(gone)} rows for {self.name} went to {gone[0][0]}, and were taken back"
        )

    def _since(self) -> list[str]:
        there = backing(self.cluster, self.name)
        if not there:
            raise StoreRefused(
                f"There is no data stream {self.name} any more",
                why="it was deleted since the query began, or a proxy says so",
                todo="restore it from a snapshot, or create it, then restart the query",
            )
        return there[there.index(self.since) :] if self.since in there else there

    def _once(self, indices: Sequence[str], ids: Sequence[str]) -> set[str]:
        """Those of the ids that are in one of the indices; in the first of several they stay."""
        known: set[str] = set()
        again: list[tuple[str, str]] = []
        for index in indices:
            there = found(self.cluster, index, ids)
            again += [(index, id_) for id_ in sorted(there & known)]
            known |= there
        take_back(self.cluster, _deletions(again))
        return known


def _deletions(rows: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Of rows by index and id."""
    return [{"_index": index, "_id": id_} for index, id_ in rows]


def _is_there(item: bulk.Item) -> bool:
    """Whether a row is where the answer says: written now, or by an earlier try."""
    return item.done or item.status == 409


def _is_behind(known: Sequence[str], item: bulk.Item) -> bool:
    """Whether a row was written behind a rollover."""
    return item.done and bool(item.place) and item.place not in known[-1:]


def id_of(operation: bytes) -> str:
    """The id that an operation names."""
    (told,) = json.loads(operation.partition(b"\n")[0]).values()
    return str(told["_id"])
