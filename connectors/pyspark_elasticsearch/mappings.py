"""The index that option ``createIndex`` makes from a query's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch import guarded, visibility

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


def definition(detail: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """The settings and mappings of a new index for this plan."""
    names = [name for name in schema.names if name != detail["op"]]
    fields = {name: field(schema.field(name).type) for name in names}
    if detail["mode"] in guarded.SCRIPTED:
        fields[guarded.GUARD] = guarded.MAPPING
    if detail["visibleAlias"]:
        fields[visibility.FIELD] = visibility.MAPPING
    return {"mappings": {"dynamic": "strict", "properties": fields}}


def _is_point(kind: pa.StructType) -> bool:
    names = {child.name for child in kind}
    return names == {"lat", "lon"} and all(types.is_floating(child.type) for child in kind)
