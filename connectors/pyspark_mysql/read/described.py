"""The columns of a table or a query, as the server describes them before it sends rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pymysql.constants import FIELD_TYPE, FLAG

from pyspark_mysql.server.client import Session
from sparkonce.values.spark_types import decimal

BINARY = 63
"""The character set of bytes."""

INTEGERS: dict[int, tuple[pa.DataType, pa.DataType]] = {
    FIELD_TYPE.TINY: (pa.int8(), pa.int16()),
    FIELD_TYPE.SHORT: (pa.int16(), pa.int32()),
    FIELD_TYPE.INT24: (pa.int32(), pa.int32()),
    FIELD_TYPE.LONG: (pa.int32(), pa.int64()),
    FIELD_TYPE.LONGLONG: (pa.int64(), decimal(20, 0)),
    FIELD_TYPE.YEAR: (pa.int32(), pa.int32()),
}
"""What holds all values of a type, signed and unsigned."""

WHOLE = (*(code for code in INTEGERS if code != FIELD_TYPE.YEAR),)
"""Whole numbers whose order, arithmetic and literals are Spark's; those of YEAR and BIT are not."""

DECIMALS = (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL)
DAYS = (FIELD_TYPE.DATE, FIELD_TYPE.NEWDATE)
MOMENTS = (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP)

OTHERS = {
    FIELD_TYPE.FLOAT: pa.float32(),
    FIELD_TYPE.DOUBLE: pa.float64(),
    FIELD_TYPE.DATE: pa.date32(),
    FIELD_TYPE.NEWDATE: pa.date32(),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us", "UTC"),
    FIELD_TYPE.TIME: pa.string(),
    FIELD_TYPE.JSON: pa.string(),
    FIELD_TYPE.NULL: pa.string(),
}
TEXTS = {
    FIELD_TYPE.VARCHAR,
    FIELD_TYPE.VAR_STRING,
    FIELD_TYPE.STRING,
    FIELD_TYPE.ENUM,
    FIELD_TYPE.SET,
    FIELD_TYPE.TINY_BLOB,
    FIELD_TYPE.MEDIUM_BLOB,
    FIELD_TYPE.LONG_BLOB,
    FIELD_TYPE.BLOB,
}
"""Of characters, or of bytes: the character set tells."""


BITS = {1: pa.bool_(), 64: decimal(20, 0)}
"""What holds numbers of so many bits; others are signed ones."""


@dataclass(frozen=True)
class Described:
    """A column.

    Attributes:
        code: of its type, as the protocol has it.
        length: most characters or bytes of its text.
        scale: digits behind the point.
        binary: its values are bytes.
    """

    name: str
    code: int
    length: int
    scale: int
    unsigned: bool
    nullable: bool
    binary: bool

    @property
    def natural(self) -> pa.DataType:
        """The type that loses nothing of it."""
        if self.code == FIELD_TYPE.BIT:
            return BITS.get(self.length, pa.int64())
        if self.code == FIELD_TYPE.TINY and self.length == 1 and not self.unsigned:
            return pa.bool_()
        if self.code in INTEGERS:
            return INTEGERS[self.code][self.unsigned]
        if self.code in (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL):
            digits = self.length - (self.scale > 0) - (not self.unsigned)
            return decimal(digits, self.scale) if digits <= 38 else pa.string()
        if self.code in TEXTS:
            return pa.binary() if self.binary else pa.string()
        return OTHERS.get(self.code, pa.binary())


def described(session: Session, relation: str, columns: str = "*") -> list[Described]:
    """The columns of what stands behind FROM, without a run of the statement.

    Args:
        session: asks.
        relation: that.
        columns: what stands behind SELECT.

    Raises:
        pymysql.MySQLError: the server does not know it.
    """
    with session.connected() as live:
        return [_described(one) for one in live.prepared(f"SELECT {columns} FROM {relation}")]


def _described(field: Any) -> Described:
    return Described(
        field.name,
        field.type_code,
        field.length,
        field.scale,
        unsigned=bool(field.flags & FLAG.UNSIGNED),
        nullable=not field.flags & FLAG.NOT_NULL,
        binary=field.charsetnr == BINARY,
    )
