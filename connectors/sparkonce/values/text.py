"""The text form of each Spark value in a store.

Arrow's compute kernels encode whole columns, without a Python object for each row. One table,
`_FORMS`, defines the text and the JSON of each type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.values import json_text
from sparkonce.values.spark_types import type_name

if TYPE_CHECKING:
    from collections.abc import Iterator


def to_hex(data: pa.BinaryArray) -> pa.BinaryArray:
    """The hexadecimal digits of each value; null stays null.

    Raises:
        ValueError: they take more than 2 GiB.
    """
    filled = pc.fill_null(data, b"")
    lengths = pc.multiply(pc.binary_length(filled).cast(pa.int64()), 2)
    return _cut(json_text.all_bytes(filled).hex().encode(), lengths, data.is_valid())


def from_hex(digits: pa.BinaryArray) -> pa.BinaryArray:
    """The bytes that hexadecimal digits represent; null stays null.

    Raises:
        ValueError: a text is not an even number of hexadecimal digits.
    """
    filled = pc.fill_null(digits, b"")
    lengths = pc.divide(pc.binary_length(filled).cast(pa.int64()), 2)
    return _cut(
        bytes.fromhex(str(json_text.all_bytes(filled), "ascii")), lengths, digits.is_valid()
    )


def _cut(data: bytes, lengths: pa.Array, valid: pa.Array) -> pa.BinaryArray:
    """Values of these lengths, and null where one is not valid."""
    values = [None, json_text.offsets(lengths).buffers()[1], pa.py_buffer(data)]
    found = pa.Array.from_buffers(pa.binary(), len(lengths), values)
    return pc.if_else(valid, found, pa.nulls(len(found), pa.binary()))


Encoder = Callable[[pa.Array], pa.Array]

_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days from 1970
_INT64_DIGITS = 18


class UnsupportedType(TypeError):
    """A column has a type, or a type inside it, that has no text form."""


def to_text(column: pa.Array) -> pa.BinaryArray:
    """Return the text form of each value, as bytes; null stays null.

    Numbers are decimal: a float is the shortest text that reads back as the same float of that
    width, or `nan`, `inf`, `-inf`; a decimal always has its scale and never an exponent. Strings
    and binary values stay unchanged. Dates, times and timestamps are ISO 8601, with six fraction
    digits and, for a timestamp with a time zone, in UTC with a Z. A duration is a count of whole
    microseconds. Lists, maps and structs are JSON, see `to_json`.

    Raises:
        UnsupportedType: The column has no text form, see `check`.
        ValueError: A date or timestamp lies outside the years 0001 to 9999, or a time outside the
            day, or the texts take more than 2 GiB.
    """
    return _encoded(column, lambda form: form.text).cast(pa.binary())


def to_json(column: pa.Array) -> pa.StringArray:
    """Return the JSON text of each value; null stays null, but is `null` inside a value.

    Numbers, booleans and durations are JSON numbers and literals; NaN and the infinities are the
    strings "NaN", "Infinity", "-Infinity". Binary values are base64. A struct is an object with all
    its fields in order, a list an array, a map an object whose keys are the text form of its keys.
    Other values are strings of their text form.

    Raises:
        UnsupportedType: The column has no JSON form, see `check`.
        ValueError: A date or timestamp lies outside the years 0001 to 9999, or a time outside the
            day, or the texts take more than 2 GiB.
    """
    return _encoded(column, lambda form: form.json)


def check(kind: pa.DataType) -> str | None:
    """Return why columns of this type cannot be encoded, with the path to it, or None if they can.

    In a path, `.name` is a struct field, `[]` a list element, `{key}` and `{}` a key and a value
    of a map.
    """
    return next(_problems(kind, ""), None)


def _problems(kind: pa.DataType, path: str) -> Iterator[str]:
    """Yield what cannot be encoded in this type."""
    where = f" at {path.removeprefix('.')}" if path else ""
    if _form(kind) is _NO_FORM:
        yield f"{type_name(kind)} has no text form{where}"
    elif types.is_map(kind) and types.is_nested(kind.key_type):
        yield f"a map with keys of type {type_name(kind.key_type)} has no JSON form{where}"
    elif types.is_struct(kind) and len({field.name for field in kind}) < kind.num_fields:
        yield f"a struct with two fields of the same name has no JSON form{where}"
    else:
        for step, child in _children(kind):
            yield from _problems(child, path + step)


def _children(kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Return the types inside a type, each with the step of the path that leads to it."""
    if types.is_struct(kind):
        return [(f".{field.name}", field.type) for field in kind]
    if types.is_map(kind):
        return [("{key}", kind.key_type), ("{}", kind.item_type)]
    if types.is_nested(kind):
        return [("[]", kind.value_type)]
    return []


