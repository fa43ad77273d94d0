"""Searches of whoever reads: whole, in time, and ended where they are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import elasticsearch

from pyspark_elasticsearch.read.refusals import LATE, require_whole
from pyspark_elasticsearch.server.client import Answer, Cluster
from sparkonce.errors import StoreRefused, StoreUnreachable

SHARE = 0.9
"""Of option ``timeout``, after which the cluster ends a search: it tells before nobody listens."""


def searched(
    cluster: Cluster,
    doing: str,
    target: str,
    body: Mapping[str, Any],
    allow: tuple[int, ...] = (),
    **params: str,
) -> Answer:
    """What a search finds. A cluster ends one that nobody waits for, as its connection is closed.

    Args:
        cluster: where.
        doing: what an error says was tried.
        target: the path.
        body: of the search.
        allow: statuses that are answers, not errors.
        params: behind the path.

    Raises:
        StoreRefused: it takes longer than option ``timeout``, and the cluster answers others.
    """
    asked = {**body, "timeout": f"{max(1, int(1000 * SHARE * cluster.timeout))}ms"}
    whole = {"allow_partial_search_results": "false", **params}
    try:
        answer = cluster.ask(doing, "POST", target, params=whole, body=asked, allow=allow)
    except StoreUnreachable as error:
        if isinstance(error.__context__, elasticsearch.ConnectionTimeout) and _answers(cluster):
            raise StoreRefused(error.what, LATE.why, LATE.todo) from None
        raise
    if answer.status == 200 and "bytes" not in answer.body:
        require_whole(answer.body, doing)
    return answer


def _answers(cluster: Cluster) -> bool:
    try:
        cluster.ask("asking for an answer", "GET", "/", allow=(401, 403, 404))
    except StoreUnreachable:
        return False
    return True
