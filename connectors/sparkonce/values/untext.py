"""Values from trees of their texts, as JSON has them, and columns of such documents."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
from pyarrow import types

from sparkonce.values import from_text
from sparkonce.values.spark_types import type_name

Tree = Any
"""What `parsed` gives: None, booleans, texts (also of numbers), lists and dictionaries."""


class Number(str):
    """The digits of a number."""

    __slots__ = ()


def parsed(document: str | bytes) -> Tree:
    """JSON in which numbers stay the texts that they are, so that no digit is lost.

    Raises:
        ValueError: it is none, too deep, or has a member twice.
    """
    try:
        return json.loads(
            document, parse_float=Number, parse_int=Number, object_pairs_hook=_members
        )
    except RecursionError:
        raise ValueError("it is too deep") from None


def _members(pairs: list[tuple[str, Tree]]) -> Tree:
    found = dict(pairs)
    if len(found) < len(pairs):  # which of them counts, no standard says
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} is there twice")
    return found


def array(tree: Tree, kind: pa.DataType) -> pa.Array:
    """One value, as an array.

    Args:
        tree: the value as `text.to_json` writes it, parsed; or as `text.to_text` does; or bytes.
        kind: its type.

    Raises:
        ValueError: it is no value of that type.
    """
    try:
        return pa.array([value(tree, kind)], kind)
    except (ValueError, KeyError, TypeError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"{tree!r} is no {type_name(kind)}: {error}") from None


def column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of any type from their texts, one by one where JSON is in them; null stays null.

    Raises:
        ValueError: a text is none of that type.
    """
    if not types.is_nested(kind):
        return from_text.column(texts, kind)
    found = [
        pa.nulls(1, kind) if text is None else _of_json(text, kind) for text in texts.to_pylist()
    ]
    return pa.concat_arrays(found) if found else pa.nulls(0, kind)


def _of_json(text: str | bytes, kind: pa.DataType) -> pa.Array:
    try:
        tree = parsed(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no {type_name(kind)}: {error}") from None
    return array(tree, kind)


def value(tree: Tree, kind: pa.DataType) -> Any:
    """One value, as `pyarrow.array` takes it.

    Raises:
        ValueError: it is no value of that type; or what `array` makes one of.
    """
    if tree is None or types.is_null(kind):
        return None
    if types.is_nested(kind) and not isinstance(tree, _json_type(kind)):
        raise ValueError(f"{tree!r} is no {type_name(kind)}")
    if types.is_struct(kind):
        return {field.name: value(tree.get(field.name), field.type) for field in kind}
    if types.is_map(kind):
        keys = [_leaf(key, kind.key_type) for key in tree]
        if len({*keys}) < len(keys):
            raise ValueError("two of its keys are one value")
        return [
            (key, value(tree[one], kind.item_type)) for key, one in zip(keys, tree, strict=True)
        ]
    if types.is_nested(kind):
        return [value(one, kind.value_type) for one in tree]
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
