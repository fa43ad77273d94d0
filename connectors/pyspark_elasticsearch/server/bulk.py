"""Sends bulk requests, and checks every item of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch.server.client import AllDone, Cluster
from sparkonce.errors import StoreUnreachable

OUTCOMES = "items.*.status,items.*.error,items.*.failure_store,error,status"
"""The fields of an answer to ask for: only the status of an item that succeeded."""

PUT_ASIDE = {
    "type": "failure_store_used",
    "reason": "the data stream rejected a row and put it into its failure store",
}
"""The error of an item that only seems to have succeeded."""

WITH_INDEX = {"filter_path": f"{OUTCOMES},items.*._index"}
"""Parameters for an answer that also names the index of each document."""


ADDRESS = ("_index", "_id", "routing")
"""The parts of an action that name its document."""


class Item(NamedTuple):
    """The outcome of one operation. Fields that were not asked for are empty."""

    status: int
    error: Any  # None if it succeeded
    index_name: str = ""  # the index of the document
    id: str = ""  # of the document
    at: tuple[int, int] | None = None  # sequence number and primary term of the write, if any
    version: int | None = None  # of the document after it

    @property
    def done(self) -> bool:
        """Whether it took effect; the delete of a missing document did, too."""
        return self.error is None and (self.status < 300 or self.status == 404)


DONE = Item(200, None)  # an operation that took effect, with any status


def all_done(items: list[Item]) -> bool:
    """Whether all operations took effect."""
    identical = items.count(DONE) == len(items)  # by identity, so without a call for each
    return identical or all(item.done for item in items)


def send(
    cluster: Cluster,
    doing: str,
    target: str,
    lines: bytes,
    count: int,
    params: Mapping[str, str] | None = None,
) -> list[Item]:
    """The outcome of each operation; a rejected request gives all operations its own one."""
    # Shorter than the client's timeout: an answer about an unready shard says more than none.
    server_waits = f"{max(100, int(cluster.timeout * 800))}ms"
    asked = {"filter_path": OUTCOMES, "timeout": server_waits, **(params or {})}
    status, body = cluster.ask(doing, "POST", target, params=asked, body=lines, allow=(413, 429))
    if status == 413:
        return [Item(413, {"type": "413", "reason": f"{len(lines):,} bytes"})] * count
    if status == 429:  # the cluster's answer, or a proxy's
        error = body.get("error") if isinstance(body, Mapping) else None
        return [Item(429, error or {"type": "429", "reason": str(body)[:200]})] * count
    found = _items(body)
    if len(found) != count:
        raise StoreUnreachable(
            f"{cluster.dialect.name} answered {len(found)} of {count} operations while {doing}",
            why="the outcome of the others is unknown",
            todo="check whether a proxy changes answers",
        )
    return found


def _items(body: Any) -> list[Item]:
    items = body.get("items") if isinstance(body, Mapping) else None
    if isinstance(items, AllDone):
        return [Item(200, None, items.index_name) if items.index_name else DONE] * items.operations
    try:
        return [_item(item) for item in items or ()]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []  # the caller checks their number


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


def as_it_is(named: Mapping[str, Any]) -> bytes:
    """An update that writes a document as it is, and fails if the primary has none."""
    return f'{json.dumps({"update": named})}\n{{"doc":{{}},"detect_noop":false}}\n'.encode()


def is_blocked(item: Item) -> bool:
    """Whether the index takes no writes, and so has none that could be lost."""
    reason = str(item.error.get("reason", "")) if item.status == 403 and item.error else ""
    return reason.startswith("index [")


def numbered(lines: bytes) -> list[Operation]:
    """The operations of a chunk's lines."""
    return [Operation(at, one) for at, one in enumerate(operations(lines))]


def action(operation: bytes) -> dict[str, Any]:
    """The action line of an operation, which names its document; `kind` is the action."""
    ((kind, about),) = json.loads(operation.partition(b"\n")[0]).items()
    return {**about, "kind": kind}
