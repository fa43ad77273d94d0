"""Verifies where rows went, and finds them again when they are repeated.

While an epoch is applied, somebody may add or change a pipeline, which may write another id, index
or version into a row. A repeated row would then become a second document, or pass for another or
a newer one. So the connector compares each answer with its request.

In a data stream the cluster chooses the backing index of a row. After a rollover a repeated row
would go to another index, where its id is new. So before the connector repeats rows, it looks up
their ids in the backing indices since the decision. An earlier request may still arrive just before
a rollover, and its repetition after it. A second look-up finds both copies, and removes the later
one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from pyspark_elasticsearch.server import bulk, reads
from pyspark_elasticsearch.server.bulk import action, as_it_is, is_blocked, operations
from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.errors import StoreRefused, StoreUnreachable

ADDRESSES = ",".join(
    f"items.*.{name}" for name in ("_index", "_id", "_version", "_seq_no", "_primary_term")
)
LOOKS = 3
PAUSE = 0.2  # seconds between look-ups of a name: nodes learn of its change one after another
CREATED = 201
LOOKING = "searching for rows of an earlier try"
LEFT = "under their own routing or over older documents: search for their ids, and correct by hand"
TIMESTAMP = "@timestamp"  # the field that every document of a data stream needs
Post = Callable[[Sequence[bytes]], list[bulk.Item]]
"""Sends operations, and returns the outcome of each."""


class PlacementCheck:
    """Compares answers with requests, and removes rows that went elsewhere.

    An operation without an index goes to `index`, which may be a data stream. With `ids` an answer
    must name the ids. Without `ids` nothing can have changed them, so an answer that names only
    known indices needs no check of each row. `asked` has the parameters of such a request.
    """

    def __init__(self, cluster: Cluster, index: str, *, ids: bool) -> None:
        self.cluster, self.index, self.ids = cluster, index, ids
        self.asked = {"filter_path": f"{bulk.OUTCOMES},{ADDRESSES}"} if ids else bulk.WITH_INDEX
        self._behind: dict[str, set[str]] = {}

    def require_kept(self, lines: bytes, answer: Sequence[bulk.Item]) -> None:
        """Remove the rows of an answer that went elsewhere; `StoreRefused` if any did."""
        indices = {item.index_name for item in answer if _is_stored(item)}
        if not self.ids and all(self._leads(self.index, index) for index in indices):
            return
        astray = [
            (sent, item)
            for sent, item in zip(map(action, operations(lines)), answer, strict=True)
            if (item.id or _is_stored(item))
            and not (
                item.id in ("", sent["_id"])
                and _same_version(sent, item)
                and self._leads(sent.get("_index") or self.index, item.index_name)
            )
        ]
        if not astray:
            return
        ours = [_deletion(sent, item) for sent, item in astray if _is_ours(sent, item)]
        taken = take_back(self.cluster, ours)
        (sent, item), left = astray[0], len(astray) - taken
        raise StoreRefused(
            f"An ingest pipeline of {self.index or sent['_index']} sent {len(astray)} rows"
            f" elsewhere{'' if _same_version(sent, item) else ' or under another version'}, such as"
            f" {sent['_id']!r} to {item.index_name}/{item.id or sent['_id']}: {taken} were"
            f" removed{f', {left} remain there, {LEFT}' if left else ''}",
            why="a repeated row must find its first copy by index and id. Elsewhere a"
            " row could be stored twice, or pass for another one",
            todo="name the place of the rows in option index (a template, or a query for each), and"
            " write there without such a processor; then restart the query",
        )

    def _leads(self, name: str, index: str) -> bool:
        """Whether a name is that of this index, or points to it.

        For a row that a pipeline dropped, an answer has only the name, or nothing.
        """
        if index in ("", name):
            return True
        for look in range(LOOKS):
            if index in self._behind.get(name, ()):
                return True
            time.sleep(PAUSE if look else 0)
            # Read again: there may have been a rollover since.
            self._behind[name] = behind(self.cluster, name)
        return index in self._behind[name]


def _same_version(sent: dict[str, Any], item: bulk.Item) -> bool:
    return item.at is None or sent.get("version") in (None, item.version)


def _is_stored(item: bulk.Item) -> bool:
    """Whether the row is stored where the answer says, by this try or an earlier one."""
    return item.done or item.status == 409


def _is_ours(sent: dict[str, Any], item: bulk.Item) -> bool:
    """Whether the document can only be this row, created by this try or an earlier one."""
    named = sent["kind"] == "create" and item.id in ("", sent["_id"])
    return (named and _is_stored(item)) or (item.status == CREATED and item.at is not None)


def _deletion(sent: dict[str, Any], item: bulk.Item) -> dict[str, Any]:
    # Keep the document if another writer has changed it since.
    guard = {"if_seq_no": item.at[0], "if_primary_term": item.at[1]} if item.at else {}
    routing = {"routing": sent["routing"]} if "routing" in sent else {}
    return {"_index": item.index_name, "_id": item.id or sent["_id"], **routing, **guard}


def behind(cluster: Cluster, name: str) -> set[str]:
    """The indices that a name points to now."""
    return reads.index_names(cluster, f"reading {name}", name)


def take_back(cluster: Cluster, deletions: Sequence[dict[str, Any]]) -> int:
    """Delete misplaced rows; return the number found unchanged."""
    if not deletions:
        return 0
    lines = "".join(f"{json.dumps({'delete': one})}\n" for one in deletions).encode()
    items = bulk.send(cluster, "removing misplaced rows", "/_bulk", lines, len(deletions))
    if not all(item.done or item.status == 409 for item in items):
        raise StoreUnreachable(f"{len(deletions)} misplaced rows were not all removed")
    return sum(item.status not in (404, 409) for item in items)


def backing(cluster: Cluster, name: str) -> list[str]:
    """The indices of a data stream in order; the last one is its write index."""
    target = path("_resolve", "index", name)
    status, body = cluster.ask(f"reading {name}", "GET", target, allow=(404,))
    streams = body["data_streams"] if status == 200 else []
    return [str(index) for one in streams for index in one["backing_indices"]]


class StreamResender:
    """Repeats operations in a data stream.

    Attributes:
        since: its write index at the decision.
        drops_fields: whether an index keeps only a part of each document.
    """

    def __init__(
        self, cluster: Cluster, name: str, since: str, drops_fields: Callable[[str], bool | None]
    ) -> None:
        self.cluster, self.name, self.since = cluster, name, since
        self.drops_fields = drops_fields

    def send(self, rows: Sequence[bytes], post: Post) -> list[bulk.Item]:
        """The outcome of each operation, a ``create``. If this raises, the caller can retry."""
        known, ids = self._since(), [str(action(one)["_id"]) for one in rows]
        # Within one index `create` itself rejects a stored row.
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
            # Look up again: a rollover has added an index since.
            self._once(self._since(), later)
        items = iter(answer)
        return [bulk.DONE if id_ in done else next(items) for id_ in ids]

    def _since(self) -> list[str]:
        found = backing(self.cluster, self.name)
        if not found:
            raise StoreRefused(
                f"Data stream {self.name} no longer exists",
                why="somebody deleted it after the query began, or a proxy says so",
                todo="restore it from a snapshot, or create it, then restart the query",
            )
        # A lifecycle may have deleted that index; then the row may be in any other one.
        return found[found.index(self.since) :] if self.since in found else found

    def _once(self, indices: Sequence[str], ids: Sequence[str]) -> set[str]:
        """The ids that one of the indices has; of several copies only the first stays.

        Each document is written as it is. Only that proves that all copies of a shard have it, and
        only the primary knows that it is not there.
        """
        known: set[str] = set()
        again: list[dict[str, str]] = []
        for index in indices:
            found = self._written_in(index, ids)
            again += [{"_index": index, "_id": id_} for id_ in sorted(found & known)]
            known |= found
        take_back(self.cluster, again)
        return known

    def _written_in(self, index: str, ids: Sequence[str]) -> set[str]:
        """The ids whose documents the index has, on all copies.

        An update can't write documents of which the index keeps a part, or in an index that takes
        no writes, as of a lifecycle policy. There a read must do.
        """
        answer = []
        if not self.drops_fields(index):
            lines = b"".join(as_it_is({"_id": id_}) for id_ in ids)
            answer = bulk.send(self.cluster, LOOKING, path(index, "_bulk"), lines, len(ids))
        if not answer or any(map(is_blocked, answer)):
            docs = reads.by_id(self.cluster, LOOKING, index, ids)
            return {doc["_id"] for doc in docs if doc.get("found")}
        for item in answer:
            if item.status == 409:
                what = "Another write changed a row of an earlier try"
                raise StoreUnreachable(what, "two requests wrote the same document")
            if not (item.done or item.status == 404):
                raise self.cluster.error_of(item.status, item.error, LOOKING)
        return {id_ for id_, item in zip(ids, answer, strict=True) if item.done}
