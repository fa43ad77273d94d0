"""Ledgers as tests want them: made, or changed, by the names of fields alone."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from sparkonce.exactly_once.ledger import Ledger

PARTS = ("owner", "decision", "totals")


def ledger_of(name: str, query_id: str, target: str, **values: Any) -> Ledger:
    """A ledger in which these fields have values, whichever part they are of."""
    return with_fields(Ledger.unwritten(name, query_id, target), **values)


def with_fields(ledger: Ledger, **values: Any) -> Ledger:
    """The same ledger but for these fields."""
    return replace(ledger, **by_part(ledger, **values))


def by_part(ledger: Ledger, **values: Any) -> dict[str, Any]:
    """The parts of a ledger with these fields changed, and the fields that are of no part."""
    found: dict[str, Any] = {}
    for name in PARTS:
        part = getattr(ledger, name)
        own = {one.name for one in fields(part)} & values.keys()
        if own:
            found[name] = replace(part, **{field: values.pop(field) for field in own})
    return {**found, **values}
