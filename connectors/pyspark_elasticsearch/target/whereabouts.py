"""Where rows went: of what ingest pipelines do that nobody has looked at, the answers tell.

A pipeline may come, or become another one, while an epoch is applied, and write another id, index
or version into a row. Sent again such a row would be there twice, or be taken for another, or for a
newer one. So each answer is compared with what was sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.bulk import action, operations
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.target import pipelines
from sparkonce.errors import StoreUnreachable

TOLD = ",".join(
    f"items.*.{name}" for name in ("_index", "_id", "_version", "_seq_no", "_primary_term")
)
LOOKS = 3
PAUSE = 0.2
"""Seconds between looks at a name: one node hears of its change later than another."""

CREATED = 201
LEFT = (
    "under a routing of its own or over what was there: look for their ids, and mend that by hand"
)


class Whereabouts:
    """Compares answers with what was sent, and takes back what went elsewhere.

    Args:
        cluster: where.
        index: or data stream, to which an operation goes that names none.
        ids: whether an answer must tell the ids, too. Else ids can't have been changed, and an
            answer that tells of known indices alone is not looked at row by row.

    Attributes:
        asked: parameters for such an answer.
    """

    def __init__(self, cluster: Cluster, index: str, *, ids: bool) -> None:
        self.cluster, self.index, self.ids = cluster, index, ids
        self.asked = {"filter_path": f"{bulk.SHOWN},{TOLD}"} if ids else bulk.WITH_INDEX
        self._behind: dict[str, set[str]] = {}

    def require_kept(self, lines: bytes, answer: Sequence[bulk.Item]) -> None:
        """Take back what of an answer went elsewhere.

        Raises:
            StoreRefused: there were such rows.
        """
        told_of = {item.place for item in answer if _is_there(item)}
        if not self.ids and all(self._leads(self.index, place) for place in told_of):
            return
        gone = [
            (told, item)
            for told, item in zip(map(action, operations(lines)), answer, strict=True)
            if (item.id or _is_there(item)) and not self._is_kept(told, item)
        ]
        if not gone:
            return
        ours = [(told, item) for told, item in gone if _is_ours(told, item)]
        taken = take_back(self.cluster, [_deletion(told, item) for told, item in ours])
        (told, item), left = gone[0], len(gone) - taken
        raise pipelines.elsewhere(
            f"An ingest pipeline of {self.index or told['_index']} sent {len(gone)} rows elsewhere"
            f"{'' if same_version(told, item) else ' or under another version'}, such as"
            f" {told['_id']!r} to {item.place}/{item.id or told['_id']}: {taken} were"
            f" taken back{f', {left} are there, {LEFT}' if left else ''}"
        )

    def _is_kept(self, told: dict[str, Any], item: bulk.Item) -> bool:
        same = item.id in ("", told["_id"]) and same_version(told, item)
        return same and self._leads(told.get("_index") or self.index, item.place)

    def _leads(self, name: str, place: str) -> bool:
        """Whether a name is that of this index, or leads to it.

        Of a row that a pipeline has dropped an answer tells the name alone, or nothing.
        """
        if place in ("", name):
            return True
        for look in range(LOOKS):
            if place in self._behind.get(name, ()):
                return True
            time.sleep(PAUSE if look else 0)
            # Asked anew: a rollover may have come since.
            self._behind[name] = behind(self.cluster, name)
        return place in self._behind[name]


def same_version(told: dict[str, Any], item: bulk.Item) -> bool:
    """Whether a row was written under the version that was sent, if one was."""
    return item.at is None or told.get("version") in (None, item.version)


def behind(cluster: Cluster, name: str) -> set[str]:
    """The indices that a name leads to now."""
    doing, params = f"looking at {name}", {"filter_path": "*.settings.index.uuid"}
    answer = cluster.ask(doing, "GET", path(name), params=params, allow=(404,))
    return set(answer.body) if answer.status == 200 else set()


def take_back(cluster: Cluster, deletions: Sequence[dict[str, Any]]) -> int:
    """Delete rows from where they should not be; how many were found there, as they were written.

    Raises:
        StoreUnreachable: the cluster can't do it now.
    """
    if not deletions:
        return 0
    lines = "".join(f"{json.dumps({'delete': one})}\n" for one in deletions).encode()
    said = bulk.send(cluster, "taking rows back", "/_bulk", lines, len(deletions))
    if isinstance(said, int) or not all(item.done or item.status == 409 for item in said):
        raise StoreUnreachable(f"Elasticsearch did not take back {len(deletions)} rows")
    return sum(item.status not in (404, 409) for item in said)


def _is_there(item: bulk.Item) -> bool:
    """Whether a row is where the answer says: written now, or by an earlier try."""
    return item.done or item.status == 409


def _is_ours(told: dict[str, Any], item: bulk.Item) -> bool:
    """Whether nothing else can be where a row went: it was made there, now or by an earlier try."""
    named = told["kind"] == "create" and item.id in ("", told["_id"])
    return (named and _is_there(item)) or (item.status == CREATED and item.at is not None)


def _deletion(told: dict[str, Any], item: bulk.Item) -> dict[str, Any]:
    # What others have written over it since is theirs, and stays.
    guard = {"if_seq_no": item.at[0], "if_primary_term": item.at[1]} if item.at else {}
    routing = {"routing": told["routing"]} if "routing" in told else {}
    return {"_index": item.place, "_id": item.id or told["_id"], **routing, **guard}
