"""Spark's schema as the Arrow schema in which its rows arrive in Python."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

from sparkonce.errors import OptionError

SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    "void": pa.null(),
}


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a streaming query's rows.

    Raises:
        OptionError: a column has a type that can't be written, or two have the same name.
    """
    names = [field.name for field in schema.fields]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(
                f"Column {name!r} is there twice",
                why="rows are stored by column name",
                todo="rename one of them before the sink",
            )
    return pa.schema([_field(field, field.name) for field in schema.fields])


def _field(field: spark.StructField, path: str) -> pa.Field:
    return pa.field(field.name, _arrow(field.dataType, path), field.nullable)


def _arrow(kind: spark.DataType, path: str) -> pa.DataType:
    if isinstance(kind, spark.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, spark.DayTimeIntervalType):
        return pa.duration("us")
    if isinstance(kind, spark.ArrayType):
        return pa.list_(pa.field("element", _arrow(kind.elementType, path), kind.containsNull))
    if isinstance(kind, spark.MapType):
        key, value = _arrow(kind.keyType, path), _arrow(kind.valueType, path)
        return pa.map_(key, pa.field("value", value, kind.valueContainsNull))
    if isinstance(kind, spark.StructType):
        return pa.struct([_field(field, f"{path}.{field.name}") for field in kind.fields])
    name = kind.typeName().partition("(")[0]
    if name not in SIMPLE:
        raise OptionError(
            f"Column {path!r} has type {kind.simpleString()}, which can't be written",
            why="it has no documented form in a store",
            todo="cast it (for example to string; to_json for a variant), or drop it",
        )
    return SIMPLE[name]
