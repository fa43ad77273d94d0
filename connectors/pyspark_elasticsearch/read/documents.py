"""Converts hits to rows, value by value, in every form that Elasticsearch accepts for a field.

Examples: one value in place of an array, a number as text, ``"a.b"`` for ``b`` inside ``a``.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.read.fields import META
from sparkonce.errors import ValueUnreadable
from sparkonce.values import from_json
from sparkonce.values.from_json import Number
from sparkonce.values.spark_types import type_name

SMALL = ("half_float", "float", "dense_vector")
FLOATS: tuple[tuple[Callable[[pa.DataType], bool], Collection[str]], ...] = (
    (types.is_float32, SMALL),
    (types.is_float64, (*SMALL, "double", "scaled_float", "byte", "short", "integer")),
)
"""Types of fields whose values are rounded to this float anyway, or fit into it."""

NOT_STORED = (pa.ArrowException, UnicodeError, OverflowError, TypeError)
"""The errors of Arrow for a value that it can't store."""

BOOLEANS = {"": False, "false": False, "true": True}  # texts that the cluster accepts as booleans


@dataclass(frozen=True)
class FieldTraits:
    """Properties of fields that the types of columns do not express.

    Attributes:
        any_json: paths of fields that are read as JSON text.
        kinds: types by path, of fields with the same type in all indices.
        vectors: by path of vectors, the possible sizes in bytes of a vector in a text.
        millis: paths of dates in which a number is milliseconds since 1970.
        stems: paths of fields without objects, whose names are prefixes of other names, before a
            dot (``subobjects: false``).
    """

    any_json: Collection[str] = ()
    kinds: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vectors: Mapping[str, Collection[int]] = dataclasses.field(default_factory=dict)
    millis: Collection[str] = ()
    stems: Collection[str] = ()

    def is_exact(self, kind: pa.DataType, at: str) -> bool:
        """Whether the index, too, has only the nearest value of the type."""
        return all(self.kinds.get(at) in kinds for accepts, kinds in FLOATS if accepts(kind))


class Page(NamedTuple):
    """The rows of a page."""

    rows: pa.RecordBatch
    places: pa.Array  # the sort value of each hit, by which the next page begins
    point: str  # the point in time, by its name for the next request
    timed_out: bool  # whether the cluster ended the search early


@dataclass
class ReadAsNull:
    """Values that did not fit their types, and are null instead."""

    count: int = 0
    first: str = ""  # where the first one is, and what was wrong

    def add(self, hit: Mapping[str, Any], at: str, error: Exception) -> None:
        """Count a value."""
        self.count += 1
        place = f"field {at!r} of document {hit['_id']!r} in index {hit['_index']}"
        self.first = self.first or f"{place}: {error}"


Lose = Callable[[str, Exception], None]
"""Takes the path of a value that does not fit its type."""

MISFITS = (ArithmeticError, AttributeError, TypeError, ValueError)
"""The errors of a value that does not fit its type."""


def page(
    body: bytes, schema: pa.Schema, traits: FieldTraits, nulls: ReadAsNull | None = None
) -> Page:
    """The rows of an answer.

    Args:
        body: of the answer.
        schema: of the rows.
        traits: of the fields.
        nulls: counts values that do not fit their types, which are then null.

    Raises:
        ValueUnreadable: a value does not fit its type, and `nulls` is None.
    """
    try:
        answer = from_json.parse_tree(body)
    except ValueError as error:
        raise ValueUnreadable(
            f"A page of documents can't be read: {error}",
            why="JSON in one of them has about a thousand levels, more than Python can read",
            todo="leave out its field by option columns, or such documents by option query",
        ) from None
    hits = answer["hits"]["hits"]
    rows = [_row(hit, schema, traits, nulls) for hit in hits]
    columns = [
        _column([row[at] for row in rows], field, hits, nulls) for at, field in enumerate(schema)
    ]
    places = pa.array([int(one["sort"][0]) for one in hits], pa.int64())
    made = pa.RecordBatch.from_arrays(columns, schema=schema)
    return Page(made, places, answer["pit_id"], answer["timed_out"])


