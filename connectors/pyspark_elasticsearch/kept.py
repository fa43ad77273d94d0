"""What an index keeps of a document, and of its history: what is written back must be all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkonce.errors import StoreUnsafe

UNNUMBERED = "index.disable_sequence_numbers"
WHOLE = ("standard", "lookup")
"""Index modes that keep a document as it was sent, unless something else is set."""


def flaw(settings: Mapping[str, Any], mappings: Mapping[str, Any]) -> str:
    """What an index keeps instead of each document as it was sent; empty if it keeps that."""
    about = mappings.get("_source", {})
    told = about.get("mode"), settings.get("index.mapping.source.mode")
    modes = {str(mode).lower() for mode in told if mode is not None}
    of_index = str(settings.get("index.mode") or "standard").lower()
    if "disabled" in modes or str(about.get("enabled")).lower() == "false":
        return "no _source"
    if about.get("excludes") or about.get("includes", ["*"]) != ["*"]:
        return "a part of each _source"
    if modes - {"stored"}:
        return f"no _source: index.mode={of_index} or its own setting has it rebuilt from fields"
    if not modes and of_index not in WHOLE:
        return f"a _source that may be rebuilt from fields: index.mode={of_index}"
    return ""


def require_numbered(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse an index without sequence numbers.

    Raises:
        StoreUnsafe: that is so.
    """
    if str(settings.get(UNNUMBERED)).lower() == "true":
        mode = settings.get("index.mode") or "standard"
        raise StoreUnsafe(
            f"Index {name} has {UNNUMBERED}=true (index.mode={mode})",
            why="no write to a document there can depend on what it was: the cluster refuses"
            " updates, and a row that went astray could not be taken back safely",
            todo=f"make the index anew with {UNNUMBERED}=false, and an index.mode that allows that",
        )
