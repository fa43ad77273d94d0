"""What lies in an index, as tests compare it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from elasticsearch.helpers import scan

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])


def row(id_: int | None, name: str | None = "a", x: float | None = 1.5) -> dict[str, Any]:
    return {"id": id_, "name": name, "x": x}


def documents(client: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    """Every document by id, without what guards it."""
    client.indices.refresh(index=index)
    return {hit["_id"]: _plain(hit["_source"]) for hit in scan(client, index=index, size=5000)}


def rows(client: Elasticsearch, index: str) -> list[dict[str, Any]]:
    """Every document, duplicates and all, in the order of all its values."""
    return sorted(documents(client, index).values(), key=str)


def has_script_processor(client: Elasticsearch) -> bool:
    """Whether the server can change documents by a pipeline: a part that some trees lack."""
    nodes = client.nodes.info(metric="ingest")["nodes"].values()
    return all({"type": "script"} in node["ingest"]["processors"] for node in nodes)


def _plain(source: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name != "sparkonce"}
