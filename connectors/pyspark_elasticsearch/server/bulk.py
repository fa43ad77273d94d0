"""One bulk request, and a look at every item of its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch.server.answers import AllDone
from pyspark_elasticsearch.server.client import Cluster
from sparkonce.errors import StoreUnreachable

SHOWN = "items.*.status,items.*.error,items.*.failure_store,error,status"
"""What an answer is cut down to: of an item that went well, its status."""

PUT_ASIDE = {
    "type": "failure_store_used",
    "reason": "the data stream took a row that it refuses into its failure store",
}
"""The error of an item that looks as if it went well."""

WITH_INDEX = {"filter_path": f"{SHOWN},items.*._index"}
"""Parameters for an answer that tells where each document went, too."""


class Item(NamedTuple):
    """What became of one operation.

    Attributes:
        error: None if it was done.
        place: the index that the document went to; empty if that was not asked.
        id: of the document; empty if that was not asked.
        at: sequence number and primary term of the write, if they were asked and there was one.
        version: that the document has since, if that was asked.
    """

    status: int
    error: Any
    place: str = ""
    id: str = ""
    at: tuple[int, int] | None = None
    version: int | None = None

    @property
    def done(self) -> bool:
        """Whether it took effect: also a delete of what is not there."""
        return self.error is None and (self.status < 300 or self.status == 404)


DONE = Item(200, None)
"""An operation that took effect, whatever its status was."""


def all_done(items: list[Item]) -> bool:
    """Whether all operations took effect."""
    at_once = items.count(DONE) == len(items)  # by identity, so without a call for each
    return at_once or all(item.done for item in items)


def send(
    cluster: Cluster,
    doing: str,
    target: str,
    lines: bytes,
    count: int,
    params: Mapping[str, str] | None = None,
) -> list[Item] | int:
    """What became of each operation; or 413, if the request is too large.

    Raises:
        StoreError: no answer, another refusal, or an answer that does not fit the request.
    """
    # Less than the client waits: an answer that a shard is not ready says more than none.
    server_waits = f"{max(100, int(cluster.timeout * 800))}ms"
    asked = {"filter_path": SHOWN, "timeout": server_waits, **(params or {})}
    answer = cluster.ask(doing, "POST", target, params=asked, body=lines, allow=(413, 429))
    if answer.status == 413:
        return 413
    if answer.status == 429:
        return [Item(429, _words(answer.body))] * count
    found = _items(answer.body)
    if len(found) != count:
        raise StoreUnreachable(
            f"Elasticsearch answered {len(found)} of {count} operations while {doing}",
            why="what became of the others is not known",
            todo="look for a proxy that changes answers",
        )
    return found


def _words(body: Any) -> Any:
    """Why the whole was refused: the cluster's error, or what a proxy says."""
    told = body.get("error") if isinstance(body, Mapping) else None
    return told or {"type": "429", "reason": str(body)[:200]}


def _items(body: Any) -> list[Item]:
    """The items; none if the body is no answer to a bulk request."""
    items = body.get("items") if isinstance(body, Mapping) else None
    if isinstance(items, AllDone):
        return [Item(200, None, items.place) if items.place else DONE] * items.operations
    try:
        return [_item(item) for item in items or ()]
    except (AttributeError, KeyError, TypeError, ValueError):
        # The caller finds that the number of items is wrong.
        return []


def _item(item: Mapping[str, Mapping[str, Any]]) -> Item:
    (told,) = item.values()
    if told.get("failure_store") == "used":
        return Item(400, PUT_ASIDE, told.get("_index", ""))
    number = told.get("_seq_no", -1)
    at = (number, told["_primary_term"]) if number >= 0 else None
    index, id_ = told.get("_index", ""), told.get("_id", "")
    return Item(int(told["status"]), told.get("error"), index, id_, at, told.get("_version"))


def operations(lines: bytes) -> Iterator[bytes]:
    """The lines of each operation: an action, and a document unless it deletes."""
    pieces = iter(lines.splitlines(keepends=True))
    for action in pieces:
        yield action if action.startswith(b'{"delete"') else action + next(pieces)


class Operation(NamedTuple):
    """One operation of a chunk, and its place among the others."""

    position: int
    lines: bytes


def numbered(lines: bytes) -> list[Operation]:
    """The operations of a chunk's lines."""
    return [Operation(at, one) for at, one in enumerate(operations(lines))]


def action(operation: bytes) -> dict[str, Any]:
    """What names the document of an operation, and what is done to it, as `kind`."""
    ((kind, told),) = json.loads(operation.partition(b"\n")[0]).items()
    return {**told, "kind": kind}
