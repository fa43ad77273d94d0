"""The names of Spark's types for Arrow's, as a user knows them: ``bigint``, ``array<string>``.

Arrow has no word for some of Spark's types: a field of one has Spark's name in its metadata.
"""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import types

SPARK = b"spark"
"""The key of the metadata that has a type's name in Spark, where Arrow's type does not tell it."""

NAMES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    "void": pa.null(),
}
"""Types by their names in Spark."""

INTERVAL = "interval day to second"

SIMPLE = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "tinyint"),
    (types.is_int16, "smallint"),
    (types.is_int32, "int"),
    (types.is_int64, "bigint"),
    (types.is_float32, "float"),
    (types.is_float64, "double"),
    (types.is_string, "string"),
    (types.is_large_string, "string"),
    (types.is_binary, "binary"),
    (types.is_large_binary, "binary"),
    (types.is_date32, "date"),
    (types.is_null, "void"),
)
"""The types whose name is one word, whatever a field says of itself."""
_SHOWN = (*SIMPLE, (types.is_time, "time(9)"), (types.is_duration, INTERVAL))


def spark_type(field: pa.Field) -> str:
    """The name of a field's type in Spark."""
    told = (field.metadata or {}).get(SPARK)
    if told:
        return str(told.decode())
    kind = field.type
    if types.is_nested(kind):
        return _nested(kind)
    if types.is_decimal128(kind) and kind.scale >= 0:
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp" if kind.tz else "timestamp_ntz"
    return next((name for accepts, name in _SHOWN if accepts(kind)), str(kind))


def _nested(kind: pa.DataType) -> str:
    if types.is_map(kind):
        return f"map<{spark_type(kind.key_field)},{spark_type(kind.item_field)}>"
    if types.is_struct(kind):
        members = [f"{quoted(child.name)}:{spark_type(child)}" for child in kind]
        return f"struct<{','.join(members)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{spark_type(kind.value_field)}>"
    return str(kind)


def type_name(kind: pa.DataType) -> str:
    """The name of a type that no field says more of; Arrow's own where Spark has no such type."""
    return spark_type(pa.field("", kind))


def typed(name: str, kind: pa.DataType, told: str = "", *, nullable: bool = True) -> pa.Field:
    """A field, with what Spark says about its type where Arrow has no word for that."""
    return pa.field(name, kind, nullable, metadata={SPARK: told.encode()} if told else None)


def decimal(precision: int = 10, scale: int = 0) -> pa.DataType:
    """The type of decimals, of which Spark has fewer than Arrow.

    Raises:
        ValueError: there is none of that precision and scale.
    """
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise ValueError(
            f"a decimal of 1 to 38 digits, of which none to all are behind the point, and not"
            f" decimal({precision},{scale})"
        )
    return pa.decimal128(precision, scale)


def quoted(name: str) -> str:
    """A name as DDL has it."""
    return name if re.fullmatch(r"[A-Za-z]\w*", name) else "`" + name.replace("`", "``") + "`"
