"""Reads documents by id and by search; incomplete or late answers raise errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pyspark_elasticsearch.server.client import RAW_PAGE, Answer, Cluster, path
from pyspark_elasticsearch.server.failures import TOO_SLOW
from pyspark_elasticsearch.server.library import TimedOut
from sparkonce.errors import StoreRefused, StoreUnreachable

T = TypeVar("T")
PAGE = 500
ABSENT = "index_not_found_exception"
SHARE = 0.9  # of option ``timeout``: the cluster ends a search before the client stops waiting


def by_id(
    cluster: Cluster, doing: str, index: str, ids: Sequence[str], *, source: bool = False
) -> list[dict[str, Any]]:
    """The answer about each document, in order; `StoreError` if a shard did not answer.

    A document in a missing index counts as not found.
    """
    target, params = path(index, "_mget"), {} if source else {"_source": "false"}
    answer = cluster.ask(doing, "POST", target, params=params, body={"ids": [*ids]}, allow=(404,))
    docs: list[dict[str, Any]] = answer.body["docs"] if answer.status == 200 else [{} for _ in ids]
    for error in (doc["error"] for doc in docs if "error" in doc):
        if error.get("type") != ABSENT:
            # As "not found", a chunk would count as lost, and a row could be stored twice.
            raise cluster.error_of(503, error, doing)
    return docs


def index_names(
    cluster: Cluster, doing: str, names: str, allow: tuple[int, ...] = (404,), **params: str
) -> set[str]:
    """The indices that names resolve to; none if the status is in `allow`."""
    params = {"filter_path": "*.settings.index.uuid", **params}
    status, body = cluster.ask(doing, "GET", path(names), params=params, allow=allow)
    return set(body) if status == 200 else set()


def overwrite_guard(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """The condition for a write over a document as it was read; None if it was missing."""
    if document is None:
        return {"op_type": "create"}
    return {"if_seq_no": document["_seq_no"], "if_primary_term": document["_primary_term"]}


def batches(items: Sequence[T], size: int = PAGE) -> Iterator[Sequence[T]]:
    """The items in batches of this size."""
    return (items[start : start + size] for start in range(0, len(items), size))


def all_of(*conditions: Mapping[str, Any]) -> dict[str, Any]:
    """The query for documents that match all conditions."""
    # OpenSearch rewrites queries inside a `bool` (search.query_rewriting.enabled); some releases
    # divide a `terms` there into several that must all match.
    return {"bool": {"filter": [{"constant_score": {"filter": one}} for one in conditions]}}


def whole(cluster: Cluster) -> dict[str, str]:
    """The parameters of a search for all hits."""
    # Otherwise a shard without an answer omits its hits, and the result looks complete.
    return {"allow_partial_search_results": "false", **cluster.dialect.searching}


def pages(
    cluster: Cluster, doing: str, index: str | None, body: dict[str, Any]
) -> Iterator[list[dict[str, Any]]]:
    """The hits of a search by its `sort`, in an index (it may be missing) or a point in time.

    Raises:
        StoreUnreachable: the cluster lost the point in time, or lost the index between two pages.
    """
    target = "/_search" if index is None else path(index, "_search")
    body = {"size": PAGE, **body}
    while True:
        answer = cluster.ask(doing, "POST", target, params=whole(cluster), body=body, allow=(404,))
        if answer.status == 404 and (index is None or "search_after" in body):
            raise StoreUnreachable(
                f"The documents were not all found while {doing}",
                why="a node stopped, or somebody deleted an index, between two pages of the search",
            )
        hits = answer.body["hits"]["hits"] if answer.status == 200 else []
        is_last = len(hits) < body["size"]
        if cluster.dialect.has_ties and not is_last:
            hits = without_ties(hits)
            if not hits:
                body["size"] *= 2
                continue
        yield hits
        if is_last:
            return
        body["search_after"] = hits[-1]["sort"]


def without_ties(hits: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The hits of a full page without those at its end whose equals may be on the next one."""
    return [one for one in hits if one["sort"] != hits[-1]["sort"]]


def open_point(cluster: Cluster, index: str, keep: str, **params: str) -> str:
    """Open a point in time; the cluster keeps it for `keep` after its last page."""
    target, asked = path(index, *cluster.dialect.point_path), {"keep_alive": keep, **params}
    asked |= cluster.dialect.opening
    answer = cluster.ask("opening a point in time", "POST", target, params=asked)
    if answer.body.get("_shards", {}).get("failed"):
        raise StoreUnreachable(f"A shard of index {index} has no part in the point in time")
    return str(answer.body[cluster.dialect.point_id])


def close_point(cluster: Cluster, point: str) -> None:
    """Close a point in time."""
    target, body = path(*cluster.dialect.point_path), cluster.dialect.closing(point)
    cluster.ask("closing a point in time", "DELETE", target, body=body, allow=(404,))


def search(
    cluster: Cluster,
    doing: str,
    target: str,
    body: Mapping[str, Any],
    allow: tuple[int, ...] = (),
    **params: str,
) -> Answer:
    """The answer to a user's search; `StoreRefused` if it exceeds option ``timeout``.

    The cluster ends a search whose client no longer waits.
    """
    asked = {**body, "timeout": f"{max(1, int(1000 * SHARE * cluster.timeout))}ms"}
    try:
        answer = cluster.ask(
            doing, "POST", target, params={**whole(cluster), **params}, body=asked, allow=allow
        )
    except StoreUnreachable as error:
        if isinstance(error.__context__, TimedOut) and _answers(cluster):
            raise StoreRefused(error.what, TOO_SLOW.why, TOO_SLOW.todo) from None
        raise
    if answer.status == 200 and RAW_PAGE not in answer.body:
        require_in_time(cluster, answer.body["timed_out"], doing)
    return answer


def require_in_time(cluster: Cluster, timed_out: Any, doing: str) -> None:
    """Reject the partial result of a search that timed out (`StoreRefused`)."""
    if timed_out is not False:
        what = f"{cluster.dialect.name} timed out while {doing}"
        raise StoreRefused(what, TOO_SLOW.why, TOO_SLOW.todo)


def _answers(cluster: Cluster) -> bool:
    try:
        cluster.ask("checking whether the server answers", "GET", "/", allow=(401, 403, 404))
    except StoreUnreachable:
        return False
    return True
