"""Columns of a table or a query: the server's description, and the conversion to Arrow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pymysql.constants import FIELD_TYPE, FLAG

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import OptionError
from sparkonce.values import from_json, text
from sparkonce.values.spark_types import decimal, type_name

BINARY = 63
"""The number of the character set of bytes."""

INTEGERS: dict[int, tuple[pa.DataType, pa.DataType]] = {
    FIELD_TYPE.TINY: (pa.int8(), pa.int16()),
    FIELD_TYPE.SHORT: (pa.int16(), pa.int32()),
    FIELD_TYPE.INT24: (pa.int32(), pa.int32()),
    FIELD_TYPE.LONG: (pa.int32(), pa.int64()),
    FIELD_TYPE.LONGLONG: (pa.int64(), decimal(20, 0)),
    FIELD_TYPE.YEAR: (pa.int32(), pa.int32()),
}
"""The Arrow types that hold all values of a type, signed and unsigned."""

WHOLE = (*(code for code in INTEGERS if code != FIELD_TYPE.YEAR),)
"""Whole numbers with the order, arithmetic and literals of Spark; YEAR and BIT differ."""

DECIMALS = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL)
DAYS = (FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE)
MOMENTS = (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)
NUMBERS = (*INTEGERS, FIELD_TYPE.BIT)
NARROW = (FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.YEAR)
"""Types whose values a double holds exactly."""

OTHERS = {
    FIELD_TYPE.FLOAT: pa.float32(),
    FIELD_TYPE.DOUBLE: pa.float64(),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us", "UTC"),
    **dict.fromkeys(DAYS, pa.date32()),
    **dict.fromkeys((FIELD_TYPE.TIME, FIELD_TYPE.JSON, FIELD_TYPE.NULL), pa.string()),
}
TEXTS = {FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.BLOB}
TEXTS |= {FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB}
TEXTS |= {FIELD_TYPE.ENUM, FIELD_TYPE.SET}
"""Types of characters or of bytes, depending on the character set."""

BITS = {1: pa.bool_(), 64: decimal(20, 0)}
"""The Arrow types of BIT by the number of bits; for other numbers a signed integer."""

ALL_DIGITS = 31
"""The protocol's scale of a number that the server shows with all its digits."""

FIRST = {
    pa.date32(): pa.scalar(dt.date.min),
    pa.timestamp("us"): pa.scalar(dt.datetime.min, pa.timestamp("us")),
}

IsKind: TypeAlias = Callable[[pa.DataType], bool]

FITS: tuple[tuple[IsKind, tuple[int, ...]], ...] = (
    (types.is_boolean, NUMBERS),
    (types.is_integer, (*NUMBERS, *DECIMALS)),
    (types.is_decimal, (*NUMBERS, *DECIMALS)),
    (types.is_duration, (*NUMBERS, *DECIMALS)),
    (types.is_float64, (*NARROW, FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE)),
    (types.is_float32, (FIELD_TYPE.FLOAT,)),
    (types.is_date, DAYS),
    (types.is_timestamp, MOMENTS),
    (types.is_time, (FIELD_TYPE.TIME,)),
)
"""Types of Spark, and the columns whose values they hold unchanged; any other pair is an error."""

CARRIED: tuple[tuple[IsKind, pa.DataType], ...] = (
    (types.is_timestamp, pa.timestamp("us")),
    (types.is_time, pa.time64("us")),
    (types.is_duration, pa.int64()),
)
"""Types that Arrow parses as another type with the same values."""


@dataclass(frozen=True)
class ResultColumn:
    """A column of a result, as the server describes it before it sends rows."""

    name: str
    code: int  # the protocol's code of its type
    length: int  # the maximum characters or bytes of its text
    scale: int  # digits after the point
    unsigned: bool
    nullable: bool
    binary: bool  # its values are bytes

    @property
    def natural(self) -> pa.DataType:
        """The lossless Arrow type."""
        if self.code == FIELD_TYPE.BIT:
            return BITS.get(self.length, pa.int64())
        if self.code == FIELD_TYPE.TINY and self.length == 1 and not self.unsigned:
            return pa.bool_()
        if self.code in INTEGERS:
            return INTEGERS[self.code][self.unsigned]
        if self.code in DECIMALS:
            digits = self.length - (self.scale > 0) - (not self.unsigned)
            return decimal(digits, self.scale) if digits <= 38 else pa.string()
        if self.code in TEXTS:
            return pa.binary() if self.binary else pa.string()
        return OTHERS.get(self.code, pa.binary())


