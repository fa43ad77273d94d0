"""Pages of hits as Arrow reads them. What it does not take as it is, `documents.py` reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json
from pyarrow import types

from pyspark_elasticsearch.reading import documents
from pyspark_elasticsearch.reading.described import META
from pyspark_elasticsearch.reading.documents import Shape
from sparkonce.values import from_text

DOTTED = re.compile(rb'"[^".]*\.[^"]*":')
"""A member ``"a.b"``, which is the same as ``b`` inside ``a``, and which Arrow passes over."""

DATES = (pa.string(), pa.int64())
"""What Arrow reads a date as: its text, or milliseconds since 1970."""


class Page(NamedTuple):
    """A page.

    Attributes:
        rows: of it.
        hits: how many they are.
        last: the place of the last one, behind which the next page begins.
        point: the point in time, as the cluster wants it named from now on.
    """

    rows: pa.RecordBatch
    hits: int
    last: Sequence[int]
    point: str


class Reader:
    """Reads the pages of one split.

    Args:
        schema: of the rows.
        shape: of the documents.
    """

    def __init__(self, schema: pa.Schema, shape: Shape) -> None:
        self.schema, self.shape = schema, shape
        fields = [one for one in schema if one.name not in META]
        self._plans = [
            _answer(found)
            for dates in (DATES if any(map(_has_moments, schema.types)) else DATES[:1])
            if (found := _carried(pa.struct(fields), dates, shape)) is not None
        ]

    def page(self, body: bytes) -> Page:
        """The rows of an answer.

        Raises:
            ValueUnreadable: a value is none of its type.
        """
        if not DOTTED.search(body):
            for plan in self._plans:
                try:
                    found = self._page(body, plan)
                except (pa.ArrowInvalid, ValueError):
                    continue
                self._plans.remove(plan)  # what one page is, the next ones are likely to be
                self._plans.insert(0, plan)
                return found
        rows, hits, last, point = documents.page(body, self.schema, self.shape)
        return Page(rows, hits, last, point)

    def _page(self, body: bytes, plan: pa.Schema) -> Page:
        table = arrow_json.read_json(
            pa.py_buffer(body),
            arrow_json.ReadOptions(use_threads=False, block_size=len(body) + 1),
            arrow_json.ParseOptions(explicit_schema=plan, unexpected_field_behavior="ignore"),
        )
        (answer,) = table.to_batches()
        hits = answer.column("hits").field("hits").flatten()
        columns = dict(zip((one.name for one in hits.type), hits.flatten(), strict=True))
        if "_source" in columns:
            source = columns["_source"]
            columns.update(zip((one.name for one in source.type), source.flatten(), strict=True))
        made = [finished(columns[one.name], one.type) for one in self.schema]
        rows = pa.RecordBatch.from_arrays(made, schema=self.schema)
        last = columns["sort"][-1].as_py() if len(hits) else []
        return Page(rows, len(hits), last, answer.column("pit_id")[0].as_py())


def _answer(source: pa.DataType) -> pa.Schema:
    """The schema of an answer whose documents have these fields."""
    members = [*META.items(), ("sort", pa.list_(pa.int64()))]
    if source.num_fields:
        members.append(("_source", source))
    hits = pa.struct([("hits", pa.list_(pa.struct(members)))])
    return pa.schema([("pit_id", pa.string()), ("hits", hits)])


def _has_moments(kind: pa.DataType) -> bool:
    if types.is_nested(kind) and not types.is_map(kind):
        return any(_has_moments(kind.field(at).type) for at in range(kind.num_fields))
    return bool(types.is_timestamp(kind))


def _carried(
    kind: pa.DataType, dates: pa.DataType, shape: Shape, at: str = ""
) -> pa.DataType | None:
    """The type that Arrow reads values of a type as; None if it can't, of some value in it."""
    if types.is_map(kind) or at in shape.any_json or at in shape.mixed:
        return None
    if types.is_timestamp(kind):
        return None if dates == DATES[1] and at not in shape.millis else dates
    if types.is_struct(kind):
        inner = [(one.name, _member(one, dates, shape, at)) for one in kind]
        return None if any(found is None for _, found in inner) else pa.struct(inner)
    if types.is_list(kind):
        each = _carried(kind.value_type, dates, shape, at)
        return None if each is None else pa.list_(each)
    texts = types.is_temporal(kind) or types.is_binary(kind)
    if types.is_duration(kind):
        return pa.int64()
    return pa.string() if texts else kind


def _member(field: pa.Field, dates: pa.DataType, shape: Shape, at: str) -> pa.DataType | None:
    if "." in field.name:  # it may lie inside another object as well
        return None
    return _carried(field.type, dates, shape, f"{at}.{field.name}" if at else field.name)


def finished(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of what Arrow read, as its type.

    Raises:
        ValueError: a value is none of the type.
    """
    if types.is_struct(kind):
        inner = [finished(column.field(at), one.type) for at, one in enumerate(kind)]
        return pa.StructArray.from_arrays(inner, fields=[*kind], mask=column.is_null())
    if types.is_list(kind):
        values = finished(column.values, kind.value_type)
        return pa.ListArray.from_arrays(column.offsets, values, kind, mask=column.is_null())
    finish = next((finish for accepts, finish in FINISH if accepts(kind)), None)
    return finish(column, kind) if finish else column


def _finite(column: pa.Array, _: pa.DataType) -> pa.Array:
    if pc.any(pc.is_inf(column)).as_py():  # Arrow makes one of a number that is too large
        raise ValueError("a number is out of range")
    return column


def _moments(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if types.is_string(column.type):
        return from_text.column(column, kind)
    return column.view(pa.timestamp("ms")).cast(pa.timestamp("us")).cast(kind)


FINISH: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...
] = (
    (types.is_floating, _finite),
    (types.is_timestamp, _moments),
    (types.is_duration, lambda column, kind: column.view(pa.duration("us")).cast(kind)),
    (types.is_binary, lambda column, _: from_text.from_base64(column)),
    (types.is_temporal, from_text.column),
)
"""What Arrow read as another type; the first that accepts a type makes it of that."""
