"""Hits as rows, value by value: whatever Elasticsearch takes for a value of a field.

One value where an array is mapped, a number as text, ``"a.b"`` for ``b`` inside ``a``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.reading.described import META
from sparkonce.errors import ValueUnreadable
from sparkonce.values import untext
from sparkonce.values.spark_types import type_name
from sparkonce.values.untext import Number


@dataclass(frozen=True)
class Shape:
    """What the types of columns don't tell.

    Attributes:
        any_json: paths of fields whose text is the JSON of whatever is there.
        mixed: paths of fields that are of several types.
        millis: paths of dates in which a number is milliseconds since 1970.
    """

    any_json: Collection[str] = ()
    mixed: Collection[str] = ()
    millis: Collection[str] = ()


class Page(NamedTuple):
    """A page.

    Attributes:
        rows: of it.
        hits: how many they are.
        last: the place of the last one, behind which the next page begins.
        point: the point in time, as the cluster wants it named from now on.
    """

    rows: pa.RecordBatch
    hits: int
    last: Sequence[int]
    point: str


def page(body: bytes, schema: pa.Schema, shape: Shape) -> Page:
    """The rows of an answer.

    Raises:
        ValueUnreadable: a value is none of its type.
    """
    answer = untext.parsed(body)
    hits = answer["hits"]["hits"]
    rows = [_row(hit, schema, shape) for hit in hits]
    columns = [_column([row[at] for row in rows], field, hits) for at, field in enumerate(schema)]
    last = [int(one) for one in hits[-1]["sort"]] if hits else []
    made = pa.RecordBatch.from_arrays(columns, schema=schema)
    return Page(made, len(hits), last, answer["pit_id"])


def _row(hit: Mapping[str, Any], schema: pa.Schema, shape: Shape) -> list[Any]:
    meta = {name: hit.get(name) for name in META}
    source, found = hit.get("_source", {}), []
    try:
        document = {**_spread(source), **meta}
    except ValueError as error:
        raise _unreadable(hit, schema.field(0), source, error) from None
    for field in schema:
        tree = None
        try:
            tree = _member(document, field.name)
            fit = _fitted(tree, field.type, shape, field.name)
            found.append(untext.value(fit, field.type))
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise _unreadable(hit, field, tree, error) from None
    return found


def _column(values: list[Any], field: pa.Field, hits: list[Any]) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError):
        for value, hit in zip(values, hits, strict=True):
            try:
                pa.array([value], field.type)
            except (pa.ArrowException, UnicodeError, OverflowError, TypeError) as error:
                raise _unreadable(hit, field, value, error) from None
        raise


def _spread(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object in which ``"a.b"`` is ``b`` inside ``a``, too."""
    if not any("." in key for key in document):
        return document
    found = dict(document)
    for key, value in document.items():
        head, dot, rest = key.partition(".")
        inner = found.get(head, {})
        if dot and isinstance(inner, Mapping):
            found[head] = {**inner, rest: _both(inner[rest], value) if rest in inner else value}
    return found


def _both(one: Any, other: Any) -> Any:
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)) or {*one} & {*other}:
        raise ValueError("a field is there twice, with dots in its name and as an object")
    return {**one, **other}


def _member(document: Mapping[str, Any], name: str) -> Any:
    """A member of an object; a name with dots may lead into it."""
    if name in document or "." not in name:
        return document.get(name)
    head, _, rest = name.partition(".")
    inner = document.get(head)
    return _member(_spread(inner), rest) if isinstance(inner, Mapping) else None


def _fitted(tree: Any, kind: pa.DataType, shape: Shape, at: str) -> Any:
    """A value as `untext` takes it."""
    if tree is None:
        return None
    if types.is_list(kind):
        many = tree if isinstance(tree, list) else [tree]
        return [_fitted(one, kind.value_type, shape, at) for one in many]
    if types.is_string(kind) and at in shape.any_json:
        return _dumped(tree)
    if isinstance(tree, list):
        raise ValueError("it is an array: name the field in option arrayFields")
    if types.is_nested(kind) and not isinstance(tree, Mapping):
        raise ValueError("it is no object")
    if types.is_struct(kind):
        inner = _spread(tree)
        return {
            one.name: _fitted(_member(inner, one.name), one.type, shape, f"{at}.{one.name}")
            for one in kind
        }
    if types.is_map(kind):
        return {
            key: _fitted(one, kind.item_type, shape, f"{at}.{key}") for key, one in tree.items()
        }
    return _leaf(tree, kind, shape, at)


def _leaf(tree: Any, kind: pa.DataType, shape: Shape, at: str) -> Any:
    if isinstance(tree, Mapping):
        raise ValueError("it is an object")
    if types.is_string(kind):
        return json.dumps(tree) if isinstance(tree, bool) else str(tree)
    if isinstance(tree, bool):
        if types.is_boolean(kind):
            return tree
        raise ValueError("it is a boolean")
    if types.is_boolean(kind) and not tree:  # as the cluster takes an empty text
        return False
    if types.is_floating(kind) and at in shape.mixed and _is_rounded(tree, kind):
        raise ValueError("it has more digits")
    if types.is_timestamp(kind) and isinstance(tree, Number):
        if at not in shape.millis or re.fullmatch("[0-9]{4}", tree):
            raise ValueError("it is a number, and the field's format does not say of what")
        return f"{pa.array([int(tree)]).view(pa.timestamp('ms')).cast(pa.string())[0]}Z"
    return tree


def _is_rounded(text: str, kind: pa.DataType) -> bool:
    """Whether a whole number is another one as a float."""
    whole = text.lstrip("-").isdigit()
    return whole and int(pa.array([float(text)]).cast(kind)[0].as_py()) != int(text)


def _dumped(tree: Any) -> str:
    """JSON with the digits that numbers had."""
    if isinstance(tree, Number):
        return str(tree)
    if isinstance(tree, list):
        return f"[{','.join(map(_dumped, tree))}]"
    if isinstance(tree, Mapping):
        members = (f"{_dumped(key)}:{_dumped(value)}" for key, value in tree.items())
        return f"{{{','.join(members)}}}"
    return json.dumps(tree, ensure_ascii=False)


def _unreadable(
    hit: Mapping[str, Any], field: pa.Field, tree: Any, error: Exception
) -> ValueUnreadable:
    shown = str(tree) if len(str(tree)) < 100 else f"{str(tree)[:100]}..."
    return ValueUnreadable(
        f"Field {field.name!r} of document {hit['_id']!r} in index {hit['_index']} can't be read as"
        f" {type_name(field.type)}: {error}",
        why=f"it holds {shown}",
        todo="read the field as an array (option arrayFields), as a string or a larger type by"
        " .schema(...), or mend the document",
    )
