"""What tests of `spark.read.format("elasticsearch")` share."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.reading.source import ElasticsearchSource
from sparkonce import options
from sparkonce.filters import Filter
from sparkonce.reading import Scan


def source(
    url: str,
    index: str,
    schema: pa.Schema | None = None,
    filters: Iterable[Filter] = (),
    **raw: str,
) -> ElasticsearchSource:
    parsed = options.parse(ElasticsearchConnector.reads, {"url": url, "index": index, **raw})
    schema = schema or ElasticsearchConnector().infer(parsed)
    return ElasticsearchConnector().source(parsed, Scan(schema, tuple(filters)))
