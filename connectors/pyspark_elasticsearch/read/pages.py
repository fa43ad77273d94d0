"""Reads the pages of a point in time of indices, slice by slice.

See https://www.elastic.co/guide/en/elasticsearch/reference/current/point-in-time-api.html and
https://www.elastic.co/guide/en/elasticsearch/reference/current/paginate-search-results.html
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyspark_elasticsearch.read import documents
from pyspark_elasticsearch.read.documents import FieldTraits, Page, ReadAsNull
from pyspark_elasticsearch.read.fields import META
from pyspark_elasticsearch.server.client import RAW_PAGE, Cluster, path
from pyspark_elasticsearch.server.reads import require_in_time, search
from sparkonce.errors import SnapshotBroken, StoreRefused
from sparkonce.values import from_json

DOTTED = re.compile(rb'\.[^".\\]*(?:\\.[^".\\]*)*"\s*:')
"""A member ``"a.b"``, which is the same as ``b`` inside ``a``, and which Arrow ignores.

The pattern matches from each dot to the next one, because texts may have many.
"""

ESCAPED = b"\\u002"  # the beginning of an escaped dot
DATES = (pa.string(), pa.int64())  # Arrow reads dates as texts or milliseconds since 1970


class PageReader:
    """Reads the pages of one split."""

    def __init__(
        self, schema: pa.Schema, traits: FieldTraits, nulls: ReadAsNull | None = None
    ) -> None:
        self.schema, self.traits, self.nulls = schema, traits, nulls
        self._plans = [*_plans(schema, traits)]

    def page(self, body: bytes) -> Page:
        """The rows of an answer; see `documents.page`."""
        if ESCAPED not in body and not DOTTED.search(body):
            for plan in self._plans:
                try:
                    found = self._page(body, plan)
                except (pa.ArrowInvalid, ValueError):
                    continue
                self._plans.remove(plan)  # the next pages are likely to fit the same plan
                self._plans.insert(0, plan)
                return found
        return documents.page(body, self.schema, self.traits, self.nulls)

    def _page(self, body: bytes, plan: pa.Schema) -> Page:
        line = body.replace(b"\n", b" ")  # a document may have line breaks between its members
        (answer,) = from_json.read(line, plan).to_batches()
        found = answer.column("hits").field("hits").flatten()
        hits = _members(found)
        if "_source" in hits and hits["_source"].null_count:
            raise ValueError("a document is missing")
        source = _members(hits["_source"]) if "_source" in hits else {}
        read = [(hits if one.name in META else source)[one.name] for one in self.schema]
        made = [from_json.finished(*pair) for pair in zip(read, self.schema.types, strict=True)]
        rows = pa.RecordBatch.from_arrays(made, schema=self.schema)
        places = hits["sort"].flatten()
        if len(places) != len(found):
            raise ValueError("a hit has no sort value, or several")
        point, timed_out = (answer.column(one)[0].as_py() for one in ("pit_id", "timed_out"))
        return Page(rows, places, point, timed_out)


def _members(objects: pa.StructArray) -> dict[str, pa.Array]:
    """The members of objects, by name: of a hit or of a document."""
    return dict(zip((one.name for one in objects.type), objects.flatten(), strict=True))


def _plans(schema: pa.Schema, traits: FieldTraits) -> Iterator[pa.Schema]:
    """The schemas by which Arrow may read an answer; none if it would miss values."""
    source = pa.struct([one for one in schema if one.name not in META])
    inside = [*_inside(source)]
    if any("." in one.name for one in inside):  # the value may also be inside another object
        return
    moments = any(types.is_timestamp(one.type) for one in inside)
    for dates in DATES if moments else DATES[:1]:
        found = from_json.carrier(source, _leaf(dates, traits))
        if found is not None:
            yield _answer(found)


def _answer(source: pa.DataType) -> pa.Schema:
    members = [*META.items(), ("sort", pa.list_(pa.int64()))]
    if source.num_fields:
        members.append(("_source", source))
    hits = pa.struct([("hits", pa.list_(pa.struct(members)))])
    return pa.schema([("pit_id", pa.string()), ("timed_out", pa.bool_()), ("hits", hits)])


def _inside(kind: pa.DataType) -> Iterator[pa.Field]:
    for at in range(kind.num_fields if types.is_struct(kind) or types.is_list(kind) else 0):
        yield kind.field(at)
        yield from _inside(kind.field(at).type)


def _leaf(dates: pa.DataType, traits: FieldTraits) -> from_json.Leaf:
    """The types that Arrow reads values as, with this type for dates."""

    def leaf(at: str, kind: pa.DataType) -> pa.DataType | None:
        if not traits.is_exact(kind, at) or (types.is_string(kind) and at in traits.any_json):
            return None
        if types.is_timestamp(kind):
            return None if types.is_integer(dates) and at not in traits.millis else dates
        return from_json.plain(at, kind)

    return leaf


log = logging.getLogger("sparkonce")

READING, COUNTING = "reading documents", "counting documents"
BLOCK = 4 * 1024 * 1024  # target size of a page in bytes, estimated from the page before
FIRST, FASTER = 50, 4  # documents of the first page; largest growth from page to page


@dataclass(frozen=True)
class Slice:
    """A split."""

    point: str  # in time, as the cluster names it
    number: int  # of `many` slices
    many: int
    body: Mapping[str, Any]  # of the search: its query, and the parts of documents to read
    traits: FieldTraits  # of the documents when the point was opened
    most: int  # documents of a page
    to_null: bool = False  # whether a value that does not fit its type is null


def first_accepted(
    cluster: Cluster, index: str, query: Mapping[str, Any], *wider: Mapping[str, Any]
) -> tuple[Mapping[str, Any], int, int]:
    """The first search that the cluster accepts, with its counts of documents and shards.

    The cluster may reject one (`search.allow_expensive_queries`, `index.max_terms_count`).
    """
    body = {"query": query["query"], "size": 0, "track_total_hits": True}
    allow = (400,) if wider else ()
    answer = search(cluster, COUNTING, path(index, "_search"), body, allow)
    if answer.status in allow:
        log.warning("The cluster rejects the conditions of a query, so the read transfers all rows")
        return first_accepted(cluster, index, *wider)
    return query, int(answer.body["hits"]["total"]["value"]), int(answer.body["_shards"]["total"])


def read(cluster: Cluster, part: Slice, schema: pa.Schema, keep: str) -> Iterator[pa.RecordBatch]:
    """The rows of a slice; `SnapshotBroken` if its point in time no longer exists."""
    nulls = ReadAsNull() if part.to_null else None
    yield from _read(cluster, part, PageReader(schema, part.traits, nulls), keep)
    if nulls and nulls.count:
        log.warning(
            "%d values were read as null. Why: they do not fit the types of their columns; the"
            " first is %s. What to do: correct the documents, or read these fields as strings",
            *(nulls.count, nulls.first),
        )


def _read(cluster: Cluster, part: Slice, reader: PageReader, keep: str) -> Iterator[pa.RecordBatch]:
    tie = cluster.dialect.tie
    asked = {**part.body, "sort": [{tie: "asc"}], "track_total_hits": False}
    if part.many > 1:
        asked["slice"] = {"id": part.number, "max": part.many}
    point, size, least = part.point, min(FIRST, part.most), 1
    while True:
        asked |= {"pit": {"id": point, "keep_alive": keep}, "size": size}
        answer = search(cluster, READING, "/_search", asked, (404,))
        if answer.status == 404:
            raise SnapshotBroken(
                "The point in time of this read no longer exists",
                why=f"the cluster keeps it for {keep} (option keepAlive) after its last page. When"
                " a node stops, or somebody deletes an index, it is lost immediately",
                todo="read again, beginning with load(), because Spark plans a DataFrame only once."
                " Raise keepAlive if the plan waits, or has more splits than Spark has cores",
            )
        body = answer.body[RAW_PAGE]
        page = reader.page(body)
        require_in_time(cluster, page.timed_out, READING)
        hits, point = len(page.places), page.point
        is_last, whole = hits < size, hits
        if cluster.dialect.has_ties and not is_last:  # their equals may be on the next page
            whole -= pc.sum(pc.equal(page.places, page.places[-1])).as_py()
        if whole:
            yield page.rows.slice(0, whole)
            asked["search_after"] = [page.places[whole - 1].as_py()]
        if is_last:
            return
        if not whole:
            least = _larger(size, part.most)
        size = max(least, min(size * BLOCK // len(body), size * FASTER, part.most))


def _larger(size: int, most: int) -> int:
    """The size of a page that may have documents of two sort values."""
    if size == most:
        raise StoreRefused(
            f"More than {most:,} documents of the point in time have the same sort value",
            why="one of each shard may have it, and index.max_result_window limits a page",
            todo="read fewer indices with one query, or raise index.max_result_window",
        )
    return min(2 * size, most)
