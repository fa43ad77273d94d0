"""Values from JSON: whole columns by Arrow, single ones by the tree of their texts.

Arrow is strict: a text for a number, a single value for a list, and a number out of range are
errors. More lenient readers fall back on trees, value by value.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyarrow import types

from sparkonce.values import from_text
from sparkonce.values.spark_types import type_name

Leaf = Callable[[str, pa.DataType], "pa.DataType | None"]
"""Returns the type with which Arrow reads the values at a path, for a type that is not nested;
None if Arrow cannot read them."""


def column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of any type from their texts, JSON where the type is nested; null stays null.

    Raises:
        ValueError: a text is not of that type.
    """
    if not types.is_nested(kind):
        return from_text.column(texts, kind)
    carried = carrier(kind)
    if carried is None or not len(texts):
        return _column_by_trees(texts, kind)
    filled = pc.fill_null(texts.cast(pa.string()), "null")
    try:
        return finished(_lines(filled, carried), kind)
    except (pa.ArrowInvalid, ValueError):
        return _column_by_trees(texts, kind)


def objects(texts: pa.Array, kind: pa.StructType) -> pa.StructArray:
    """Objects as structs; a null is a null struct, and a missing member is null.

    Raises:
        ValueError: a text is no such object, or has a member that the type lacks.
    """
    carried = carrier(kind)
    if carried is None or not len(texts):
        return _column_by_trees(texts, kind)
    try:
        return finished(_lines(pc.fill_null(texts, "null"), carried), kind)
    except pa.ArrowInvalid as error:
        raise ValueError(str(error)) from None


def require_json(texts: pa.Array) -> None:
    """Reject texts that are not JSON, without a look at their values; null is one.

    Raises:
        ValueError: a text is not JSON.
    """
    try:
        table = read(_wrapped(pc.fill_null(texts, "null")), pa.schema([]))
    except pa.ArrowInvalid as error:
        raise ValueError(str(error)) from None
    if len(table) != len(texts):
        raise ValueError("a string is not JSON")


def _wrapped(texts: pa.Array) -> pa.Buffer:
    """Objects, one a line, with each text as a member."""
    lines = pc.binary_join_element_wise('{"v":', texts, "}\n", "")
    (joined,) = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "")
    return joined.as_buffer()


def _lines(texts: pa.Array, carried: pa.DataType) -> pa.Array:
    # Text after the value would be further members.
    table = read(_wrapped(texts), pa.schema([("v", carried)]), others="error")
    if len(table) != len(texts):  # a text had two values in it
        raise ValueError("a string is not JSON")
    return table.column("v").combine_chunks()


def read(body: Any, schema: pa.Schema, others: str = "ignore") -> pa.Table:
    """Read JSON objects, one a line.

    Members that the schema does not name are skipped (``ignore``) or an ``error``.

    Raises:
        pyarrow.ArrowInvalid: a value is not of its type.
    """
    return arrow_json.read_json(
        pa.py_buffer(body),
        arrow_json.ReadOptions(use_threads=False, block_size=len(body) + 1),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
    )


def plain(_: str, kind: pa.DataType) -> pa.DataType | None:
    """The type with which Arrow reads values: text, or the type itself."""
    if types.is_duration(kind):
        return pa.int64()
    return pa.string() if types.is_temporal(kind) or types.is_binary(kind) else kind


def carrier(kind: pa.DataType, leaf: Leaf = plain, at: str = "") -> pa.DataType | None:
    """The type with which Arrow reads values of a type; None if it cannot.

    `leaf` returns it for types that are not nested, by their path `at`.
    """
    if types.is_map(kind):
        return None
    if types.is_struct(kind):
        inner = [(one.name, carrier(one.type, leaf, _path(at, one.name))) for one in kind]
        return None if any(found is None for _, found in inner) else pa.struct(inner)
    if types.is_list(kind):
        each = carrier(kind.value_type, leaf, at)
        return None if each is None else pa.list_(each)
    return leaf(at, kind)


