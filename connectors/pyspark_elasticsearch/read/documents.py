"""Hits as rows, value by value: whatever Elasticsearch takes for a value of a field.

One value where an array is mapped, a number as text, ``"a.b"`` for ``b`` inside ``a``.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
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
"""Types of fields that are no more than the nearest float, or fit into one."""

NOT_STORED = (pa.ArrowException, UnicodeError, OverflowError, TypeError)
"""What Arrow raises of a value that it can't hold."""

BOOLEANS = {"": False, "false": False, "true": True}  # texts that the cluster takes for booleans


@dataclass(frozen=True)
class FieldTraits:
    """What the types of columns don't tell.

    Attributes:
        any_json: paths of fields whose text is the JSON of whatever is there.
        kinds: types of fields by their paths, of those that all indices have alike.
        vectors: of each path of vectors, how many bytes one may have that is a text of them.
        millis: paths of dates in which a number is milliseconds since 1970.
        stems: paths of fields that have no objects, and whose names others go on from, behind a
            dot (``subobjects: false``).
    """

    any_json: Collection[str] = ()
    kinds: Mapping[str, str] = dataclasses.field(default_factory=dict)
    vectors: Mapping[str, Collection[int]] = dataclasses.field(default_factory=dict)
    millis: Collection[str] = ()
    stems: Collection[str] = ()

    def is_exact(self, kind: pa.DataType, at: str) -> bool:
        """Whether the nearest value of a type is what the index has."""
        return all(self.kinds.get(at) in kinds for accepts, kinds in FLOATS if accepts(kind))


class Page(NamedTuple):
    """The rows of a page, and how many hits they are made of."""

    rows: pa.RecordBatch
    hits: int
    last: Sequence[int]  # the place of the last hit, behind which the next page begins
    point: str  # the point in time, as the cluster wants it named from now on
    timed_out: bool  # whether the cluster ended the search before it was done


def page(body: bytes, schema: pa.Schema, traits: FieldTraits) -> Page:
    """The rows of an answer; `ValueUnreadable` if a value is none of its type."""
    try:
        answer = from_json.parse_tree(body)
    except ValueError as error:
        raise ValueUnreadable(
            f"A page of documents can't be read: {error}",
            why="JSON in one of them has about a thousand levels, more than Python reads",
            todo="leave its field out by option columns, or such documents by option query",
        ) from None
    hits = answer["hits"]["hits"]
    rows = [_row(hit, schema, traits) for hit in hits]
    columns = [_column([row[at] for row in rows], field, hits) for at, field in enumerate(schema)]
    last = [int(one) for one in hits[-1]["sort"]] if hits else []
    made = pa.RecordBatch.from_arrays(columns, schema=schema)
    return Page(made, len(hits), last, answer["pit_id"], answer["timed_out"])


def _row(hit: Mapping[str, Any], schema: pa.Schema, traits: FieldTraits) -> list[Any]:
    # Of a document that is not there a column would be null.
    if "_source" not in hit and not {*schema.names} <= {*META}:
        raise ValueUnreadable(
            f"Document {hit['_id']!r} in index {hit['_index']} has no _source",
            why="the index does not keep the documents",
            todo="leave the index out of option index, or index the documents anew",
        )
    document, found = _Objects([hit.get("_source", {})]), []
    for field in schema:
        values = [hit.get(field.name)] if field.name in META else document.at(field.name)
        try:
            fit = _fitted(values, field.type, traits, field.name)
            found.append(from_json.value_of_tree(fit, field.type))
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise _unreadable(hit, field, values, error) from None
    return found


def _column(values: list[Any], field: pa.Field, hits: list[Any]) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except NOT_STORED:
        for value, hit in zip(values, hits, strict=True):
            try:
                pa.array([value], field.type)
            except NOT_STORED as error:
                raise _unreadable(hit, field, [value], error) from None
        raise


