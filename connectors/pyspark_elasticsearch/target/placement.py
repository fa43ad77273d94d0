"""Where rows went, and where they are when they are sent again.

A pipeline may come, or become another one, while an epoch is applied, and write another id, index
or version into a row. Sent again such a row would be there twice, or be taken for another, or for a
newer one. So each answer is compared with what was sent.

Of a data stream the cluster chooses the backing index of a row, and takes it by no other name.
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

from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.bulk import action, operations
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.errors import StoreRefused, StoreUnreachable

ADDRESSES = ",".join(
    f"items.*.{name}" for name in ("_index", "_id", "_version", "_seq_no", "_primary_term")
)
LOOKS = 3
PAUSE = 0.2  # seconds between looks at a name: one node hears of its change later than another
CREATED = 201
LOOKING = "looking for rows that are there already"
LEFT = (
    "under a routing of its own or over what was there: look for their ids, and mend that by hand"
)
TIMESTAMP = "@timestamp"  # the field that every document of a data stream must have
Post = Callable[[Sequence[bytes]], list[bulk.Item]]
"""Sends operations, and gives what became of each."""


class PlacementCheck:
    """Compares answers with what was sent, and takes back what went elsewhere.

    An operation that names no index goes to `index`, or that data stream. With `ids` an answer must
    tell the ids, too; else ids can't have been changed, and an answer that tells of known indices
    alone is not looked at row by row. The parameters for such an answer are `asked`.
    """

    def __init__(self, cluster: Cluster, index: str, *, ids: bool) -> None:
        self.cluster, self.index, self.ids = cluster, index, ids
        self.asked = {"filter_path": f"{bulk.OUTCOMES},{ADDRESSES}"} if ids else bulk.WITH_INDEX
        self._behind: dict[str, set[str]] = {}

    def require_kept(self, lines: bytes, answer: Sequence[bulk.Item]) -> None:
        """Take back what of an answer went elsewhere; `StoreRefused` if there were such rows."""
        indices = {item.index_name for item in answer if _is_there(item)}
        if not self.ids and all(self._leads(self.index, index) for index in indices):
            return
        gone = [
            (sent, item)
            for sent, item in zip(map(action, operations(lines)), answer, strict=True)
            if (item.id or _is_there(item))
            and not (
                item.id in ("", sent["_id"])
                and _same_version(sent, item)
                and self._leads(sent.get("_index") or self.index, item.index_name)
            )
        ]
        if not gone:
            return
        ours = [_deletion(sent, item) for sent, item in gone if _is_ours(sent, item)]
        taken = take_back(self.cluster, ours)
        (sent, item), left = gone[0], len(gone) - taken
        raise StoreRefused(
            f"An ingest pipeline of {self.index or sent['_index']} sent {len(gone)} rows elsewhere"
            f"{'' if _same_version(sent, item) else ' or under another version'}, such as"
            f" {sent['_id']!r} to {item.index_name}/{item.id or sent['_id']}: {taken} were"
            f" taken back{f', {left} are there, {LEFT}' if left else ''}",
            why="a row that is sent again must find itself by its index and id; sent elsewhere by"
            " an ingest pipeline, it could be there twice, or another one be taken for it",
            todo="name the place of the rows in option index (a template, or a query for each), and"
            " write there without such a processor; then restart the query",
        )

    def _leads(self, name: str, index: str) -> bool:
        """Whether a name is that of this index, or leads to it.

        Of a row that a pipeline has dropped an answer tells the name alone, or nothing.
        """
        if index in ("", name):
            return True
        for look in range(LOOKS):
            if index in self._behind.get(name, ()):
                return True
            time.sleep(PAUSE if look else 0)
            # Asked anew: a rollover may have come since.
            self._behind[name] = behind(self.cluster, name)
        return index in self._behind[name]


def _same_version(sent: dict[str, Any], item: bulk.Item) -> bool:
    return item.at is None or sent.get("version") in (None, item.version)


def _is_there(item: bulk.Item) -> bool:
    """Whether a row is where the answer says: written now, or by an earlier try."""
    return item.done or item.status == 409


def _is_ours(sent: dict[str, Any], item: bulk.Item) -> bool:
    """Whether nothing else can be where a row went: it was made there, now or by an earlier try."""
    named = sent["kind"] == "create" and item.id in ("", sent["_id"])
    return (named and _is_there(item)) or (item.status == CREATED and item.at is not None)


def _deletion(sent: dict[str, Any], item: bulk.Item) -> dict[str, Any]:
    # What others have written over it since is theirs, and stays.
    guard = {"if_seq_no": item.at[0], "if_primary_term": item.at[1]} if item.at else {}
    routing = {"routing": sent["routing"]} if "routing" in sent else {}
    return {"_index": item.index_name, "_id": item.id or sent["_id"], **routing, **guard}


def behind(cluster: Cluster, name: str) -> set[str]:
    """The indices that a name leads to now."""
    return reads.index_names(cluster, f"looking at {name}", name)


def take_back(cluster: Cluster, deletions: Sequence[dict[str, Any]]) -> int:
    """Delete rows from where they should not be; how many were there, as they were written."""
    if not deletions:
        return 0
    lines = "".join(f"{json.dumps({'delete': one})}\n" for one in deletions).encode()
    items = bulk.send(cluster, "taking rows back", "/_bulk", lines, len(deletions))
    if not all(item.done or item.status == 409 for item in items):
        raise StoreUnreachable(f"Elasticsearch did not take back {len(deletions)} rows")
    return sum(item.status not in (404, 409) for item in items)


def backing(cluster: Cluster, name: str) -> list[str]:
    """The indices of a data stream, in their order: the last one takes its writes."""
    target = path("_resolve", "index", name)
    status, body = cluster.ask(f"looking at {name}", "GET", target, allow=(404,))
    streams = body["data_streams"] if status == 200 else []
    return [str(index) for one in streams for index in one["backing_indices"]]


class StreamResender:
    """Sends operations again to a data stream, whose writes went to `since` at the decision."""

    def __init__(self, cluster: Cluster, name: str, since: str) -> None:
        self.cluster, self.name, self.since = cluster, name, since

    def send(self, rows: Sequence[bytes], post: Post) -> list[bulk.Item]:
        """What became of each operation: a ``create``. If it fails, the same can be tried again."""
        known, ids = self._since(), [str(action(one)["_id"]) for one in rows]
        # Within one index `create` itself refuses a row that is there.
        done = self._once(known, ids) if len(known) > 1 else set()
        rest = [one for one, id_ in zip(rows, ids, strict=True) if id_ not in done]
        answer = post(rest) if rest else []
        missing = [id_ for id_ in ids if id_ not in done]
        later = [
            id_
            for id_, item in zip(missing, answer, strict=True)
            if item.done and item.index_name and item.index_name not in known[-1:]
        ]
        if later:
            # Asked again: the index that a rollover made since is not among those known.
            self._once(self._since(), later)
        items = iter(answer)
        return [bulk.DONE if id_ in done else next(items) for id_ in ids]

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
