"""The way back of dead letters: their rows as a DataFrame, to be mended and written again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

Restore: TypeAlias = Callable[[Column], Column]


def rows(
    letters: DataFrame, schema: spark.StructType | str, row: str = "row", base64: str = "base64"
) -> DataFrame:
    """The rows of dead letters, as the query had them.

    Args:
        letters: as read from the store.
        schema: of the query, as a type or as DDL.
        row: the column of `letters` that has the rows.
        base64: the column that names the columns in which strings are base64: an array, or the
            JSON text of one.

    Returns:
        The columns of `letters`, and those of `schema` as fields of a column ``restored``.

    A row that can't be read, as it was cut or changed by hand, is an error when the DataFrame is
    used.
    """
    kind = _parsed(schema) if isinstance(schema, str) else schema
    encoded = letters[base64]
    if isinstance(letters.schema[base64].dataType, spark.StringType):
        encoded = f.from_json(encoded, "array<string>")
    own = "sparkonce_row", "sparkonce_base64"  # read once, and not for each column anew
    read = f.from_json(letters[row], _readable_struct(kind), {"mode": "FAILFAST"})
    known = letters.select("*", read.alias(own[0]), encoded.alias(own[1]))
    fields = [_field(known[own[0]], known[own[1]], field) for field in kind.fields]
    return known.select(*letters.columns, f.struct(*fields).alias("restored"))


def _field(read: Column, encoded: Column, field: spark.StructField) -> Column:
    value = read.getField(field.name)
    restored = _restored(value, field.dataType, armored=False)
    if not _is_ready(field.dataType, armored=True):
        armored = _restored(value, field.dataType, armored=True)
        restored = f.when(f.array_contains(encoded, field.name), armored).otherwise(restored)
    return restored.alias(field.name)


def _parsed(ddl: str) -> spark.StructType:
    kind = spark.StructType.fromDDL(ddl)
    assert isinstance(kind, spark.StructType)  # noqa: S101 (as the DDL of columns is)
    return kind


def _readable(kind: spark.DataType) -> spark.DataType:
    """The type as which ``from_json`` reads a value: it takes no maps of keys but strings."""
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_readable(kind.elementType))
    if isinstance(kind, spark.StructType):
        return _readable_struct(kind)
    if isinstance(kind, spark.MapType):
        key, value = _readable(kind.keyType), _readable(kind.valueType)
        if isinstance(kind.keyType, spark.StringType):
            return spark.MapType(key, value)
        entry = [spark.StructField("key", key), spark.StructField("value", value)]
        return spark.ArrayType(spark.StructType(entry))
    return kind


def _readable_struct(kind: spark.StructType) -> spark.StructType:
    return spark.StructType(
        [spark.StructField(one.name, _readable(one.dataType)) for one in kind.fields]
    )


def _is_ready(kind: spark.DataType, *, armored: bool) -> bool:
    """Whether a value is as it was once ``from_json`` has read it."""
    if isinstance(kind, spark.ArrayType):
        return _is_ready(kind.elementType, armored=armored)
    if isinstance(kind, spark.StructType):
        return all(_is_ready(one.dataType, armored=armored) for one in kind.fields)
    if isinstance(kind, spark.MapType):
        is_text = isinstance(kind.keyType, spark.StringType)
        return is_text and not armored and _is_ready(kind.valueType, armored=armored)
    return not (armored and isinstance(kind, spark.StringType))


def _restored(value: Column, kind: spark.DataType, *, armored: bool) -> Column:
    if _is_ready(kind, armored=armored):
        return value

    def inner(of: spark.DataType) -> Restore:
        return lambda one: _restored(one, of, armored=armored)

    if isinstance(kind, spark.ArrayType):
        return f.transform(value, inner(kind.elementType))
    if isinstance(kind, spark.StructType):
        fields = [
            inner(one.dataType)(value.getField(one.name)).alias(one.name) for one in kind.fields
        ]
        return f.when(value.isNotNull(), f.struct(*fields))
    if isinstance(kind, spark.MapType):
        key, item = inner(kind.keyType), inner(kind.valueType)
        if isinstance(kind.keyType, spark.StringType):
            changed = f.transform_values(value, lambda _, one: item(one))
            return f.transform_keys(changed, lambda one, _: key(one)) if armored else changed
        entries = f.transform(
            value, lambda one: f.struct(key(one["key"]).alias("key"), item(one["value"]))
        )
        return f.map_from_entries(entries)
    return f.unbase64(value).cast(kind)
