"""Settings with which an index may lose rows, or rejects what the connector must do with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sparkonce.errors import StoreUnsafe

DURABILITY = "index.translog.durability"
Rule = tuple[str, Callable[[str], bool], str]
"""A setting, whether a value in lower case is unsafe, and why."""

LOSING: Sequence[Rule] = (
    (
        DURABILITY,
        lambda value: value == "async",
        "if a node fails within seconds, acknowledged rows of a finished epoch are lost",
    ),
    (
        "index.replication.type",
        lambda value: value == "segment",
        "a refresh covers the primaries only, and a search of a copy may miss rows",
    ),
    (
        "index.ingestion_source.type",
        lambda value: value not in ("", "none"),
        "the index takes rows from that source alone",
    ),
)
"""Settings that lose acknowledged rows, or hide them."""

UNFIT: Sequence[Rule] = (
    (
        "index.disable_sequence_numbers",
        lambda value: value == "true",
        "no write there can depend on the earlier state of a document: the cluster rejects"
        " updates, and the connector could not safely remove a misplaced row",
    ),
    (
        "index.mode",
        lambda value: value not in ("", "standard", "logsdb", "lookup"),
        "an index of this mode may make ids itself, or keep no sequence numbers, and the connector"
        " identifies a repeated row by its id",
    ),
    (
        "index.append_only.enabled",
        lambda value: value == "true",
        "it rejects updates and deletes, so the connector could not remove a misplaced row",
    ),
)
"""Settings under which the connector can't guard rows."""

ALL: Sequence[Rule] = (*LOSING, *UNFIT)
CLOSED = "index.verified_before_close", "index.blocks.write", "index.blocks.read_only"
"""Settings that are true for an index that accepts no writes."""


def require(of: str, settings: Mapping[str, Any], rules: Sequence[Rule], cure: str) -> None:
    """Reject unsafe settings (`StoreUnsafe`).

    Args:
        of: the index or the template that has them, for errors.
        settings: by whole names.
        rules: to apply.
        cure: what to do about a setting that cannot change.
    """
    for name, is_unsafe, why in rules:
        value = str(settings.get(name) or "").lower()
        if is_unsafe(value):
            todo = f"set {name}=request" if name == DURABILITY else cure
            raise StoreUnsafe(f"{of} has {name}={value}", why, f"{todo}, then restart the query")


def is_closed(settings: Mapping[str, Any]) -> bool:
    """Whether an index accepts no writes."""
    return any(str(settings.get(name)).lower() == "true" for name in CLOSED)