def _row(
    hit: Mapping[str, Any], schema: pa.Schema, traits: FieldTraits, nulls: ReadAsNull | None
) -> list[Any]:
    # Without the document each column would be null.
    if "_source" not in hit and not {*schema.names} <= {*META}:
        raise ValueUnreadable(
            f"Document {hit['_id']!r} in index {hit['_index']} has no _source",
            why="the index does not keep the documents",
            todo="leave the index out of option index, or reindex the documents",
        )
    document, found = _Objects([hit.get("_source", {})]), []
    lose = None if nulls is None else partial(nulls.add, hit)
    for field in schema:
        values = [hit.get(field.name)] if field.name in META else document.at(field.name)
        try:
            fit = _fitted_or_null(values, field.type, traits, field.name, lose)
            found.append(from_json.value_of_tree(fit, field.type))
        except MISFITS as error:
            raise _unreadable(hit, field, values, error) from None
    return found


def _column(
    values: list[Any], field: pa.Field, hits: list[Any], nulls: ReadAsNull | None
) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except NOT_STORED:
        for at, (value, hit) in enumerate(zip(values, hits, strict=True)):
            try:
                pa.array([value], field.type)
            except NOT_STORED as error:
                if nulls is None:
                    raise _unreadable(hit, field, [value], error) from None
                nulls.add(hit, field.name, error)
                values[at] = None
        return pa.array(values, field.type)


