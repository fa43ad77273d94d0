"""Rows that are refused in words that may be about the row, and may be about the cluster.

Whoever puts bad rows aside believes the cluster that a row is bad. Where it refuses all rows of a
chunk for one and the same such reason, that is more likely a condition, and all of them are good.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_elasticsearch.chunks import operations
from pyspark_elasticsearch.failures import Kind, known, message
from pyspark_elasticsearch.sending import Refusal
from sparkonce.errors import StoreRefused

MANY = 20
"""Rows that are not bad all at once, and all for one reason, by chance."""


def require_not_all(refused: Sequence[Refusal], sent: bytes, outcome: str) -> None:
    """Refuse to take all documents of a chunk for bad ones.

    Args:
        refused: those that can't be stored.
        sent: the lines of the chunk, with deletes, which go through no pipeline and no mapping.
        outcome: what an error says about the epoch.

    Raises:
        StoreRefused: they are refused for one reason, which may be about the cluster.
    """
    if len(refused) < MANY:
        return
    first = refused[0].item
    if any(known(one.item.status, one.item.error).kind is not Kind.UNCLEAR for one in refused):
        return
    reason = message(first.error)
    if any(message(one.item.error) != reason for one in refused):
        return
    if len(refused) < sum(not one.startswith(b'{"delete"') for one in operations(sent)):
        return
    raise StoreRefused(
        f"Elasticsearch refused all {len(refused):,} rows of a chunk alike:"
        f" {first.status} {reason}",
        why="so many rows are seldom bad for one reason; if a setting, a pipeline or the mapping"
        " is, they are good ones, and onBadRow=deadLetter would put all of them aside",
        todo=f"mend what the reason names, then restart the query; {outcome}",
    )