def _path(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def finished(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values that Arrow read with `carrier`, in their own type.

    Raises:
        ValueError: a value is not of the type.
    """
    if types.is_struct(kind):
        inner = [finished(values.field(at), one.type) for at, one in enumerate(kind)]
        return pa.StructArray.from_arrays(inner, fields=[*kind], mask=values.is_null())
    if types.is_list(kind):
        each = finished(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, each, kind, mask=values.is_null())
    finish = next((finish for accepts, finish in _FINISH if accepts(kind)), None)
    return finish(values, kind) if finish else values


def _finite(values: pa.Array, _: pa.DataType) -> pa.Array:
    if pc.any(pc.is_inf(values)).as_py():  # Arrow reads a number that is too large as infinity
        raise ValueError("a number is out of range")
    return values


def _moments(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_string(values.type):
        return from_text.column(values, kind)
    years = pc.and_(pc.greater_equal(values, 1000), pc.less(values, 10_000))
    if pc.any(years).as_py():
        raise ValueError("a number of four digits may be a year")
    moments = values.view(pa.timestamp("ms")).cast(pa.timestamp("us"))
    if pc.any(from_text.outside_years(moments)).as_py():
        raise ValueError("a timestamp is out of range")
    return moments.cast(kind)


def _whole(values: pa.Array, _: pa.DataType) -> pa.Array:
    values.validate(full=True)  # Arrow accepts a decimal that is too long for its type
    return values


_FINISH: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...
] = (
    (types.is_floating, _finite),
    (types.is_decimal, _whole),
    (types.is_timestamp, _moments),
    (types.is_duration, lambda values, kind: values.view(pa.duration("us")).cast(kind)),
    (types.is_binary, lambda values, _: from_text.from_base64(values)),
    (types.is_temporal, from_text.column),
)
"""Conversions of values that Arrow read with another type; the first that accepts it applies."""


Tree = Any
"""The result of `parse_tree`: None, booleans, texts (also of numbers), lists and dictionaries."""


class Number(str):
    """The digits of a number."""

    __slots__ = ()


def parse_tree(document: str | bytes) -> Tree:
    """Parse JSON with numbers as text, so that no digit is lost.

    Raises:
        ValueError: the document is not JSON, too deep, or has a member twice.
    """
    try:
        return json.loads(
            document, parse_float=Number, parse_int=Number, object_pairs_hook=_members
        )
    except RecursionError:
        raise ValueError("it is too deep") from None


def _members(pairs: list[tuple[str, Tree]]) -> Tree:
    found = dict(pairs)
    if len(found) < len(pairs):  # no standard says which of them counts
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} occurs twice")
    return found


def array_of_tree(tree: Tree, kind: pa.DataType) -> pa.Array:
    """One value, as an array.

    The tree is the parsed output of `text.to_json`, or the output of `text.to_text`, or bytes.

    Raises:
        ValueError: the tree is not a value of that type.
    """
    try:
        return pa.array([value_of_tree(tree, kind)], kind)
    except (ValueError, KeyError, TypeError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"{tree!r} is not of type {type_name(kind)}: {error}") from None


def _column_by_trees(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    found = [pa.nulls(0, kind)]
    for text in texts.to_pylist():
        try:
            tree = None if text is None else parse_tree(text)
        except ValueError as error:
            raise ValueError(f"{text!r} is not of type {type_name(kind)}: {error}") from None
        found.append(array_of_tree(tree, kind))
    return pa.concat_arrays(found)


def value_of_tree(tree: Tree, kind: pa.DataType) -> Any:
    """One value, as `pyarrow.array` takes it.

    Raises:
        ValueError: the tree is not a value of that type; or another error that `array_of_tree`
            converts into one.
    """
    if tree is None or types.is_null(kind):
        return None
    if types.is_nested(kind) and not isinstance(tree, _json_type(kind)):
        raise ValueError(f"{tree!r} is not of type {type_name(kind)}")
    if types.is_struct(kind):
        return {field.name: value_of_tree(tree.get(field.name), field.type) for field in kind}
    if types.is_map(kind):
        keys = [_leaf(key, kind.key_type) for key in tree]
        if len({*keys}) < len(keys):
            raise ValueError("two of its keys are the same value")
        return [
            (key, value_of_tree(tree[one], kind.item_type))
            for key, one in zip(keys, tree, strict=True)
        ]
    if types.is_nested(kind):
        return [value_of_tree(one, kind.value_type) for one in tree]
    return _leaf(tree, kind)


def _leaf(tree: Tree, kind: pa.DataType) -> Any:
    if types.is_binary(kind) or types.is_large_binary(kind):
        if isinstance(tree, Number):
            raise ValueError(f"{tree} is a number")
        return tree if isinstance(tree, bytes) else base64.b64decode(tree, validate=True)
    if types.is_string(kind) or types.is_large_string(kind):
        return tree
    text = str(int.from_bytes(tree, "big") if isinstance(tree, bytes) else tree)  # of a BIT
    (found,) = from_text.column(pa.array([text]), kind)
    return found.value if types.is_temporal(kind) else found.as_py()


def _json_type(kind: pa.DataType) -> type:
    return dict if types.is_struct(kind) or types.is_map(kind) else list