class _Objects:
    """The objects of a document at one path, which are one object to the cluster.

    ``{"a": {"b": 1}, "a.c": 2, "a": null}`` has ``{"b": 1}`` and ``{"c": 2}`` at ``a``.
    """

    def __init__(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self.objects = objects
        self._is_dotted = any("." in name for one in objects for name in one)

    def at(self, name: str) -> list[Any]:
        """All values at a name, in order; both it and the names in objects may have dots."""
        if self._is_dotted or "." in name:
            return [value for one in self.objects for value in _dotted(one, name)]
        return [one[name] for one in self.objects if name in one]


def _dotted(one: Mapping[str, Any], path: str) -> Iterator[Any]:
    for name, value in one.items():
        if name == path:
            yield value
        elif name.startswith(f"{path}."):
            yield {name[len(path) + 1 :]: value}
        elif path.startswith(f"{name}."):
            for inner in _each(value):
                if isinstance(inner, Mapping):
                    yield from _dotted(inner, path[len(name) + 1 :])


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for one in value:
            yield from _each(one)
    else:
        yield value


def _fitted_or_null(
    values: list[Any], kind: pa.DataType, traits: FieldTraits, at: str, lose: Lose | None
) -> Any:
    """The same as `_fitted`; with `lose` a value that does not fit its type is null."""
    try:
        fit = _fitted(values, kind, traits, at, lose)
        if lose:
            from_json.value_of_tree(fit, kind)
    except MISFITS as error:
        if lose is None:
            raise
        lose(at, error)
        return None
    return fit


def _fitted(
    values: list[Any], kind: pa.DataType, traits: FieldTraits, at: str, lose: Lose | None
) -> Any:
    """All values at a path as one value for `from_json`."""
    if at in traits.stems:
        # Longer names share this prefix: objects belong to them, not to this value.
        values = [_without_objects(one) for one in values]
    found = [one for one in values if one is not None]
    if not found:
        return None
    if types.is_list(kind):
        found = [_components(one, traits, at) for one in found]
        each = [one for many in found for one in (many if isinstance(many, list) else [many])]
        return [_fitted_or_null([one], kind.value_type, traits, at, lose) for one in each]
    if types.is_string(kind) and at in traits.any_json:
        return _dumped(_one(found))
    if any(isinstance(one, list) for one in found):
        raise ValueError("it is an array: name the field in option arrayFields")
    if types.is_struct(kind):
        inner = _Objects(_objects(found))
        return {
            one.name: _fitted_or_null(
                inner.at(one.name), one.type, traits, f"{at}.{one.name}", lose
            )
            for one in kind
        }
    if types.is_map(kind):
        (whole,) = _objects([_one(found)])
        return {
            key: _fitted_or_null([one], kind.item_type, traits, f"{at}.{key}", lose)
            for key, one in whole.items()
        }
    return _leaf(_one(found), kind, traits, at)


def _components(vector: Any, traits: FieldTraits, at: str) -> Any:
    """The components of a vector, which may be a text of its bytes."""
    if at not in traits.vectors or not isinstance(vector, str):
        return vector
    if len(vector) // 2 not in traits.vectors[at] or not re.fullmatch("([0-9a-fA-F]{2})+", vector):
        raise ValueError("it is a vector in a string of unknown format")
    return [Number(one - 256 if one > 127 else one) for one in bytes.fromhex(vector)]


def _objects(values: list[Any]) -> list[Mapping[str, Any]]:
    if not all(isinstance(one, Mapping) for one in values):
        raise ValueError("it is not an object")
    return values


def _without_objects(value: Any) -> Any:
    if isinstance(value, list):
        return [one for one in value if not isinstance(one, Mapping)] or None
    return None if isinstance(value, Mapping) else value


def _one(values: list[Any]) -> Any:
    found = values[0]
    for one in values[1:]:
        both = isinstance(found, Mapping) and isinstance(one, Mapping)
        if not both or {*found} & {*one}:
            raise ValueError("the field occurs twice: name it in option arrayFields")
        found = {**found, **one}
    return found


def _leaf(tree: Any, kind: pa.DataType, traits: FieldTraits, at: str) -> Any:
    if isinstance(tree, Mapping):
        raise ValueError("it is an object")
    if types.is_string(kind):
        return json.dumps(tree) if isinstance(tree, bool) else str(tree)
    if types.is_boolean(kind):
        if isinstance(tree, Number) or not (isinstance(tree, bool) or tree in BOOLEANS):
            raise ValueError("it is not a boolean")
        return tree if isinstance(tree, bool) else BOOLEANS[tree]
    if isinstance(tree, bool):
        raise ValueError("it is a boolean")
    if types.is_floating(kind) and not traits.is_exact(kind, at) and _is_rounded(tree, kind):
        raise ValueError("it has more digits than the type")
    if types.is_timestamp(kind) and isinstance(tree, Number):
        if at not in traits.millis or re.fullmatch("[0-9]{4}", tree):
            raise ValueError("it is a number, and the field's format does not say which unit")
        return f"{pa.array([int(tree)]).view(pa.timestamp('ms')).cast(pa.string())[0]}Z"
    return tree


def _is_rounded(text: str, kind: pa.DataType) -> bool:
    """Whether a float, as a text, has other digits than the number."""
    (digits,) = pa.array([float(text)]).cast(kind).cast(pa.string()).to_pylist()
    return Decimal(digits) != Decimal(text)


def _dumped(tree: Any) -> str:
    """JSON with the original digits of numbers. No recursion, because JSON may be deep."""
    found, ahead = list[str](), [tree]
    while ahead:
        one = ahead.pop()
        if isinstance(one, Number):
            found.append(one)
        elif isinstance(one, list | Mapping):
            ahead += reversed([*_pieces(one)])
        else:
            found.append(json.dumps(one, ensure_ascii=False))
    return "".join(found)


def _pieces(tree: Any) -> Iterator[Any]:
    """The pieces of an array or object; punctuation is literal, as numbers are."""
    begin, end = "[]" if isinstance(tree, list) else "{}"
    for at, one in enumerate(tree):
        yield Number("," if at else begin)
        yield one
        if isinstance(tree, Mapping):
            yield Number(":")
            yield tree[one]
    yield Number(end if tree else begin + end)


def _unreadable(
    hit: Mapping[str, Any], field: pa.Field, values: list[Any], error: Exception
) -> ValueUnreadable:
    text = " and ".join(map(_dumped, values))
    value = text if len(text) < 100 else f"{text[:100]}..."
    return ValueUnreadable(
        f"Field {field.name!r} of document {hit['_id']!r} in index {hit['_index']} can't be read as"
        f" {type_name(field.type)}: {error}",
        why=f"it holds {value}",
        todo="read the field as an array (option arrayFields), as a string or a larger type by"
        " .schema(...), or correct the document; onUnreadable=null reads such values as null",
    )
