"""Documents by their ids, and all that a search finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import of_answer

PAGE = 500
ABSENT = "index_not_found_exception"


def by_id(
    cluster: Cluster, doing: str, index: str, ids: Sequence[str], *, source: bool = False
) -> list[dict[str, Any]]:
    """What is said of each document, in order; one of an index that is not there is not found.

    Raises:
        StoreError: a shard did not answer.
    """
    target, params = path(index, "_mget"), {} if source else {"_source": "false"}
    told = cluster.ask(doing, "POST", target, params=params, body={"ids": [*ids]}, allow=(404,))
    docs: list[dict[str, Any]] = told.body["docs"] if told.status == 200 else [{} for _ in ids]
    for error in (doc["error"] for doc in docs if "error" in doc):
        if error.get("type") != ABSENT:
            # Taken for not found, a chunk would count as lost, and a row could be sent twice.
            raise of_answer(503, error, doing)
    return docs


def pages(
    cluster: Cluster, doing: str, index: str | None, body: dict[str, Any]
) -> Iterator[list[dict[str, Any]]]:
    """The hits of a search in the order of its `sort`, page by page; none where no index is.

    Args:
        cluster: where.
        doing: what an error says was tried.
        index: None where the body names a point in time.
        body: of the search.
    """
    # Else a shard that does not answer leaves its hits out, and the list looks whole.
    whole = {"allow_partial_search_results": "false"}
    target = "/_search" if index is None else path(index, "_search")
    body = {"size": PAGE, **body}
    while True:
        answer = cluster.ask(doing, "POST", target, params=whole, body=body, allow=(404,))
        hits = answer.body["hits"]["hits"] if answer.status == 200 else []
        yield hits
        if len(hits) < PAGE:
            return
        body["search_after"] = hits[-1]["sort"]