class _Objects:
    """What a document has at one path: objects that are one, as the cluster sees them.

    ``{"a": {"b": 1}, "a.c": 2, "a": null}`` has ``{"b": 1}`` and ``{"c": 2}`` at ``a``.
    """

    def __init__(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self.objects = objects
        self._is_dotted = any("." in name for one in objects for name in one)

    def at(self, name: str) -> list[Any]:
        """All values at a name, in their order; it may have dots, as the names in objects may."""
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


def _fitted(values: list[Any], kind: pa.DataType, traits: FieldTraits, at: str) -> Any:
    """All values at a path as one, as `from_json` takes it."""
    if at in traits.stems:
        # Others' names go on from this one: objects are theirs, and no part of its value.
        values = [_without_objects(one) for one in values]
    there = [one for one in values if one is not None]
    if not there:
        return None
    if types.is_list(kind):
        there = [_components(one, traits, at) for one in there]
        each = [one for many in there for one in (many if isinstance(many, list) else [many])]
        return [_fitted([one], kind.value_type, traits, at) for one in each]
    if types.is_string(kind) and at in traits.any_json:
        return _dumped(_one(there))
    if any(isinstance(one, list) for one in there):
        raise ValueError("it is an array: name the field in option arrayFields")
    if types.is_struct(kind):
        inner = _Objects(_objects(there))
        return {
            one.name: _fitted(inner.at(one.name), one.type, traits, f"{at}.{one.name}")
            for one in kind
        }
    if types.is_map(kind):
        (whole,) = _objects([_one(there)])
        return {
            key: _fitted([one], kind.item_type, traits, f"{at}.{key}") for key, one in whole.items()
        }
    return _leaf(_one(there), kind, traits, at)


def _components(vector: Any, traits: FieldTraits, at: str) -> Any:
    """What a vector is of, that may be a text of its bytes."""
    if at not in traits.vectors or not isinstance(vector, str):
        return vector
    if len(vector) // 2 not in traits.vectors[at] or not re.fullmatch("([0-9a-fA-F]{2})+", vector):
        raise ValueError("it is a vector in a text of unknown form")
    return [Number(one - 256 if one > 127 else one) for one in bytes.fromhex(vector)]


def _objects(values: list[Any]) -> list[Mapping[str, Any]]:
    if not all(isinstance(one, Mapping) for one in values):
        raise ValueError("it is no object")
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
            raise ValueError("it is there twice: name the field in option arrayFields")
        found = {**found, **one}
    return found


def _leaf(tree: Any, kind: pa.DataType, traits: FieldTraits, at: str) -> Any:
    if isinstance(tree, Mapping):
        raise ValueError("it is an object")
    if types.is_string(kind):
        return json.dumps(tree) if isinstance(tree, bool) else str(tree)
    if types.is_boolean(kind):
        if isinstance(tree, Number) or not (isinstance(tree, bool) or tree in BOOLEANS):
            raise ValueError("it is no boolean")
        return tree if isinstance(tree, bool) else BOOLEANS[tree]
    if isinstance(tree, bool):
        raise ValueError("it is a boolean")
    if types.is_floating(kind) and not traits.is_exact(kind, at) and _is_rounded(tree, kind):
        raise ValueError("it has more digits")
    if types.is_timestamp(kind) and isinstance(tree, Number):
        if at not in traits.millis or re.fullmatch("[0-9]{4}", tree):
            raise ValueError("it is a number, and the field's format does not say of what")
        return f"{pa.array([int(tree)]).view(pa.timestamp('ms')).cast(pa.string())[0]}Z"
    return tree


def _is_rounded(text: str, kind: pa.DataType) -> bool:
    """Whether a number is another one as a float, by the digits that it is shown with."""
    (shown,) = pa.array([float(text)]).cast(kind).cast(pa.string()).to_pylist()
    return Decimal(shown) != Decimal(text)


def _dumped(tree: Any) -> str:
    """JSON with the digits that numbers had. Without recursion, as JSON may be deep."""
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
    """What an array or an object is of; punctuation stands there as it is, as numbers do."""
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
    shown = text if len(text) < 100 else f"{text[:100]}..."
    return ValueUnreadable(
        f"Field {field.name!r} of document {hit['_id']!r} in index {hit['_index']} can't be read as"
        f" {type_name(field.type)}: {error}",
        why=f"it holds {shown}",
        todo="read the field as an array (option arrayFields), as a string or a larger type by"
        " .schema(...), or mend the document",
    )
