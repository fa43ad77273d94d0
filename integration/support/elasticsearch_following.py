"""What tests of `spark.readStream.format("elasticsearch")` share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from elasticsearch import Elasticsearch

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.follow.feed import ElasticsearchFeed
from sparkonce import options
from sparkonce.reading import Position, Scan

ROWS = pa.schema([("_id", pa.string()), ("_seq_no", pa.int64()), ("n", pa.int64())])
ONE, SHARDS = {"number_of_replicas": 0}, {"number_of_replicas": 0, "number_of_shards": 3}


def feed(url: str, index: str, schema: pa.Schema = ROWS, **raw: str) -> ElasticsearchFeed:
    given = {"url": url, "index": index, "startingPosition": "earliest", **raw}
    parsed = options.parse(ElasticsearchConnector.follows, given)
    return ElasticsearchConnector().feed(parsed, Scan(schema))


def make(elastic: Elasticsearch, index: str, settings: dict[str, Any], **more: Any) -> None:
    """An index whose documents no search finds unless somebody refreshes it."""
    elastic.indices.create(index=index, settings={"refresh_interval": "-1", **settings}, **more)


def put(elastic: Elasticsearch, index: str, numbers: Iterable[int], n: int | None = None) -> None:
    """Documents named as their numbers, which are their `n` unless there is another one."""
    operations: list[dict[str, Any]] = []
    for number in numbers:
        operations += {"index": {"_id": str(number)}}, {"n": number if n is None else n}
    told = elastic.bulk(index=index, operations=operations)
    assert not told["errors"], told


def drain(made: ElasticsearchFeed, splits: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for one in splits for batch in made.read(one) for row in batch.to_pylist()]


def rows(made: ElasticsearchFeed, after: Position, end: Position) -> list[dict[str, Any]]:
    return drain(made, made.between(after, end))


def numbers(made: ElasticsearchFeed, after: Position, end: Position) -> list[int]:
    """The `n` of each row, sorted; one that comes twice stands there twice."""
    return sorted(row["n"] for row in rows(made, after, end))
