"""Checks whether fields can be read as columns, and selects the parts of documents to read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.read import fields
from pyspark_elasticsearch.read.documents import FLOATS, FieldTraits
from pyspark_elasticsearch.read.fields import META, IndexFields, Mapped, kind_of
from pyspark_elasticsearch.target.lookup import VECTORS, flat
from sparkonce.errors import OptionError
from sparkonce.option_values import suggestion
from sparkonce.values.spark_types import type_name

log = logging.getLogger("sparkonce")

EXACT: tuple[tuple[Callable[[pa.DataType], bool], Collection[str]], ...] = (
    *FLOATS,
    (types.is_boolean, ("boolean",)),
    (types.is_binary, ("binary",)),
)
"""Types of columns that change no value of these fields; other types reject such a value."""

OF_META = types.is_string, types.is_integer, types.is_decimal
"""Types that hold metadata of a document, or reject the value."""

OTHER_META = (
    *("_routing", "_version", "_score", "_source", "_ignored", "_primary_term", "_type", "_size"),
    *("_field_names", "_nested_path", "_tier", "_tsid"),
)
"""Metadata of a document that cannot be read."""


def require(schema: pa.Schema, there: IndexFields, arrays: Collection[str]) -> None:
    """Reject columns that would change values, and unknown arrays."""
    require_arrays(arrays, there)
    for field in schema:
        _require_meta(field, there)
    for at, kind in leaves(schema):
        for path, mapping in flat(there.fields):
            if mapping and "properties" not in mapping and _is_at(path, at):
                _require_kept(kind, mapping, path)
        for path, mapping in there.every:
            if _is_at(path, at):
                _require_same_text(kind, mapping, path)


def leaves(within: Iterable[pa.Field], at: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """The leaf types of columns by path; values of a map have the path of the map and ``*``."""
    for field in within:
        path, kind = f"{at}{field.name}", field.type
        while types.is_list(kind):
            kind = kind.value_type
        if types.is_struct(kind):
            yield from leaves(kind, f"{path}.")
        elif types.is_map(kind):
            yield from leaves([pa.field("*", kind.item_type)], f"{path}.")
        else:
            yield path, kind


def _is_at(path: str, at: str) -> bool:
    """Whether the path of a field matches that of a column, with ``*`` for keys of a map."""
    return path == at or ("*" in at and fnmatchcase(path, at))


def warn_unknown(schema: pa.Schema, there: IndexFields) -> None:
    """Warn about columns, and fields in structs, that no mapping has."""
    known = {*META, *(at for at, _ in flat(there.fields))}
    any_json = tuple(
        f"{at}." for at, one in flat(there.fields) if one is None or fields.is_json(one)
    )
    for at, _ in [] if there.lenient else leaves(schema):
        if at not in known and "*" not in at and not at.startswith(any_json):
            log.warning(
                "Column %r is null in each row. Why: no index has such a field. What to do: %s",
                *(at, suggestion(at, [*known]) or "correct its name"),
            )


def _require_meta(field: pa.Field, there: IndexFields) -> None:
    is_known = field.name in META
    if is_known and not any(accepts(field.type) for accepts in OF_META):
        raise OptionError(
            f"Column {field.name!r} can't be read as {type_name(field.type)}",
            why="it is a string or a whole number, and that type would change it",
            todo=f"read it as {type_name(META[field.name])}, and cast it in Spark",
        )
    is_other = not is_known and field.name.lower() in (*META, *OTHER_META)
    if is_other and not there.lenient:  # unparsed documents may have such fields
        raise OptionError(
            f"Column {field.name!r} can't be read",
            why="it is metadata of the cluster, and no document has it as a field",
            todo=f"read {', '.join(META)}, or leave the column out",
        )


def _require_kept(kind: pa.DataType, mapping: Mapped, at: str) -> None:
    if any(accepts(kind) and kind_of(mapping) not in exact for accepts, exact in EXACT):
        raise OptionError(
            f"Field {at!r} can't be read as {type_name(kind)}",
            why=f"it is a field of type {kind_of(mapping)}, and values would be lost or changed",
            todo="give it a type in the schema that holds them, and cast it in Spark",
        )


def _require_same_text(kind: pa.DataType, mapping: Mapped, at: str) -> None:
    """Reject types that give a text another meaning than it has in the index."""
    is_moment = types.is_timestamp(kind) or types.is_date(kind)
    is_encoded = types.is_binary(kind) and kind_of(mapping) != "binary"
    if is_encoded or (is_moment and not fields.is_iso(mapping)):
        raise OptionError(
            f"Field {at!r} can't be read as {type_name(kind)}",
            why=f"an index has it as {kind_of(mapping)} {mapping.get('format', '')}".rstrip()
            + ", which gives its strings another meaning",
            todo="read it as a string, and convert it in Spark, for example by to_timestamp()",
        )


def require_arrays(arrays: Collection[str], there: IndexFields) -> None:
    """Reject unknown fields in option ``arrayFields`` (`OptionError`)."""
    known = [at for at, _ in flat(there.fields)]
    for name in arrays:
        if name not in known:
            raise OptionError(
                f"Option arrayFields names field {name!r}, which no index has",
                why="the option takes paths of fields, such as tags or items.codes",
                todo=suggestion(name, known) or "name fields of the mapping",
            )


def traits(there: IndexFields) -> FieldTraits:
    """The traits of fields; see `FieldTraits`."""
    known = [*flat(there.fields)]
    leaves = [at for at, mapping in known if "properties" not in (mapping or {})]
    above = {at[:dot] for at in leaves for dot in range(len(at)) if at[dot] == "."}
    return FieldTraits(
        any_json=frozenset(at for at, mapping in known if mapping and fields.is_json(mapping)),
        kinds={at: kind_of(mapping) for at, mapping in known if mapping},
        vectors={at: _sizes(at, there) for at, one in there.every if kind_of(one) in VECTORS},
        millis=frozenset(at for at, mapping in known if mapping and fields.is_millis(mapping)),
        stems=frozenset(at for at in leaves if at in above),
    )


def selection(
    schema: pa.Schema, there: IndexFields, exact: FieldTraits, asked: Collection[str]
) -> dict[str, Any]:
    """The parts of documents that a search returns, with conditions on the fields `asked`."""
    source = _source(schema, there, exact, asked)
    return {"_source": source, "seq_no_primary_term": "_seq_no" in schema.names}


def _source(
    schema: pa.Schema, there: IndexFields, exact: FieldTraits, asked: Collection[str]
) -> dict[str, Any] | list[str] | bool:
    """The parts of documents to ask for: some fields, or unchanged documents.

    The cluster rewrites numbers when it omits a field: 1.10 becomes 1.1, and digits are lost.
    """
    inside = [*leaves(one for one in schema if one.name not in META)]
    if not inside:
        return False
    names = [one for one in schema.names if one not in META]
    whole = {*there.fields} <= {*names}
    texts = any(kind_of(there.fields.get(name) or {}) == "keyword" for name in asked)
    # These columns need digits that a double cannot hold.
    digits = any(
        types.is_decimal(kind) or at not in exact.kinds or at in exact.any_json
        for at, kind in inside
    )
    some = not (whole or texts or digits)
    if exact.vectors and not there.has_vectors:
        return {"exclude_vectors": False, **({"includes": names} if some else {})}
    return names if some else True


def _sizes(path: str, there: IndexFields) -> Collection[int]:
    """The possible sizes in bytes of a vector whose text is hexadecimal."""
    parts = {"byte": 1, "bit": 8}
    found = [one for at, one in there.every if at == path]
    plain = all(one.get("element_type") in parts for one in found)
    return {one.get("dims", 0) // parts[one["element_type"]] for one in found} if plain else ()
