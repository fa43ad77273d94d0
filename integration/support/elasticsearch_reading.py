"""What tests of `spark.read.format("elasticsearch")` share."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
from elasticsearch import Elasticsearch

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.read.source import ElasticsearchSource
from sparkonce import options
from sparkonce.reading import Filter, Scan

LOOP = "int n = 0; for (int i = 0; i < 100000; i++) { n += i % 7 } return n > 0"
MANY_SLOW = 12_000
"""Documents of which it takes a second or more; the cluster looks up after some thousands."""

SLOW = json.dumps({"script": {"script": LOOP}})


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


def searches(elastic: Elasticsearch) -> list[str]:
    """What the cluster searches at the moment."""
    target = "/_tasks?actions=*search*&detailed=true"
    told = elastic.perform_request("GET", target, headers={"accept": "application/json"})
    tasks = [task for node in told["nodes"].values() for task in node["tasks"].values()]
    return [str(task["description"]) for task in tasks]
