"""Restores dead letters: their rows as a DataFrame, to correct and write again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from typing import Any, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from sparkonce.errors import OptionError

LETTERS = (
    "id string, at string, sink string, epoch bigint, partition int, target string,"
    " reason string, key string, row string, base64 array<string>"
)
"""The schema of the files that ``sparkonce letters --move`` writes."""

LONGEST = str(2**31 - 1)
"""Most characters of a string in JSON; Spark's default is 20 million."""

Restore: TypeAlias = Callable[[Column], Column]


def rows(
    letters: DataFrame,
    schema: spark.StructType | str,
    row: str = "row",
    base64: str = "base64",
    *,
    lacking: Collection[str] = (),
    without: Collection[str] = (),
) -> DataFrame:
    """The rows of dead letters, as in the query.

    Args:
        letters: as read from the store, or from files of ``sparkonce letters --move``.
        schema: of the query, as a type or as DDL.
        row: the column of `letters` that has the rows.
        base64: the column that names the columns in which strings are base64: an array, or the
            JSON text of one.
        lacking: columns of `schema` that a row may lack; they are then null. A write mode that does
            not store a column omits it from the rows that a server rejects.
        without: columns of the rows that `schema` omits.

    Returns:
        The columns of `letters`, and those of `schema` as fields of a column ``restored``.

    The use of the DataFrame fails if a row is unreadable, because somebody cut or changed it. It
    also fails if the columns of a row, or the fields inside them, have other names than those of
    `schema`.
    """
    kind = _parsed(schema) if isinstance(schema, str) else schema
    readable = _readable_struct(kind)
    named = f.udf(lambda text: _require_names(text, readable, lacking, without), "string")
    encoded = letters[base64]
    if isinstance(letters.schema[base64].dataType, spark.StringType):
        encoded = f.from_json(encoded, "array<string>")
    own = "sparkonce_row", "sparkonce_base64"  # parsed once, not again for each column
    read = f.from_json(named(letters[row]), readable, {"mode": "FAILFAST", "maxStringLen": LONGEST})
    known = letters.select("*", read.alias(own[0]), encoded.alias(own[1]))
    fields = [_field(known[own[0]], known[own[1]], field) for field in kind.fields]
    return known.select(*letters.columns, f.struct(*fields).alias("restored"))


def _require_names(
    row: str | None, kind: spark.StructType, lacking: Collection[str], without: Collection[str]
) -> str | None:
    """The row, if its names match the schema; otherwise from_json would return nulls."""
    try:
        value = json.loads(row or "null")
    except ValueError:  # from_json reports it
        return row
    if isinstance(value, dict):
        absent = {name: None for name in lacking if name in kind.names}
        kept = {name: one for name, one in value.items() if name not in without}
        for problem in _misnamed({**absent, **kept}, kind, ""):
            raise OptionError(
                f"A dead letter {problem}; it begins with {(row or '')[:80]!r}",
                why="its value would be lost or replaced by null",
                todo="use the schema of the query that wrote the row. Name columns that its write"
                " mode does not store in `lacking`, and columns to omit in `without`",
            )
    return row


def _misnamed(value: Any, kind: spark.DataType, path: str) -> Iterator[str]:
    if isinstance(kind, spark.StructType) and isinstance(value, dict):
        yield from _misnamed_fields(value, kind, path)
    elif isinstance(kind, spark.ArrayType) and isinstance(value, list):
        for one in value:
            yield from _misnamed(one, kind.elementType, path)
    elif isinstance(kind, spark.MapType) and isinstance(value, dict):
        for one in value.values():
            yield from _misnamed(one, kind.valueType, path)


def _misnamed_fields(value: dict[str, Any], kind: spark.StructType, path: str) -> Iterator[str]:
    for name in value:
        if name not in kind.names:
            yield f"has {path + name!r}, which the schema lacks"
    for field in kind.fields:
        if field.name not in value:
            yield f"lacks {path + field.name!r}, which the schema has"
        else:
            yield from _misnamed(value[field.name], field.dataType, f"{path}{field.name}.")


def _field(read: Column, encoded: Column, field: spark.StructField) -> Column:
    value = read.getField(field.name)
    restored = _restored(value, field.dataType, armored=False)
    if not _is_ready(field.dataType, armored=True):
        armored = _restored(value, field.dataType, armored=True)
        restored = f.when(f.array_contains(encoded, field.name), armored).otherwise(restored)
    return restored.alias(field.name)


def _parsed(ddl: str) -> spark.StructType:
    kind = spark.StructType.fromDDL(ddl)
    assert isinstance(kind, spark.StructType)  # noqa: S101 (DDL of columns is a struct)
    return kind


def _readable(kind: spark.DataType) -> spark.DataType:
    """The type with which ``from_json`` reads a value: it accepts only maps with string keys."""
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
    return spark.StringType() if _is_seconds(kind) else kind


def _readable_struct(kind: spark.StructType) -> spark.StructType:
    return spark.StructType(
        [spark.StructField(one.name, _readable(one.dataType)) for one in kind.fields]
    )


def _is_ready(kind: spark.DataType, *, armored: bool) -> bool:
    """Whether ``from_json`` already returns the original value."""
    if isinstance(kind, spark.ArrayType):
        return _is_ready(kind.elementType, armored=armored)
    if isinstance(kind, spark.StructType):
        return all(_is_ready(one.dataType, armored=armored) for one in kind.fields)
    if isinstance(kind, spark.MapType):
        is_text = isinstance(kind.keyType, spark.StringType)
        return is_text and not armored and _is_ready(kind.valueType, armored=armored)
    return not (_is_seconds(kind) or (armored and isinstance(kind, spark.StringType)))


def _is_seconds(kind: spark.DataType) -> bool:
    """Whether it is an interval of seconds alone; Spark reads ``-0.5`` of it as ``0.5``."""
    second = spark.DayTimeIntervalType.SECOND
    return isinstance(kind, spark.DayTimeIntervalType) and kind.startField == second


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
    return _seconds(value, kind) if _is_seconds(kind) else f.unbase64(value).cast(kind)


def _seconds(text: Column, kind: spark.DataType) -> Column:
    read = text.cast(kind)
    lost = text.contains("-") & (read > f.lit(timedelta(0)))
    return f.when(lost, -read).otherwise(read)
