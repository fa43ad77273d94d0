"""One bulk request, and a look at every item of its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch.server.client import AllDone, Cluster
from sparkonce.errors import StoreUnreachable

OUTCOMES = "items.*.status,items.*.error,items.*.failure_store,error,status"
"""What an answer is cut down to: of an item that went well, its status."""

PUT_ASIDE = {
    "type": "failure_store_used",
    "reason": "the data stream took a row that it refuses into its failure store",
}
"""The error of an item that looks as if it went well."""

WITH_INDEX = {"filter_path": f"{OUTCOMES},items.*._index"}
"""Parameters for an answer that tells where each document went, too."""


class Item(NamedTuple):
    """What became of one operation. What was not asked for is empty."""

    status: int
    error: Any  # None if it was done
    index_name: str = ""  # that the document went to
    id: str = ""  # of the document
    at: tuple[int, int] | None = None  # sequence number and primary term of the write, if any
    version: int | None = None  # that the document has since

    @property
    def done(self) -> bool:
        """Whether it took effect: also a delete of what is not there."""
        return self.error is None and (self.status < 300 or self.status == 404)


DONE = Item(200, None)  # an operation that took effect, whatever its status was


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
) -> list[Item]:
    """What became of each operation: the same of all where the request as a whole is refused."""
    # Less than the client waits: an answer that a shard is not ready says more than none.
    server_waits = f"{max(100, int(cluster.timeout * 800))}ms"
    asked = {"filter_path": OUTCOMES, "timeout": server_waits, **(params or {})}
    status, body = cluster.ask(doing, "POST", target, params=asked, body=lines, allow=(413, 429))
    if status == 413:
        return [Item(413, {"type": "413", "reason": f"{len(lines):,} bytes"})] * count
    if status == 429:  # in the words of the cluster, or of a proxy
        error = body.get("error") if isinstance(body, Mapping) else None
        return [Item(429, error or {"type": "429", "reason": str(body)[:200]})] * count
    found = _items(body)
    if len(found) != count:
        raise StoreUnreachable(
            f"Elasticsearch answered {len(found)} of {count} operations while {doing}",
            why="what became of the others is not known",
            todo="look for a proxy that changes answers",
        )
    return found


def _items(body: Any) -> list[Item]:
    items = body.get("items") if isinstance(body, Mapping) else None
    if isinstance(items, AllDone):
        return [Item(200, None, items.index_name) if items.index_name else DONE] * items.operations
    try:
        return [_item(item) for item in items or ()]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []  # the caller finds that their number is wrong


def _item(item: Mapping[str, Mapping[str, Any]]) -> Item:
    (found,) = item.values()
    index, number = found.get("_index", ""), found.get("_seq_no", -1)
    if found.get("failure_store") == "used":
        return Item(400, PUT_ASIDE, index)
    at = (number, found["_primary_term"]) if number >= 0 else None
    status, error = int(found["status"]), found.get("error")
    return Item(status, error, index, found.get("_id", ""), at, found.get("_version"))


def operations(lines: bytes) -> Iterator[bytes]:
    """The lines of each operation: an action, and a document unless it deletes."""
    each = iter(lines.splitlines(keepends=True))
    for action in each:
        yield action if action.startswith(b'{"delete"') else action + next(each)


class Operation(NamedTuple):
    """One operation of a chunk, and its place among the others."""

    position: int
    lines: bytes


def numbered(lines: bytes) -> list[Operation]:
    """The operations of a chunk's lines."""
    return [Operation(at, one) for at, one in enumerate(operations(lines))]


def action(operation: bytes) -> dict[str, Any]:
    """What names the document of an operation, and what is done to it, as `kind`."""
    ((kind, about),) = json.loads(operation.partition(b"\n")[0]).items()
    return {**about, "kind": kind}
