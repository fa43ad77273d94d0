"""Rows from their dead letters: the way back from `sparkonce.values.letters`, without Spark."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from sparkonce.values import letters, schema_text, untext
from sparkonce.values.untext import Tree

_INTERVAL = re.compile(r"INTERVAL '(-?)([\d :.]+)' (\w+)(?: TO (\w+))?")


def batch(
    rows: Iterable[tuple[str, Collection[str]]],
    schema: pa.Schema,
    lacking: Collection[str] = (),
    without: Collection[str] = (),
) -> pa.RecordBatch:
    """The rows, as the query had them.

    Args:
        rows: of each letter its row, and the columns in which strings are base64.
        schema: of the query.
        lacking: columns of `schema` that a row may lack, where they are then null.
        without: columns that rows have, and `schema` leaves out.

    Raises:
        ValueError: a row was cut or changed by hand, or is none of that schema.
    """
    trees = [_members(row, armored, schema, lacking, without) for row, armored in rows]
    columns = [
        pa.concat_arrays([untext.array(tree[field.name], field.type) for tree in trees])
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _members(
    row: str,
    armored: Collection[str],
    schema: pa.Schema,
    lacking: Collection[str],
    without: Collection[str],
) -> Mapping[str, Tree]:
    absent: dict[str, Tree] = {name: None for name in lacking if name in schema.names}
    try:
        tree = json.loads(row, parse_float=str, parse_int=str, object_pairs_hook=_unique)
        tree = absent | {name: value for name, value in tree.items() if name not in without}
        _require_names(tree, schema.names, "")
        return {
            field.name: _tree(tree[field.name], field, field.name in armored, f"{field.name}.")
            for field in schema
        }
    except (ArithmeticError, AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"it is no row of that schema: {error}") from error


def _unique(pairs: Sequence[tuple[str, Tree]]) -> dict[str, Tree]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"a name is there twice in {', '.join(name for name, _ in pairs)}")
    return made


def _require_names(tree: Mapping[str, Tree], names: Collection[str], path: str) -> None:
    for name in sorted({*tree} ^ {*names}):
        has, lacks = ("it", "the schema") if name in tree else ("the schema", "it")
        raise ValueError(f"{has} has {path + name!r}, and {lacks} has not")


def _tree(tree: Tree, field: pa.Field, armored: bool, path: str) -> Tree:
    """What `untext.array` reads, of what a letter has."""
    kind = field.type
    if tree is None:
        return None
    if types.is_struct(kind):
        _require_names(tree, [child.name for child in kind], path)
        return {
            child.name: _tree(tree[child.name], child, armored, f"{path}{child.name}.")
            for child in kind
        }
    if types.is_map(kind):
        return _map(tree, kind, armored, path)
    if types.is_nested(kind):
        return [_tree(one, kind.value_field, armored, path) for one in tree]
    return _leaf(tree, kind, armored)


def _map(tree: Tree, kind: pa.MapType, armored: bool, path: str) -> Tree:
    entries = tree.items() if isinstance(tree, dict) else [(e["key"], e["value"]) for e in tree]
    return _unique(
        [
            (
                _tree(key, kind.key_field, armored, path),
                _tree(value, kind.item_field, armored, path),
            )
            for key, value in entries
        ]
    )


def _leaf(tree: Tree, kind: pa.DataType, armored: bool) -> Tree:
    if armored and (types.is_string(kind) or types.is_large_string(kind)):
        return base64.b64decode(tree, validate=True).decode()
    return _micros(tree) if types.is_duration(kind) else tree


def _micros(text: str) -> str:
    """The microseconds of an interval, as Spark casts it to a string."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no interval")
    sign, clock, first, last = found.groups()
    units = schema_text.UNITS
    own = units[units.index(first.lower()) : units.index((last or first).lower()) + 1]
    numbers = re.split("[ :]", clock)
    passed: Any = sum(
        Decimal(number) * letters.SIZES[unit] for number, unit in zip(numbers, own, strict=True)
    )
    return f"{sign}{int(passed)}"
