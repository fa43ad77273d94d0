"""Looks up the target: the index that a name points to, its settings and its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.server.client import Cluster, by_name, path
from pyspark_elasticsearch.server.dialect import Dialect
from pyspark_elasticsearch.target import placement
from sparkonce import checks
from sparkonce.errors import OptionError

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
)
OWN = "sparkonce"  # the field of a document that this connector uses
GUARD: dict[str, Any] = {"type": "object", "enabled": False}
"""Its mapping where `guard.painless` keeps the guard of a document there.

It is not enabled, because the script reads the guard from the source. So the index needs no terms
of it, and a strict or full mapping accepts it.
"""

STAMP: dict[str, Any] = {"properties": {"sink": {"type": "keyword"}, "fence": {"type": "long"}}}
"""Its mapping where it names the decision of a document, for the filter of an alias."""

VECTORS = ("dense_vector", "sparse_vector", "rank_vectors")
"""Types that newer clusters omit from documents unless the search asks for them."""

LONGEST_KEYWORD = 8191  # characters whose UTF-8 form fits the limit of a term in Lucene
_PARTS = ("_source", "_routing", "dynamic")
"""The parts of the mappings in which a recreated index may differ unseen."""

_WHOLE = {"include_defaults": "true"}
_BRIEF = {
    "filter_path": ",".join(
        ["*.aliases", "*.data_stream", "*.settings", *(f"*.mappings.{part}" for part in _PARTS)]
    )
}


class Target(NamedTuple):
    """An index."""

    name: str  # of the index itself, also behind an alias; or of the data stream
    settings: Mapping[str, Any]  # flat, defaults included
    mappings: Mapping[str, Any]  # of its fields
    since: str  # the write index of a data stream, whose settings these are; else empty
    sign: Any  # explicit settings with the uuid, and mappings: equal while the index is unchanged

    @property
    def fields(self) -> Mapping[str, Any]:
        """The mappings of its fields."""
        return self.mappings.get("properties", {})  # type: ignore[no-any-return]

    def setting(self, name: str) -> str:
        """A setting in lower case; empty if it is not set."""
        return str(self.settings.get(name) or "").lower()


def definition(
    schema: pa.Schema, own: Mapping[str, Any] | None, dialect: Dialect
) -> dict[str, Any]:
    """The mappings of an index that option ``createIndex`` creates for rows of a schema.

    If documents have the field of the connector, `own` is its mapping. Without columns the server
    maps the fields of whole documents.
    """
    fields = {column.name: _field(column.type, dialect) for column in schema}
    dynamic = "strict" if fields else "true"
    if own:
        fields[OWN] = dict(own)
    return {"mappings": {"dynamic": dynamic, "properties": fields}}


def flat(
    fields: Mapping[str, Mapping[str, Any] | None], at: str = ""
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """All fields by path, including those inside others."""
    for name, mapping in fields.items():
        yield f"{at}{name}", mapping
        yield from flat((mapping or {}).get("properties", {}), f"{at}{name}.")


def lacking(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    """The fields, also of objects, that a mapping lacks; both are properties."""
    found = {}
    for name, field in wanted.items():
        known = _known(name, there)
        if known is None:
            found[name] = field
        elif _is_object(known) and (
            inner := lacking(field.get("properties", {}), known.get("properties", {}))
        ):
            of_type = {"type": known["type"]} if "type" in known else {}
            found[name] = {**of_type, "properties": inner}
    return found


def _is_object(field: Mapping[str, Any]) -> bool:
    """Whether a field has fields of its own; others take objects as a whole, such as a range."""
    enabled = str(field.get("enabled", True)).lower() == "true"
    return enabled and field.get("type", "object") in ("object", "nested")


def _known(name: str, there: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The mapping of a field, whose name may lead into objects."""
    first, dot, rest = name.partition(".")
    if name in there or not dot:
        return there.get(name)
    return _known(rest, there.get(first, {}).get("properties", {}))


def _field(kind: pa.DataType, dialect: Dialect) -> dict[str, Any]:
    if types.is_map(kind):
        return dict(dialect.map_field)
    if types.is_struct(kind):
        if {child.name for child in kind} == {"lat", "lon"} and all(
            types.is_floating(child.type) for child in kind
        ):
            return {"type": "geo_point"}
        return {"properties": {child.name: _field(child.type, dialect) for child in kind}}
    if types.is_list(kind) or types.is_large_list(kind):
        return _field(kind.value_type, dialect)
    for accepts, mapping in _SIMPLE:
        if accepts(kind):
            return dict(mapping)
    return {"type": "keyword", "ignore_above": LONGEST_KEYWORD}


def resolve(
    cluster: Cluster, name: str, *, appends: bool = False, whole: bool = True
) -> Target | None:
    """The index that a name (of an index, alias or data stream) points to; None if none.

    Unless it `appends`, the index must never change. `whole` asks for all settings and mappings.
    """
    params = {"flat_settings": "true", **(_WHOLE if whole else _BRIEF)}
    doing = f"reading index {name}"
    answer = cluster.ask(doing, "GET", path(name), params=params, allow=(404,))
    if answer.status == 404:
        return None
    found = by_name(answer.body)
    if any(about.get("data_stream") == name for about in found.values()):
        if not appends:
            raise OptionError(
                f"Option index={name!r} names a data stream, and the write mode is not append",
                why="a data stream takes new documents only, and a rollover adds another index",
                todo="name an index, or use writeMode=append",
            )
        since = placement.backing(cluster, name)[-1]
        return _target(name, found.get(since, {}), since)
    chosen = name if name in found else _behind_alias(name, found, appends=appends)
    return _target(chosen, found[chosen])


def _target(name: str, about: Mapping[str, Any], since: str = "") -> Target:
    mappings, given = about.get("mappings", {}), about.get("settings", {})
    sign = name, since, given, [mappings.get(part) for part in _PARTS]
    return Target(name, {**about.get("defaults", {}), **given}, mappings, since, sign)


def _behind_alias(name: str, found: Mapping[str, Any], *, appends: bool) -> str:
    aliases = {index: about.get("aliases", {}).get(name, {}) for index, about in found.items()}
    writable = [index for index, about in aliases.items() if about.get("is_write_index")]
    named = f"Option index={name!r} names"
    refusals = (
        (
            any("data_stream" in about for about in found.values()),
            f"{named} an alias of a data stream",
            "the connector looks up a repeated row by the name of the stream itself",
            "name the data stream, an index, or an alias of one",
        ),
        (
            any("index_routing" in about for about in aliases.values()),
            f"{named} an alias that routes documents",
            "the connector writes to the index itself, without the routing of the alias. Its rows"
            " would be additional documents, next to those that others write by the alias",
            "name the index, and the column of the routing in option routing",
        ),
        (
            len(aliases) > 1 and not appends,
            f"{named} an alias of {', '.join(sorted(aliases))}",
            "the connector looks up a document by its id, which may be in any of them",
            "name one index, or use writeMode=append",
        ),
        (
            any("is_write_index" in about for about in aliases.values()) and not appends,
            f"{named} an alias of {', '.join(aliases)} with is_write_index",
            "a rollover may make it an alias of several indices, and the connector looks up a"
            " document by its id, which may be in any of them",
            "name the index itself, or use writeMode=append",
        ),
        (
            not writable and len(aliases) > 1,
            f"{named} an alias of {', '.join(sorted(aliases))}",
            "none of them is its write index",
            "set is_write_index on one of them, or name an index",
        ),
    )
    checks.refuse(refusals)
    return next(iter(writable or aliases))
