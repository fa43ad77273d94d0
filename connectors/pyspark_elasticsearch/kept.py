"""What an index keeps of a document, and of its history: what is written back must be all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.models.mappings import GUARD, OWN
from sparkonce.errors import StoreUnsafe

UNNUMBERED = "index.disable_sequence_numbers"
PIPELINES = ("index.default_pipeline", "index.final_pipeline")
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


def prepare_for_scripts(
    cluster: Cluster, name: str, settings: Mapping[str, Any], mappings: Mapping[str, Any]
) -> None:
    """See that an index that is there is fit, and that the guard of its documents has its mapping.

    Raises:
        StoreUnsafe: a script would lose something there.
    """
    _require_whole_source(name, settings, mappings)
    _require_no_pipeline(name, settings)
    fields = mappings.get("properties", {})
    if OWN not in fields or fields[OWN].get("enabled") is not False:
        doing, body = f"adding field {OWN} to the mapping of {name}", {"properties": {OWN: GUARD}}
        cluster.ask(doing, "PUT", path(name, "_mapping"), body=body)


def _require_whole_source(
    name: str, settings: Mapping[str, Any], mappings: Mapping[str, Any]
) -> None:
    """Refuse an index that keeps a part of each document: a script would not see its guard."""
    if part := flaw(settings, mappings):
        raise StoreUnsafe(
            f"Index {name} keeps {part}",
            why="an update or increment writes back what is kept of a document: other fields would"
            f" be lost or changed, and field {OWN!r}, without which a repeated row is added again",
            todo="write into an index of index.mode=standard, without includes, excludes, enabled"
            " and mode of _source",
        )


def _require_no_pipeline(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse what could drop a row, and be answered as if all were well."""
    for option in PIPELINES:
        pipeline = str(settings.get(option, "_none"))
        if pipeline != "_none":
            raise StoreUnsafe(
                f"Index {name} has {option}={pipeline}",
                why="of the row of an update or increment an ingest pipeline sees the key alone,"
                " and what it drops changes nothing, unseen",
                todo=f'PUT {name}/_settings {{"{option}": "_none"}}, or write into an index'
                " without a pipeline",
            )
