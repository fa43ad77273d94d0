"""A logged column as the type that was asked for, and which types it can be."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pymysql.constants import FIELD_TYPE

from pyspark_mysql.binlog.images import Buffer, Place
from pyspark_mysql.binlog.tables import Column
from pyspark_mysql.binlog.texts import varying
from pyspark_mysql.binlog.types import BIT, DATETIME2, NEWDECIMAL, TIME2, TIMESTAMP2, UNREAD
from pyspark_mysql.binlog.values import fixed
from pyspark_mysql.read.described import Described
from pyspark_mysql.read.forms import form
from sparkonce.errors import OptionError
from sparkonce.values import from_json
from sparkonce.values.spark_types import type_name

DAY = 86_400_000_000


def require_readable(column: Described, kind: pa.DataType) -> None:
    """Refuse a type of which some value of the column has no place, or would change.

    Raises:
        OptionError: it is one.
    """
    form(column, kind)
    natural = column.natural
    for is_kind, has_form in SHOWN:
        if is_kind(kind) and not any(is_one(natural) for is_one in has_form):
            raise OptionError(
                f"Column {column.name!r} can't be followed as {type_name(kind)}",
                why=f"the binary log has {type_name(natural)}, and not what the server shows",
                todo="give it that type, and cast it in Spark",
            )


SHOWN = (
    (types.is_string, (types.is_string, types.is_integer, types.is_decimal)),
    (types.is_binary, (types.is_string, types.is_binary)),
)
"""What has the form of the log as a text, and as bytes."""


def described(logged: Column) -> Described:
    """A column as it was when rows of it were logged. It may have been altered since."""
    kind = logged.type
    length, scale = kind.meta & 255, kind.meta >> 8
    if kind.code == BIT:
        length, scale = length + 8 * scale, 0
    elif kind.code == NEWDECIMAL:
        length += (scale > 0) + (not logged.unsigned)
    else:
        length = scale = 0
    code, binary = CODES.get(kind.code, kind.code), logged.charset is None
    return Described(logged.name, code, length, scale, bool(logged.unsigned), True, binary)


CODES = {
    TIMESTAMP2: FIELD_TYPE.TIMESTAMP,
    DATETIME2: FIELD_TYPE.DATETIME,
    TIME2: FIELD_TYPE.TIME,
}
"""What the protocol calls types that have another number in the log."""


def value(place: Place, buffer: Buffer, kind: pa.DataType) -> pa.Array:
    """The values of a column.

    Args:
        place: where they are.
        buffer: of all rows.
        kind: wanted.

    Raises:
        ValueError: one is none of that type.
    """
    if place.column.type.code in UNREAD:
        raise ValueError("columns of this type (COMPRESSED, VECTOR) can't be followed")
    found = (varying if place.column.type.prefix else fixed)(place, buffer)
    if types.is_duration(found.type):
        return _time(found, place, kind)
    return found if found.type == kind else _converted(found, kind)


def _converted(found: pa.Array, kind: pa.DataType) -> pa.Array:
    for is_one, convert in CONVERSIONS:
        if is_one(kind):
            return convert(found, kind)
    return found.cast(kind)


def _boolean(found: pa.Array, kind: pa.DataType) -> pa.Array:  # noqa: ARG001 (there is one)
    if not pc.all(pc.is_in(found, pa.array([0, 1, None], found.type))).as_py():
        raise ValueError("it is neither 0 nor 1")
    return pc.not_equal(found, pa.scalar(0, found.type))


def _interval(found: pa.Array, kind: pa.DataType) -> pa.Array:
    return found.cast(pa.int64()).cast(kind)


def _text(found: pa.Array, kind: pa.DataType) -> pa.Array:
    if not types.is_decimal(found.type):
        return found.cast(kind)
    return pa.array([None if one is None else f"{one:f}" for one in found.to_pylist()], kind)


def _bytes(found: pa.Array, kind: pa.DataType) -> pa.Array:
    return _text(found, pa.string()).cast(kind)


def _nested(found: pa.Array, kind: pa.DataType) -> pa.Array:
    return from_json.column(found.cast(pa.binary()), kind)


CONVERSIONS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...
] = (
    (types.is_boolean, _boolean),
    (types.is_duration, _interval),
    (types.is_string, _text),
    (types.is_binary, _bytes),
    (types.is_nested, _nested),
)
"""What Arrow itself does not convert, or converts otherwise."""


def _time(found: pa.Array, place: Place, kind: pa.DataType) -> pa.Array:
    """A TIME: of a day, or its text, which may be of several days, or of less than none."""
    micros = found.cast(pa.int64())
    if types.is_time(kind):
        if pc.any(pc.or_(pc.less(micros, 0), pc.greater_equal(micros, DAY))).as_py():
            raise ValueError("it is no time of a day")
        return micros.cast(pa.time64("us"))
    digits = place.column.type.meta
    texts = (None if one is None else _shown(one, digits) for one in micros.to_pylist())
    return pa.array(texts, pa.string()).cast(kind)


def _shown(micros: int, digits: int) -> str:
    """As the server shows it: -12:34:56.78."""
    seconds, rest = divmod(abs(micros), 1_000_000)
    fraction = f".{rest:06d}"[: digits + 1] if digits else ""
    sign = "-" if micros < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
