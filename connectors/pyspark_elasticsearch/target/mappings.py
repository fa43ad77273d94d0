"""The index that option ``createIndex`` makes from a query's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

_SIMPLE: tuple[tuple[Any, dict[str, Any]], ...] = (
    (types.is_boolean, {"type": "boolean"}),
    (types.is_int8, {"type": "byte"}),
    (types.is_int16, {"type": "short"}),
    (types.is_int32, {"type": "integer"}),
    (types.is_int64, {"type": "long"}),
    (types.is_duration, {"type": "long"}),
    (types.is_float32, {"type": "float"}),
    (types.is_float64, {"type": "double"}),
    (types.is_decimal, {"type": "keyword"}),
    (types.is_binary, {"type": "binary"}),
    (types.is_large_binary, {"type": "binary"}),
    (types.is_date, {"type": "date"}),
    (types.is_timestamp, {"type": "date"}),
    (types.is_map, {"type": "flattened", "ignore_above": 8000}),  # its terms hold the key, too
)
OWN = "sparkonce"
"""The field in which documents keep what this connector needs."""

GUARD: dict[str, Any] = {"type": "object", "enabled": False}
"""Its mapping where it holds what has changed a document."""

STAMP: dict[str, Any] = {
    "properties": {"sink": {"type": "keyword"}, "fence": {"type": "long"}},
}
"""Its mapping where it tells of which decision a document is."""

LONGEST_KEYWORD = 8191
"""Characters of which UTF-8 makes no more bytes than Lucene takes for a term."""


def field(kind: pa.DataType) -> dict[str, Any]:
    """The mapping of a column."""
    if types.is_struct(kind):
        if _is_point(kind):
            return {"type": "geo_point"}
        return {"properties": {child.name: field(child.type) for child in kind}}
    if types.is_list(kind) or types.is_large_list(kind):
        return field(kind.value_type)
    for accepts, mapping in _SIMPLE:
        if accepts(kind):
            return dict(mapping)
    return {"type": "keyword", "ignore_above": LONGEST_KEYWORD}


def definition(schema: pa.Schema, own: Mapping[str, Any] | None) -> dict[str, Any]:
    """The mappings of a new index.

    Args:
        schema: of what is stored of rows.
        own: the mapping of the connector's own field, where documents have it.
    """
    fields = {column.name: field(column.type) for column in schema}
    if own:
        fields[OWN] = dict(own)
    return {"mappings": {"dynamic": "strict", "properties": fields}}


def _is_point(kind: pa.StructType) -> bool:
    names = {child.name for child in kind}
    return names == {"lat", "lon"} and all(types.is_floating(child.type) for child in kind)