def described(session: MySqlSession, relation: str, columns: str = "*") -> list[ResultColumn]:
    """The columns of ``SELECT columns FROM relation``, without running the statement."""
    with session.connected() as live:
        return [_described(one) for one in live.prepared(f"SELECT {columns} FROM {relation}")]


def as_logged(column: ResultColumn) -> pa.Field:
    """The type that the binary log has: a TINYINT(1) is a number there."""
    is_tiny = column.code == FIELD_TYPE.TINY
    return pa.field(column.name, (replace(column, length=0) if is_tiny else column).natural)


def logged_schema(session: MySqlSession, table: Sequence[str], names: Sequence[str]) -> pa.Schema:
    """These columns of a table, with the types that the binary log has."""
    columns = ", ".join(map(identifier, names))  # invisible ones, too
    return pa.schema(map(as_logged, described(session, identifier(*table), columns)))


def _described(field: Any) -> ResultColumn:
    return ResultColumn(
        field.name,
        field.type_code,
        field.length,
        field.scale,
        unsigned=bool(field.flags & FLAG.UNSIGNED),
        nullable=not field.flags & FLAG.NOT_NULL,
        binary=field.charsetnr == BINARY,
    )


@dataclass(frozen=True)
class WireForm:
    """The lossless text form of a column on the wire, and its conversion to Arrow."""

    column: str  # SQL that is null where the value is
    sql: str  # an expression for its text in a line of CSV, if it is not null
    carrier: pa.DataType  # the type as which Arrow parses the text
    finish: Callable[[pa.Array], pa.Array]  # converts the parsed column to the final one


def wire_form(column: ResultColumn, kind: pa.DataType) -> WireForm:
    """The wire form for a column as a type; raises `OptionError` if it would change values."""
    name, natural = identifier(column.name), column.natural
    number, is_bytes = _number(name, column), types.is_binary(natural)
    quoted = f"""'"', REPLACE(CONVERT({number} USING utf8mb4), '"', '""'), '"'"""
    if types.is_binary(kind) and (is_bytes or types.is_string(natural)):
        found = name if is_bytes else f"CONVERT({name} USING utf8mb4)"
        return WireForm(name, f"""'"', HEX({found}), '"'""", pa.binary(), text.from_hex)
    if types.is_string(kind) and not is_bytes:
        return WireForm(name, quoted, kind, lambda texts: texts)
    if types.is_nested(kind) and types.is_string(natural):
        return WireForm(name, quoted, pa.string(), lambda texts: from_json.column(texts, kind))
    if not any(accepts(kind) and column.code in codes for accepts, codes in FITS):
        raise OptionError(
            f"Column {column.name!r} can't be read as {type_name(kind)}",
            why=f"it holds {type_name(natural)}, and the read would lose or change values",
            todo="declare a type in the schema that holds them, and cast the column in Spark",
        )
    carrier = next((carrier for accepts, carrier in CARRIED if accepts(kind)), kind)
    return WireForm(name, number, carrier, lambda values: _in_years(values).cast(kind))


def zero_as_null(form: WireForm) -> WireForm:
    """The form of a date or a moment that reads 0000-00-00 as null."""
    return replace(form, column=f"NULLIF({form.column}, 0)")


def _number(name: str, column: ResultColumn) -> str:
    """The SQL for the column as a lossless number or text."""
    if column.code == FIELD_TYPE.BIT:
        return f"({name} + 0)"
    # The server shows six digits of a float, and two of a DOUBLE(10,2); this expression has all.
    shown = column.code == FIELD_TYPE.DOUBLE and column.scale >= ALL_DIGITS
    if column.code in (FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE) and not shown:
        return f"({name} * 1e0)"
    return name


def _in_years(values: pa.Array) -> pa.Array:
    """Reject dates of the year 0, which Spark's DataFrames in Python can't hold."""
    first = FIRST.get(values.type)
    if first and pc.any(pc.less(values, first)).as_py():
        raise ValueError("a year before 1")
    return values
