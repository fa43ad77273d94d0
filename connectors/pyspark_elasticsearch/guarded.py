"""What updates and increments ask of an index: their scripts keep a guard in its documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_elasticsearch import kept
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.models.mappings import GUARD, OWN
from sparkonce.errors import StoreUnsafe

PIPELINES = ("default_pipeline", "final_pipeline")


def prepare(
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
    kept.require_numbered(name, settings)
    part = kept.flaw(settings, mappings)
    if not part:
        return
    raise StoreUnsafe(
        f"Index {name} keeps {part}",
        why="an update or increment writes back what is kept of a document: other fields would be"
        f" lost or changed, and field {OWN!r}, without which a repeated row is added again",
        todo="write into an index of index.mode=standard, without includes, excludes, enabled and"
        " mode of _source",
    )


def _require_no_pipeline(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse what could drop a row, and be answered as if all were well."""
    for option in PIPELINES:
        pipeline = str(settings.get(f"index.{option}", "_none"))
        if pipeline != "_none":
            raise StoreUnsafe(
                f"Index {name} has index.{option}={pipeline}",
                why="of the row of an update or increment an ingest pipeline sees the key alone,"
                " and what it drops changes nothing, unseen",
                todo=f'PUT {name}/_settings {{"index.{option}": "_none"}}, or write into an index'
                " without a pipeline",
            )
