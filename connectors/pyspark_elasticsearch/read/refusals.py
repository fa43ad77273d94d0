"""What an answer to a read asks for: a read has a query and no rows, so less can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_elasticsearch.server import failures
from pyspark_elasticsearch.server.failures import Kind, Known
from sparkonce.errors import StoreRefused

LATE = Known(
    Kind.REFUSED,
    "it takes longer than option timeout allows, so the cluster has ended it",
    "raise option timeout, or ask for less: a narrower option query, one without scripts and"
    " leading wildcards",
)
NOT_THERE = Known(
    Kind.REFUSED, "the index is not there (any more)", "mend option index, or restore the index"
)
NO_SEARCH = Known(
    Kind.REFUSED, "the cluster can't do what it is asked", "mend option query, if that is named"
)
BLOCKED = Known(
    Kind.REFUSED, "a block of the index forbids to read it", "remove it (index.blocks.read)"
)
BY_TYPE = {"search_timeout_exception": LATE, "index_not_found_exception": NOT_THERE}
OF_READS = "index_closed_exception", "media_type_header_exception"


def known(status: int, error: Any) -> Known:
    """What is known of an answer to a read."""
    kinds = [str(cause.get("type")) for cause in failures.causes(error)]
    found = next((BY_TYPE[kind] for kind in kinds if kind in BY_TYPE), None)
    if found:
        return found
    if status == 400 and not {*OF_READS} & {*kinds}:
        return NO_SEARCH
    if status == 403 and "cluster_block_exception" in kinds:
        return BLOCKED
    kind, why, todo = failures.known(status, error)
    return Known(kind, why, todo.replace(failures.GOES_ON, "then start it again"))


def require_whole(answer: Mapping[str, Any], doing: str) -> None:
    """Refuse what a search found until its time was over.

    Raises:
        StoreRefused: there may be more.
    """
    if answer["timed_out"] is not False:
        raise StoreRefused(f"Elasticsearch gave up while {doing}", LATE.why, LATE.todo)
