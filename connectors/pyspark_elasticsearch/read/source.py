"""Indices as a batch source: slices of a point in time, and the rows of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_elasticsearch.read import fitness, pages, where
from pyspark_elasticsearch.read.documents import FieldTraits
from pyspark_elasticsearch.read.fields import (
    META,
    IndexFields,
    asked,
    at_once,
    describe,
    kind_of,
    natural,
)
from pyspark_elasticsearch.read.pages import Slice
from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import Cluster
from sparkonce import checks
from sparkonce.options import Options
from sparkonce.reading import Null, Scan

FEW = 10_000  # documents that do not justify another split
LEAST = 4  # splits of indices with fewer shards
MOST = 1024  # slices of a point in time that a cluster allows (`index.max_slices_per_pit`)


def inferred(cluster: Cluster, options: Options) -> pa.Schema:
    """The columns of all fields, or of those that option ``columns`` names; see `natural`."""
    cluster.require_fit(may_hide=True)
    there = describe(cluster, at_once(cluster, options["index"]))
    arrays = options["arrayFields"] or ()
    fitness.require_arrays(arrays, there)
    if not options["columns"]:
        return pa.schema([*natural(there.fields, arrays)])
    held = {name: one for name, one in there.fields.items() if kind_of(one or {}) != "alias"}
    known = pa.schema([(name, pa.null()) for name in (*held, *META)])
    wanted = [checks.column("columns", one, known) for one in options["columns"]]
    fields = {name: one for name, one in held.items() if name in wanted}
    meta = [one for one in META.items() if one[0] in wanted]
    return pa.schema([*meta, *natural(fields, arrays)])


class ElasticsearchSource:
    """See `sparkonce.reading.Source`."""

    def __init__(self, cluster: Cluster, options: Options, scan: Scan) -> None:
        self.cluster, self.options, self.scan = cluster, options, scan

    def splits(self) -> Sequence[Slice]:
        """See `Source.splits`. Splits are slices of one point in time."""
        self.cluster.require_fit(may_hide=True)
        every = at_once(self.cluster, self.options["index"])
        there, index = describe(self.cluster, every), asked(every)
        fitness.require(self.scan.schema, there, self.options["arrayFields"] or ())
        fitness.warn_unknown(self.scan.schema, there)
        traits = fitness.traits(there)
        searches = self._searches(there, traits)
        search, documents, shards = pages.first_accepted(self.cluster, index, *searches)
        many = self.options["numPartitions"] or max(LEAST, shards)
        many = max(1, min(many, documents // FEW + 1, MOST))
        point = reads.open_point(self.cluster, index, self.options["keepAlive"])
        to_null = self.options["onUnreadable"] == "null"
        return [
            Slice(point, number, many, search, traits, there.most, to_null)
            for number in range(many)
        ]

    def read(self, split: Slice) -> Iterator[pa.RecordBatch]:
        """See `Source.read`. It only requests pages: the name may match other indices now."""
        return pages.read(self.cluster, split, self.scan.schema, self.options["keepAlive"])

    def _searches(self, there: IndexFields, traits: FieldTraits) -> Iterator[Mapping[str, Any]]:
        """The searches to try, without the place of a page: with conditions, then without."""
        fields, filters = self._asked(there), self.scan.filters
        if self.options["onUnreadable"] == "null":
            # The index may have a value where the read has a null.
            filters = tuple(one for one in filters if one != Null(one.column))
        columns = [one.column for one in filters if one.column in fields]
        narrowed = [*where.conditions(filters, fields)]
        out = {"terms": {"_index": [*there.left_out]}}
        for conditions in (narrowed, []) if narrowed else ([],):
            query = reads.all_of(self.options["query"], *conditions)
            query["bool"]["must_not"] = [out]
            asked_for = columns if conditions else ()
            yield {
                "query": query,
                **fitness.selection(self.scan.schema, there, traits, asked_for),
            }

    def _asked(self, there: IndexFields) -> Mapping[str, Any]:
        """Fields with the same mapping in all indices, read as their natural type.

        Where the cluster rebuilds documents, a number in a keyword may differ from its text in the
        index.
        """
        same = {one.name: there.same(one.name) for one in self.scan.schema}
        if not self.cluster.dialect.shows_ignored:
            same = {n: one for n, one in same.items() if one and "ignore_above" not in one}
        return {
            name: mapping
            for name, mapping in same.items()
            if mapping
            and (kind_of(mapping) != "keyword" or not there.rebuilds_numbers)
            and self.scan.schema.field(name).type == dict(natural({name: mapping}, ())).get(name)
        }
