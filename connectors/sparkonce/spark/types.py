"""Spark's schema as the Arrow schema in which its rows arrive in Python."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_schema

from sparkonce.errors import OptionError
from sparkonce.values.spark_types import INTERVAL, NAMES, decimal, require_names, typed

BINARY = "UTF8_BINARY"
"""The collation that treats texts as equal only if all their bytes are equal."""


def arrow_schema(schema: spark.StructType | pa.Schema) -> pa.Schema:
    """The Arrow schema of the written rows, with Spark's own types as metadata.

    Spark passes its own schema; Sail passes Arrow's.

    Raises:
        OptionError: a column has a name or a type that can't be written, or two have the same name.
    """
    if isinstance(schema, pa.Schema):
        schema = from_arrow_schema(schema)
    arrow = pa.schema([_named(field, field.name) for field in schema.fields])
    require_names(arrow)
    return arrow


def _named(field: spark.StructField, path: str) -> pa.Field:
    return _field(field.name, field.dataType, path, nullable=field.nullable)


def _field(name: str, kind: spark.DataType, path: str, *, nullable: bool = True) -> pa.Field:
    spark_name = ""
    if isinstance(kind, spark.DayTimeIntervalType) and kind.simpleString() != INTERVAL:
        spark_name = kind.simpleString()
    if isinstance(kind, spark.StringType) and kind.collation != BINARY:
        spark_name = f"string collate {kind.collation}"
    # Spark declares the elements of an empty array as not null; Arrow has no such type.
    nullable = nullable or isinstance(kind, spark.NullType)
    return typed(name, _arrow(kind, path), spark_name, nullable=nullable)


def _arrow(kind: spark.DataType, path: str) -> pa.DataType:
    if isinstance(kind, spark.DecimalType):
        return _decimal(kind, path)
    if isinstance(kind, spark.DayTimeIntervalType):
        return pa.duration("us")
    if isinstance(kind, spark.ArrayType):
        return pa.list_(_field("element", kind.elementType, path, nullable=kind.containsNull))
    # A map with keys of type void, as from map(), is rejected below, by its name.
    if isinstance(kind, spark.MapType) and not isinstance(kind.keyType, spark.NullType):
        key = _field("key", kind.keyType, path, nullable=False)
        return pa.map_(key, _field("value", kind.valueType, path, nullable=kind.valueContainsNull))
    if isinstance(kind, spark.StructType):
        return pa.struct([_named(field, f"{path}.{field.name}") for field in kind.fields])
    name = "string" if isinstance(kind, spark.StringType) else kind.typeName().partition("(")[0]
    if name not in NAMES:
        todo = "cast it (for example to string; to_json for a variant), or drop it"
        raise _unwritable(kind, path, "it has no documented form in a store", todo)
    return NAMES[name]


def _decimal(kind: spark.DecimalType, path: str) -> pa.DataType:
    try:
        return decimal(kind.precision, kind.scale)
    except ValueError as error:
        raise _unwritable(kind, path, f"it must be {error}", "cast it") from None


def _unwritable(kind: spark.DataType, path: str, why: str, todo: str) -> OptionError:
    return OptionError(
        f"Column {path!r} has type {kind.simpleString()}, which can't be written", why, todo
    )
