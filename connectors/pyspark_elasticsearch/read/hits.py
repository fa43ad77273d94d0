"""Pages of hits as Arrow reads them. What it does not take as it is, `documents.py` reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.read import documents
from pyspark_elasticsearch.read.described import META
from pyspark_elasticsearch.read.documents import Page, Shape
from sparkonce.values import from_json

DOTTED = re.compile(rb'\.[^".\\]*(?:\\.[^".\\]*)*"\s*:')
"""A member ``"a.b"``, which is the same as ``b`` inside ``a``, and which Arrow passes over.

It looks from each dot to the next one: texts may have many.
"""

ESCAPED = b"\\u002"
"""What a dot begins with that is written as an escape."""

DATES = (pa.string(), pa.int64())
"""What Arrow reads a date as: its text, or milliseconds since 1970."""


class Reader:
    """Reads the pages of one split.

    Args:
        schema: of the rows.
        shape: of the documents.
    """

    def __init__(self, schema: pa.Schema, shape: Shape) -> None:
        self.schema, self.shape = schema, shape
        self._plans = [*_plans(schema, shape)]

    def page(self, body: bytes) -> Page:
        """The rows of an answer.

        Raises:
            ValueUnreadable: a value is none of its type.
        """
        if ESCAPED not in body and not DOTTED.search(body):
            for plan in self._plans:
                try:
                    found = self._page(body, plan)
                except (pa.ArrowInvalid, ValueError):
                    continue
                self._plans.remove(plan)  # what one page is, the next ones are likely to be
                self._plans.insert(0, plan)
                return found
        return documents.page(body, self.schema, self.shape)

    def _page(self, body: bytes, plan: pa.Schema) -> Page:
        line = body.replace(b"\n", b" ")  # a document may have some, between its members
        (answer,) = from_json.read(line, plan).to_batches()
        hits = _members(answer.column("hits").field("hits").flatten())
        if "_source" in hits and hits["_source"].null_count:
            raise ValueError("a document is not there")
        source = _members(hits["_source"]) if "_source" in hits else {}
        found = [(hits if one.name in META else source)[one.name] for one in self.schema]
        made = [from_json.finished(*pair) for pair in zip(found, self.schema.types, strict=True)]
        rows = pa.RecordBatch.from_arrays(made, schema=self.schema)
        last = hits["sort"][-1].as_py() if len(hits["sort"]) else []
        point, timed_out = (answer.column(one)[0].as_py() for one in ("pit_id", "timed_out"))
        return Page(rows, len(hits["sort"]), last, point, timed_out)


def _members(objects: pa.StructArray) -> dict[str, pa.Array]:
    """What is inside objects, by name: of a hit, or of a document, never of both."""
    return dict(zip((one.name for one in objects.type), objects.flatten(), strict=True))


def _plans(schema: pa.Schema, shape: Shape) -> Iterator[pa.Schema]:
    """What Arrow may read an answer as: nothing, where it would miss values."""
    source = pa.struct([one for one in schema if one.name not in META])
    inside = [*_inside(source)]
    if any("." in one.name for one in inside):  # it may lie inside another object as well
        return
    moments = any(types.is_timestamp(one.type) for one in inside)
    for dates in DATES if moments else DATES[:1]:
        found = from_json.carrier(source, _leaf(dates, shape))
        if found is not None:
            yield _answer(found)


def _answer(source: pa.DataType) -> pa.Schema:
    """The schema of an answer whose documents have these fields."""
    members = [*META.items(), ("sort", pa.list_(pa.int64()))]
    if source.num_fields:
        members.append(("_source", source))
    hits = pa.struct([("hits", pa.list_(pa.struct(members)))])
    return pa.schema([("pit_id", pa.string()), ("timed_out", pa.bool_()), ("hits", hits)])


def _inside(kind: pa.DataType) -> Iterator[pa.Field]:
    """The fields inside a type, and inside those."""
    for at in range(kind.num_fields if types.is_struct(kind) or types.is_list(kind) else 0):
        yield kind.field(at)
        yield from _inside(kind.field(at).type)


def _leaf(dates: pa.DataType, shape: Shape) -> from_json.Leaf:
    """What Arrow reads values as, where dates are of this type."""

    def leaf(at: str, kind: pa.DataType) -> pa.DataType | None:
        if not shape.is_exact(kind, at) or (types.is_string(kind) and at in shape.any_json):
            return None
        if types.is_timestamp(kind):
            return None if types.is_integer(dates) and at not in shape.millis else dates
        return from_json.plain(at, kind)

    return leaf
