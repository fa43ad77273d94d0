"""Dead letters: bad rows in a form that allows writing them again.

A row is a JSON object that Spark's ``from_json(row, schema)`` reads back exactly, with the schema
of the query. Values that it cannot read have another form, which docs/dead-letters.md describes;
`sparkonce.replay` restores all of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyarrow import types

from sparkonce.values import from_json, spark_types
from sparkonce.values.text import to_json

CYCLE = 146_097
"""Days in four hundred years."""
_MIDDLE = date(2000, 1, 1).toordinal()
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
_SIZES = {"day": _DAY, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


class Letter(NamedTuple):
    """A bad row with its reason.

    Attributes:
        reason: why the row can't be stored.
        row: its columns, as a JSON object.
        key: its key columns, as a JSON object; empty without a key.
        base64: the columns in which each string is the base64 of its bytes, because one of them is
            not UTF-8.
    """

    reason: str
    row: str
    key: str = "{}"
    base64: tuple[str, ...] = ()


def of_row(reason: str, row: pa.RecordBatch, schema: pa.Schema, key: Iterable[str] = ()) -> Letter:
    """The letter of a row.

    The schema of the query has more information on types than the row.
    """
    members, armored = {}, []
    for name in row.schema.names:
        place = schema.get_field_index(name)
        field = schema.field(place) if place >= 0 else row.schema.field(name)
        value = row.column(name)[0]
        try:
            members[name] = _json(value, field, _string)
        except UnicodeDecodeError:
            # Spark does not validate strings, and JSON holds only UTF-8.
            members[name] = _json(value, field, _armored)
            armored.append(name)
    known = {name: members[name] for name in key if name in members}
    return Letter(reason, _object(members), _object(known), tuple(armored))


def of_trees(
    reason: str, trees: Mapping[str, from_json.Tree], schema: pa.Schema, key: Iterable[str] = ()
) -> Letter:
    """The letter of a row from the texts of its values; see `from_json.array_of_tree`."""
    columns = {}
    for field in schema:
        if field.name in trees:
            columns[field.name] = _restored(trees[field.name], field.type)
    return of_row(reason, pa.RecordBatch.from_pydict(columns), schema, key)


def _restored(tree: from_json.Tree, kind: pa.DataType) -> pa.Array:
    """The value; or the stored text, if the store changed the value."""
    try:
        return from_json.array_of_tree(tree, kind)
    except ValueError:
        return pa.array([tree if isinstance(tree, str | bytes) else json.dumps(tree)])


def _object(members: Mapping[str, str]) -> str:
    pairs = [f"{json.dumps(name, ensure_ascii=False)}: {value}" for name, value in members.items()]
    return f"{{{', '.join(pairs)}}}"


Text = Callable[[bytes], str]
"""The encoder of a string's bytes."""


def _string(data: bytes) -> str:
    return json.dumps(data.decode(), ensure_ascii=False)


def _armored(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


def _json(value: pa.Scalar, field: pa.Field, text: Text) -> str:
    kind = value.type
    if not value.is_valid:
        return "null"
    if types.is_struct(kind):
        said = field.type if types.is_struct(field.type) else kind
        return _object(
            {one.name: _json(value[one.name], one, text) for one in said}  # fields in order
        )
    if types.is_map(kind):
        return _map(value.values, field.type if types.is_map(field.type) else kind, text)
    if types.is_nested(kind):
        inner = field.type.value_field if types.is_nested(field.type) else kind.value_field
        return f"[{', '.join(_json(one, inner, text) for one in value.values)}]"
    return _leaf(value, field, text)


def _map(entries: pa.Array, kind: pa.MapType, text: Text) -> str:
    """An object; or an array of entries, as Spark reads no objects whose keys are not strings."""
    write = partial(_json, text=text)
    pairs = [
        (write(key, kind.key_field), write(value, kind.item_field))
        for key, value in zip(*entries.flatten(), strict=True)
    ]
    if types.is_string(kind.key_type):
        return f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"
    return f"[{', '.join(_object({'key': key, 'value': value}) for key, value in pairs)}]"


def _leaf(value: pa.Scalar, field: pa.Field, text: Text) -> str:
    if types.is_string(value.type) or types.is_large_string(value.type):
        return text(bytes(value.as_buffer()))
    for accepts, write in _LEAVES:
        if accepts(value.type):
            return write(value, field)
    written: str = to_json(pa.repeat(value, 1))[0].as_py()
    return written


def _date(days: int) -> str:
    """A day of any year, counted from 1970; Python supports only years of four digits."""
    cycles, rest = divmod(days + _EPOCH - _MIDDLE, CYCLE)
    day = date.fromordinal(_MIDDLE + rest)
    year = day.year + 400 * cycles
    shown = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    return f"{shown}-{day.month:02}-{day.day:02}"


def _timestamp(value: pa.Scalar) -> str:
    days, micros = divmod(value.value, _DAY)
    return f"{_date(days)}T{_clock(micros)}{'Z' if value.type.tz else ''}"


def _clock(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"


def _time(value: pa.Scalar) -> str:
    scale = {"us": 1000, "ns": 1}[value.type.unit]
    micros, nanos = divmod(value.value * scale, 1000)
    return _clock(micros) + (f"{nanos:03}" if nanos else "")


def _interval(micros: int, type_name: str) -> str:
    """An interval as Spark casts it to a string; Spark reads it only in the units of its type."""
    _, first, *rest = type_name.split()
    units = spark_types.UNITS
    own = units[units.index(first) : units.index(rest[-1] if rest else first) + 1]
    left, shown = abs(micros), ""
    for unit in own:
        count, left = divmod(left, _SIZES[unit])
        shown += f"{count:02}" if shown else str(count)
        if unit == "second":
            shown += f".{left:06}"
        if unit != own[-1]:
            shown += " " if unit == "day" else ":"
    names = " TO ".join(dict.fromkeys((own[0].upper(), own[-1].upper())))
    return f"INTERVAL '{'-' if micros < 0 else ''}{shown}' {names}"


_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Scalar, pa.Field], str]], ...] = (
    (types.is_binary, lambda value, _: _armored(bytes(value.as_buffer()))),
    (types.is_large_binary, lambda value, _: _armored(bytes(value.as_buffer()))),
    (types.is_date, lambda value, _: f'"{_date(value.value)}"'),
    (types.is_timestamp, lambda value, _: f'"{_timestamp(value)}"'),
    (types.is_time, lambda value, _: f'"{_time(value)}"'),
    (
        types.is_duration,
        lambda value, field: f'"{_interval(value.value, spark_types.spark_type(field))}"',
    ),
)
"""Encoders of values for which `text.to_json` has another form or none."""
