"""Lines of CSV as Arrow batches of the types that were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyarrow import csv

from pyspark_mysql.read.forms import Form
from sparkonce.errors import ValueUnreadable
from sparkonce.values.spark_types import spark_type

WHERE = re.compile(r"CSV column #(\d+)")
"""How Arrow names the column of a value, from 0."""


def line(forms: Sequence[Form], columns: Sequence[str]) -> str:
    """An expression for the line of a row.

    A null is nothing, and a text is in quotes. Whatever is too long for the server is null, and
    makes the line null: so nothing else may be.
    """
    texts = [
        f"IF({column} IS NULL, '', CONCAT({form.sql}))"
        for form, column in zip(forms, columns, strict=True)
    ]
    return "CONCAT(" + ", ',', ".join(texts) + ")"


def batches(
    blocks: Iterable[bytes], forms: Sequence[Form], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of blocks of lines.

    Raises:
        ValueUnreadable: a value is none of its type.
    """
    carriers = {str(at): form.carrier for at, form in enumerate(forms)}
    how = (
        csv.ReadOptions(use_threads=False, column_names=[*carriers], block_size=2**30),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=carriers,
            null_values=[""],
            true_values=["1"],
            false_values=["0"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    for block in blocks:
        yield from _batches(block, how, forms, schema)


def _batches(
    block: bytes, how: tuple[object, ...], forms: Sequence[Form], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    try:
        table = csv.read_csv(pa.py_buffer(block), *how)
    except pa.ArrowInvalid as error:
        found = WHERE.search(str(error))
        raise _unreadable(error, schema.field(int(found[1]) if found else 0)) from None
    for batch in table.to_batches():
        columns = [
            _finished(form, column, field)
            for form, column, field in zip(forms, batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=schema.names)


def _finished(form: Form, column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return form.finish(column)
    except (pa.ArrowInvalid, ValueError) as error:
        raise _unreadable(error, field) from None


def _unreadable(error: Exception, field: pa.Field) -> ValueUnreadable:
    return ValueUnreadable(
        f"A value of column {field.name!r} can't be read as {spark_type(field)}: {error}",
        why="the store holds what is none of that type, such as a zero date, a number out of range,"
        " or a TINYINT(1) that is neither 0 nor 1",
        todo="read that column as a string or a larger type by .schema(...), or mend the value",
    )
