"""Whether columns can be read of these fields, and what is asked of documents for that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.reading.described import (
    META,
    Described,
    Mapped,
    flat,
    is_json,
    is_millis,
    kind_of,
)
from pyspark_elasticsearch.reading.documents import Shape
from sparkonce.errors import OptionError
from sparkonce.suggestions import suggestion
from sparkonce.values.spark_types import type_name

log = logging.getLogger("sparkonce")

SMALL = ("half_float", "float", "dense_vector")
EXACT: tuple[tuple[Callable[[pa.DataType], bool], Collection[str]], ...] = (
    (types.is_float32, SMALL),
    (types.is_float64, (*SMALL, "double", "scaled_float", "byte", "short", "integer")),
    (types.is_boolean, ("boolean",)),
    (types.is_binary, ("binary",)),
)
"""Types of columns, and the fields of which they change no value; others refuse such a value."""


def require(schema: pa.Schema, there: Described) -> None:
    """Refuse columns in which values would change.

    Raises:
        OptionError: there are such.
    """
    for field in schema:
        if field.name in there.fields:
            _require(field.type, there.fields[field.name], field.name)


def tell_unknown(schema: pa.Schema, there: Described) -> None:
    """Warn of columns that no mapping knows."""
    for field in schema:
        if field.name not in (*there.fields, *META) and not there.lenient:
            known = suggestion(field.name, [*there.fields]) or "mend its name, if it has another"
            log.warning(
                "Column %r is null in each row. Why: no index has such a field. What to do: %s",
                *(field.name, known),
            )


def _require(kind: pa.DataType, mapping: Mapped | None, at: str) -> None:
    if mapping is None:
        return
    if types.is_list(kind):
        _require(kind.value_type, mapping, at)
    elif types.is_struct(kind):
        inner = mapping.get("properties", {})
        for one in kind:
            _require(one.type, inner.get(one.name), f"{at}.{one.name}")
    elif any(accepts(kind) and kind_of(mapping) not in exact for accepts, exact in EXACT):
        raise OptionError(
            f"Field {at!r} can't be read as {type_name(kind)}",
            why=f"it is a field of type {kind_of(mapping)}, of which values would be lost or"
            " changed",
            todo="give it a type in the schema that holds them, and cast it in Spark",
        )


def require_arrays(arrays: Collection[str], there: Described) -> None:
    """Refuse option ``arrayFields`` where it names what is not there.

    Raises:
        OptionError: it does.
    """
    known = [at for at, _ in flat(there.fields)]
    for name in arrays:
        if name not in known:
            raise OptionError(
                f"Option arrayFields names field {name!r}, which no index has",
                why="it has paths of fields, such as tags or items.codes",
                todo=suggestion(name, known) or "name fields of the mapping",
            )


def shape(there: Described) -> Shape:
    """What types don't tell of the documents."""
    known = [*flat(there.fields)]
    return Shape(
        any_json=frozenset(at for at, mapping in known if mapping and is_json(mapping)),
        mixed=frozenset(at for at, mapping in known if mapping is None),
        millis=frozenset(at for at, mapping in known if mapping and is_millis(mapping)),
        stems=frozenset(
            _stems([at for at, mapping in known if "properties" not in (mapping or {})])
        ),
    )


def _stems(leaves: Collection[str]) -> Iterator[str]:
    """Those from which the paths of others go on."""
    above = {at[:dot] for at in leaves for dot in range(len(at)) if at[dot] == "."}
    return (at for at in leaves if at in above)


def search(
    schema: pa.Schema, there: Described, exact: Shape, asked: Collection[str]
) -> dict[str, Any]:
    """What a search is to give of documents; see `source`."""
    return {
        "_source": source(schema, there, exact, asked),
        "seq_no_primary_term": "_seq_no" in schema.names,
    }


def source(
    schema: pa.Schema, there: Described, exact: Shape, asked: Collection[str]
) -> list[str] | bool:
    """What of documents the cluster is to give: some fields, or all as they were written.

    It writes numbers anew where it leaves something out: 1.10 is 1.1, and digits are lost.

    Args:
        schema: of what is read.
        there: of what there is.
        exact: what types don't tell of it.
        asked: fields of which a condition is pushed.
    """
    fields = [one for one in schema if one.name not in META]
    if not fields:
        return False
    names = [one.name for one in fields]
    if any(kind_of(there.fields.get(name) or {}) == "dense_vector" for name in names):
        return names  # of whole documents newer clusters leave vectors out
    whole = {*there.fields} <= {*names}
    texts = any(kind_of(there.fields.get(name) or {}) == "keyword" for name in asked)
    digits = any(_has_digits(one.type, one.name, exact) for one in fields)
    return True if whole or texts or digits else names


def _has_digits(kind: pa.DataType, at: str, exact: Shape) -> bool:
    """Whether digits of numbers count that a double has not."""
    if types.is_decimal(kind) or types.is_map(kind) or at in exact.mixed or at in exact.any_json:
        return True
    if types.is_list(kind):
        return _has_digits(kind.value_type, at, exact)
    return types.is_struct(kind) and any(
        _has_digits(one.type, f"{at}.{one.name}", exact) for one in kind
    )
