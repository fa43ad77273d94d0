"""Data streams: the cluster chooses the backing index of a row, and takes it by no other name.

After a rollover a repeated row would go to another index than before, where its id is new. So
before rows are sent again their ids are looked up in the backing indices since the decision. What
was on its way meanwhile, and landed before a rollover that the repeated row came after, is found
by a second look, and the later one of the two is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.bulk import action
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.target.whereabouts import take_back
from sparkonce.errors import StoreRefused

LOOKING = "looking for rows that are there already"
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


class Resender:
    """Sends operations to a data stream again.

    Args:
        cluster: where.
        name: of the stream.
        since: the index that took its writes when the rows were decided.
    """

    def __init__(self, cluster: Cluster, name: str, since: str) -> None:
        self.cluster, self.name, self.since = cluster, name, since

    def send(self, rows: Sequence[bytes], post: Post) -> list[bulk.Item] | int:
        """What became of each operation, each of them a ``create`` with an id of its own.

        Raises:
            StoreError: the cluster can't do it; the same can be tried again.
        """
        known, ids = self._since(), [str(action(one)["_id"]) for one in rows]
        # Within one index `create` itself refuses a row that is there.
        done = self._once(known, ids) if len(known) > 1 else set()
        rest = [one for one, id_ in zip(rows, ids, strict=True) if id_ not in done]
        answer = post(rest) if rest else []
        if isinstance(answer, int):
            return answer
        missing = [id_ for id_ in ids if id_ not in done]
        later = [id_ for id_, item in zip(missing, answer, strict=True) if _is_behind(known, item)]
        if later:
            # Asked again: the index that a rollover made since is not among those known.
            self._once(self._since(), later)
        items = iter(answer)
        return [bulk.Item(200, None) if id_ in done else next(items) for id_ in ids]

    def _since(self) -> list[str]:
        there = backing(self.cluster, self.name)
        if not there:
            raise StoreRefused(
                f"There is no data stream {self.name} any more",
                why="it was deleted since the query began, or a proxy says so",
                todo="restore it from a snapshot, or create it, then restart the query",
            )
        # A lifecycle may have deleted that index; then the row may be in any other.
        return there[there.index(self.since) :] if self.since in there else there

    def _once(self, indices: Sequence[str], ids: Sequence[str]) -> set[str]:
        """Those of the ids that are in one of the indices; in the first of several they stay."""
        known: set[str] = set()
        again: list[dict[str, str]] = []
        for index in indices:
            docs = reads.by_id(self.cluster, LOOKING, index, ids)
            there = {doc["_id"] for doc in docs if doc.get("found")}
            again += [{"_index": index, "_id": id_} for id_ in sorted(there & known)]
            known |= there
        take_back(self.cluster, again)
        return known


def _is_behind(known: Sequence[str], item: bulk.Item) -> bool:
    """Whether a row was written behind a rollover."""
    return item.done and bool(item.place) and item.place not in known[-1:]