def _encoded(column: pa.Array, choose: Callable[[_TextForm], Encoder]) -> pa.Array:
    """Return the column in the chosen form."""
    problem = check(column.type)
    if problem:
        raise UnsupportedType(problem)
    try:
        return choose(_form(column.type))(column)
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise ValueError(
            f"a column of type {type_name(column.type)} can't be converted to text: {error}"
        ) from error


def _cast(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _cast_binary(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary())


def _decimal(column: pa.Array) -> pa.Array:
    """Return decimals in plain notation; Arrow's own cast writes `1E-18` for a small one."""
    scale = column.type.scale
    digits = _unscaled(column)
    if not scale:
        return digits
    negative = pc.starts_with(digits, "-")
    # Enough digits for one before the point, not counting the sign.
    digits = pc.ascii_lpad(pc.ascii_ltrim(digits, "-"), scale + 1, "0")
    plain = pc.binary_replace_slice(digits, -scale, -scale, ".")
    return pc.if_else(negative, pc.binary_replace_slice(plain, 0, 0, "-"), plain)


def _unscaled(column: pa.Array) -> pa.Array:
    """Return the digits of decimals, without the point."""
    precision = column.type.precision
    # The same bits with scale 0: the number without its point.
    whole = column.view(pa.decimal128(precision, 0))
    # Integers become text twice as fast as decimals do.
    return _cast(whole.cast(pa.int64()) if precision <= _INT64_DIGITS else whole)


def _date(column: pa.Array) -> pa.Array:
    _require_within(column, pa.int32(), _FIRST_DAY, _LAST_DAY)
    return _cast(column)


def _timestamp(column: pa.Array) -> pa.Array:
    """Return timestamps in ISO 8601.

    The stored count is of the instant in UTC whatever the zone. Viewing the column without a zone
    saves Arrow the lookup of the zone for each row, which takes twenty times as long.
    """
    utc = column.view(pa.timestamp("us"))
    first, last = _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1
    _require_within(utc, pa.int64(), first, last, type_name(column.type))
    iso = pc.binary_replace_slice(_cast(utc), 10, 11, "T")
    return iso if column.type.tz is None else pc.binary_replace_slice(iso, 26, 26, "Z")


def _time(column: pa.Array) -> pa.Array:
    micros = column.cast(pa.time64("us"))
    _require_within(micros, pa.int64(), 0, _DAY_US - 1)
    return _cast(micros)


def _duration(column: pa.Array) -> pa.Array:
    return _cast(column.view(pa.int64()))


def _require_within(
    column: pa.Array, counts: pa.DataType, first: int, last: int, kind: str = ""
) -> None:
    """Raise ValueError if a value, seen as a count, is not from `first` to `last`.

    Outside of this range Arrow's text is not ISO 8601, or not even a date.
    """
    values = column.view(counts)
    ends = pc.min_max(values)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and not first <= low <= high <= last:
        wrong = pc.or_(pc.less(values, first), pc.greater(values, last))
        row = pc.index(wrong, True).as_py()
        text = _cast(column.slice(row, 1))[0]
        limits = _cast(pa.array([first, last], counts).view(column.type)).to_pylist()
        raise ValueError(
            f"{kind or type_name(column.type)} {text} is not within {limits[0]} to {limits[1]}"
        )


def _unsupported(column: pa.Array) -> pa.Array:
    raise UnsupportedType(f"{type_name(column.type)} has no text form")


def _nulls(column: pa.Array) -> pa.Array:
    return pa.nulls(len(column), pa.string())


def _quoted(text: Encoder) -> Encoder:
    """Return the JSON encoder of values whose text form is a JSON string without escapes."""
    return lambda column: json_text.quoted(text(column))


def _json(column: pa.Array) -> pa.Array:
    return _form(column.type).json(column)


def _list(column: pa.Array) -> pa.Array:
    return json_text.arrays(column, _json(column.flatten()))


def _struct(column: pa.Array) -> pa.Array:
    names = [field.name for field in column.type]
    return json_text.objects(column, names, [_json(child) for child in column.flatten()])


def _map(column: pa.Array) -> pa.Array:
    entries = _entries(column)
    keys, values = entries.flatten().flatten()
    return json_text.mappings(entries, _key(keys), _json(values))


def _entries(column: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of key and value.

    A map array cannot be flattened, and its keys and items ignore slices and null maps. A cast to
    lists of structs returns invalid arrays for a list of nulls inside.
    """
    pairs = column.values
    return pa.Array.from_buffers(
        pa.list_(pairs.type),
        len(column),
        column.buffers()[:2],
        offset=column.offset,
        children=[pairs],
    )


def _key(column: pa.Array) -> pa.Array:
    """Return map keys as JSON strings."""
    form = _form(column.type)
    return form.json(column) if form.free_text else json_text.quoted(form.text(column))


def _is_plain_struct(kind: pa.DataType) -> bool:
    """Spark's VARIANT is a struct of bytes that only Spark can read."""
    return types.is_struct(kind) and not any(b"variant" in (one.metadata or {}) for one in kind)


class _TextForm(NamedTuple):
    """How the values of the accepted types are written."""

    accepts: Callable[[pa.DataType], bool]
    text: Encoder
    json: Encoder
    free_text: bool = False
    """Whether the text may hold any bytes, so that only `json` can quote it."""


_NO_FORM = _TextForm(lambda _: True, _unsupported, _unsupported)
_FORMS = (
    _TextForm(types.is_boolean, _cast, _cast),
    _TextForm(types.is_signed_integer, _cast, _cast),
    _TextForm(lambda t: types.is_float32(t) or types.is_float64(t), _cast, json_text.number),
    _TextForm(lambda t: types.is_decimal128(t) and t.scale >= 0, _decimal, _decimal),
    _TextForm(
        lambda t: types.is_string(t) or types.is_large_string(t),
        _cast_binary,
        json_text.escaped,
        free_text=True,
    ),
    _TextForm(
        lambda t: types.is_binary(t) or types.is_large_binary(t),
        _cast_binary,
        json_text.base64,
        free_text=True,
    ),
    _TextForm(types.is_date32, _date, _quoted(_date)),
    _TextForm(lambda t: types.is_timestamp(t) and t.unit == "us", _timestamp, _quoted(_timestamp)),
    _TextForm(types.is_time64, _time, _quoted(_time)),
    _TextForm(lambda t: types.is_duration(t) and t.unit == "us", _duration, _duration),
    _TextForm(types.is_null, _nulls, _nulls),
    _TextForm(lambda t: types.is_list(t) or types.is_large_list(t), _list, _list),
    _TextForm(types.is_map, _map, _map),
    _TextForm(_is_plain_struct, _struct, _struct),
)


def _form(kind: pa.DataType) -> _TextForm:
    """Return how values of this type are written."""
    return next((form for form in _FORMS if form.accepts(kind)), _NO_FORM)
