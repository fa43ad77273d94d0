"""Where rows went that pass through ingest pipelines: what can't be seen there, the answers tell.

A pipeline may write another id or index into a row, by processors without number. Sent again such a
row would be there twice, or be taken for another. So each answer is compared with what was sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark_elasticsearch import bulk, pipelines
from pyspark_elasticsearch.chunks import operations
from pyspark_elasticsearch.client import Cluster, path
from sparkonce.errors import StoreUnreachable

TOLD = "items.*._index,items.*._id,items.*._seq_no,items.*._primary_term"
ASKED = {"filter_path": f"{bulk.SHOWN},{TOLD}"}
"""Parameters for an answer that tells where each document went."""

LOOKS = 3
PAUSE = 0.2
"""Seconds between looks at a name: one node hears of its change later than another."""

CREATED = 201


class Whereabouts:
    """Compares answers with what was sent, and takes back what went elsewhere.

    Args:
        cluster: where.
        index: to which an operation goes that names none.
    """

    def __init__(self, cluster: Cluster, index: str) -> None:
        self.cluster, self.index = cluster, index
        self._behind: dict[str, set[str]] = {}

    def require_kept(self, lines: bytes, answer: Sequence[bulk.Item]) -> None:
        """Take back what of an answer went elsewhere.

        Raises:
            StoreRefused: there were such rows.
        """
        gone = [
            (told, item)
            for told, item in zip(_actions(lines), answer, strict=True)
            if item.id and not self._is_kept(told, item)
        ]
        if not gone:
            return
        ours = [(told, item) for told, item in gone if _is_ours(told, item)]
        take_back(self.cluster, [_deletion(told, item) for told, item in ours])
        (told, item), left = gone[0], len(gone) - len(ours)
        raise pipelines.elsewhere(
            f"An ingest pipeline of {self.index or told['_index']} sent {len(gone)} rows elsewhere,"
            f" such as {told['_id']!r} to {item.place}/{item.id}: {len(ours)} were taken back"
            + (f", {left} are there, or were written over what was there" if left else "")
        )

    def _is_kept(self, told: dict[str, Any], item: bulk.Item) -> bool:
        name = told.get("_index") or self.index
        return item.id == told["_id"] and (item.place == name or self._leads(name, item.place))

    def _leads(self, name: str, place: str) -> bool:
        """Whether a name is an alias of this index."""
        for look in range(LOOKS):
            if place in self._behind.get(name, ()):
                return True
            time.sleep(PAUSE if look else 0)
            doing, params = f"looking at {name}", {"filter_path": "*.settings.index.uuid"}
            answer = self.cluster.ask(doing, "GET", path(name), params=params, allow=(404,))
            self._behind[name] = set(answer.body) if answer.status == 200 else set()
        return place in self._behind[name]


def take_back(cluster: Cluster, deletions: Sequence[dict[str, Any]]) -> None:
    """Delete rows from where they should not be, unless they are not there any more.

    Raises:
        StoreUnreachable: not all of them.
    """
    if not deletions:
        return
    lines = "".join(f"{json.dumps({'delete': one})}\n" for one in deletions).encode()
    said = bulk.send(cluster, "taking rows back", "/_bulk", lines, len(deletions))
    if isinstance(said, int) or not all(item.done or item.status == 409 for item in said):
        raise StoreUnreachable(f"Elasticsearch did not take back {len(deletions)} rows")


def _actions(lines: bytes) -> Iterator[dict[str, Any]]:
    """The metadata of each operation, and which it is."""
    for one in operations(lines):
        ((kind, told),) = json.loads(one.partition(b"\n")[0]).items()
        yield {**told, "kind": kind}


def _is_ours(told: dict[str, Any], item: bulk.Item) -> bool:
    """Whether nothing else can be where a row went: it was made there, now or by an earlier try."""
    again = told["kind"] == "create" and item.status == 409 and item.id == told["_id"]
    return again or (item.status == CREATED and item.at is not None)


def _deletion(told: dict[str, Any], item: bulk.Item) -> dict[str, Any]:
    guard = {"if_seq_no": item.at[0], "if_primary_term": item.at[1]} if item.at else {}
    routing = {"routing": told["routing"]} if "routing" in told else {}
    return {"_index": item.place, "_id": item.id, **routing, **guard}
