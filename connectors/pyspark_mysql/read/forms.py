"""How a column comes over the wire, and becomes Arrow: as text that loses nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pymysql.constants import FIELD_TYPE

from pyspark_mysql.read.described import DAYS, DECIMALS, INTEGERS, MOMENTS, Described
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import OptionError
from sparkonce.values import from_json, text
from sparkonce.values.spark_types import type_name

NUMBERS = (*INTEGERS, FIELD_TYPE.BIT)
NARROW = (FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.YEAR)
"""Whose values a double holds exactly."""

ALL_DIGITS = 31
"""How the protocol says that a number is shown with as many digits as it has."""


FIRST = {
    pa.date32(): pa.scalar(dt.date.min),
    pa.timestamp("us"): pa.scalar(dt.datetime.min, pa.timestamp("us")),
}


@dataclass(frozen=True)
class Form:
    """How one column is read.

    Attributes:
        sql: an expression for its text in a line of CSV, where it is not null.
        carrier: the type that Arrow reads the text as.
        finish: makes the column of that.
    """

    sql: str
    carrier: pa.DataType
    finish: Callable[[pa.Array], pa.Array]


def form(column: Described, kind: pa.DataType) -> Form:
    """How a column is read as a type.

    Raises:
        OptionError: some value of the column would change, or has no place in that type.
    """
    if types.is_binary(kind) and (_is_bytes(column) or types.is_string(column.natural)):
        digits = f"""'"', HEX({_bytes(column)}), '"'"""
        return Form(digits, pa.binary(), text.decoded)
    if types.is_string(kind) and not _is_bytes(column):
        return Form(_quoted(_plain(column)), kind, _as_it_is)
    if types.is_nested(kind) and types.is_string(column.natural):
        return Form(
            _quoted(_plain(column)), pa.string(), lambda texts: from_json.column(texts, kind)
        )
    if not any(accepts(kind) and column.code in codes for accepts, codes in FITS):
        raise _misfit(column, kind)
    carrier = next((carrier for accepts, carrier in CARRIED if accepts(kind)), kind)
    return Form(_plain(column), carrier, lambda values: _in_years(values).cast(kind))


CARRIED: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (types.is_timestamp, pa.timestamp("us")),
    (types.is_time, pa.time64("us")),
    (types.is_duration, pa.int64()),
)
"""Types that Arrow reads as another one, which has the same values."""

FITS: tuple[tuple[Callable[[pa.DataType], bool], tuple[int, ...]], ...] = (
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
"""Types of Spark, and the columns of which they change no value: what does not fit is an error."""


def _plain(column: Described) -> str:
    """The column as a number or text without loss."""
    name = identifier(column.name)
    if column.code == FIELD_TYPE.BIT:
        return f"({name} + 0)"
    # The server shows six digits of a float, and of a sum of DOUBLE(10,2) two: here all.
    shown = column.code == FIELD_TYPE.DOUBLE and column.scale >= ALL_DIGITS
    if column.code in (FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE) and not shown:
        return f"({name} * 1e0)"
    return name


def _quoted(text: str) -> str:
    return f"""'"', REPLACE(CONVERT({text} USING utf8mb4), '"', '""'), '"'"""


def _bytes(column: Described) -> str:
    name = identifier(column.name)
    return name if _is_bytes(column) else f"CONVERT({name} USING utf8mb4)"


def _in_years(values: pa.Array) -> pa.Array:
    """The same, without dates of the year 0, which Spark's DataFrames in Python can't have."""
    first = FIRST.get(values.type)
    if first and pc.any(pc.less(values, first)).as_py():
        raise ValueError("a year before 1")
    return values


def _is_bytes(column: Described) -> bool:
    return bool(types.is_binary(column.natural))


def _as_it_is(values: pa.Array) -> pa.Array:
    return values


def _misfit(column: Described, kind: pa.DataType) -> OptionError:
    return OptionError(
        f"Column {column.name!r} can't be read as {type_name(kind)}",
        why=f"it holds {type_name(column.natural)}, of which values would be lost or changed",
        todo="give it a type in the schema that holds them, and cast it in Spark",
    )
