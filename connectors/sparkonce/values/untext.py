"""Values from their texts: the way back from `sparkonce.values.text`, for single values."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from sparkonce.values.spark_types import type_name

Tree = Any
"""What `parsed` gives: None, booleans, texts (also of numbers), lists and dictionaries."""

# Python's default of 28 digits would refuse decimals of Spark's 38.
_DIGITS = Context(prec=80)
_SECOND = 1_000_000_000


def parsed(document: str | bytes) -> Tree:
    """JSON in which numbers stay the texts that they are, so that no digit is lost."""
    return json.loads(document, parse_float=str, parse_int=str)


def array(tree: Tree, kind: pa.DataType) -> pa.Array:
    """One value, as an array.

    Args:
        tree: the value as `text.to_json` writes it, parsed; or as `text.to_text` does; or bytes.
        kind: its type.

    Raises:
        ValueError: it is no value of that type.
    """
    try:
        return pa.array([_value(tree, kind)], kind)
    except (ArithmeticError, AttributeError, KeyError, TypeError, pa.ArrowException) as error:
        raise ValueError(f"{tree!r} is no {type_name(kind)}: {error}") from None


def _value(tree: Tree, kind: pa.DataType) -> Any:
    if tree is None or types.is_null(kind):
        return None
    if types.is_struct(kind):
        return {field.name: _value(tree[field.name], field.type) for field in kind}
    if types.is_map(kind):
        return [(_leaf(key, kind.key_type), _value(tree[key], kind.item_type)) for key in tree]
    if types.is_nested(kind):
        return [_value(one, kind.value_type) for one in tree]
    return _leaf(tree, kind)


def _leaf(tree: Tree, kind: pa.DataType) -> Any:
    if types.is_binary(kind) or types.is_large_binary(kind):
        return tree if isinstance(tree, bytes) else base64.b64decode(tree, validate=True)
    if types.is_string(kind) or types.is_large_string(kind):
        return tree
    text = str(int.from_bytes(tree, "big") if isinstance(tree, bytes) else tree)  # of a BIT
    for accepts, read in _READERS:
        if accepts(kind):
            return read(text, kind)
    return pa.scalar(text).cast(kind)


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), context=_DIGITS)


def _time(text: str) -> int:
    """The nanoseconds of a time of day."""
    hours, minutes, seconds = text.split(":")
    return int((int(hours) * 3600 + int(minutes) * 60 + Decimal(seconds)) * _SECOND)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType], Any]], ...] = (
    (types.is_boolean, lambda text, _: text.lower() in ("true", "1")),
    (lambda kind: types.is_integer(kind) or types.is_duration(kind), lambda text, _: _whole(text)),
    (types.is_decimal, _decimal),
    (types.is_time, lambda text, _: _time(text)),
    (types.is_timestamp, lambda text, _: _cast(text.removesuffix("Z"), pa.timestamp("us"))),
    (types.is_date, lambda text, kind: _cast(text[:10], kind)),
)
"""Types by whose texts Arrow makes no value, or another one."""


def _whole(text: str) -> int:
    return int(Decimal(text))


def _cast(text: str, kind: pa.DataType) -> Any:
    return pa.scalar(text).cast(kind).value
