"""Shared by tests of Elasticsearch: indices and queries, late drivers, reads, and changes."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan
from integration.support.epochs import (
    COUNTER,
    ELASTICSEARCH,
    LONG_AGO,
    ElasticsearchQuery,
    Named,
)
from integration.support.servers.elasticsearch import ElasticsearchProcess, is_opensearch

from pyspark_elasticsearch.follow.feed import ElasticsearchFeed
from pyspark_elasticsearch.read.source import ElasticsearchSource
from sparkonce import options
from sparkonce.reading import Filter, Position, Scan
from sparkonce.store import load

Private = Callable[..., ElasticsearchProcess]
"""Starts a private server of the test, with these settings."""

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])

CONNECTOR: Any = load(ELASTICSEARCH)
"""That of the server with which the tests run."""


def of_cli(url: str) -> str:
    """The URL for the command line."""
    return f"opensearch+{url}" if is_opensearch() else url


def row(id_: int | None, name: str | None = "a", x: float | None = 1.5) -> dict[str, Any]:
    return {"id": id_, "name": name, "x": x}


STAMPED = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), ("id", pa.int64())])


def stamped(*ids: int) -> list[dict[str, Any]]:
    return [{"@timestamp": datetime(2024, 2, 29, tzinfo=timezone.utc), "id": id_} for id_ in ids]


def ids(client: Elasticsearch, name: str) -> Counter[int]:
    """The number of times that each row occurs in all indices of a stream."""
    client.indices.refresh(index=name)
    found = client.search(index=name, size=10_000)["hits"]["hits"]
    return Counter(hit["_source"]["id"] for hit in found)


CHANGES = pa.schema([("_id", pa.string()), ("_seq_no", pa.int64()), ("n", pa.int64())])


class Index(Named):
    """The name of a test's private index, and the operations of tests on it."""

    def query(self, schema: pa.Schema, **options: str) -> ElasticsearchQuery:
        return ElasticsearchQuery(schema, **{"url": self.url, "index": self, **options})

    def into(self, schema: pa.Schema, **options: str) -> ElasticsearchQuery:
        """A checked query, which creates the index from its schema if it does not exist."""
        query = self.query(schema, **{"createIndex": "true", **options})
        query.sink.check()
        return query

    def counting(self, **options: str) -> ElasticsearchQuery:
        """A query that adds to a counter for each of its rows."""
        return counting(self.url, self, **options)

    def counts(self) -> Counter[int]:
        """The number of effects of each row: a multiset."""
        return counts(self.client, self)

    def documents(self) -> dict[str, dict[str, Any]]:
        """Every document by id, without its guard."""
        return documents(self.client, self)

    def rows(self) -> list[dict[str, Any]]:
        """Every document, duplicates and all, in the order of all its values."""
        return sorted(self.documents().values(), key=str)

    def block(self, name: str, on: bool | None) -> None:
        set_block(self.client, self, name, on)

    def source(
        self, schema: pa.Schema | None = None, filters: Iterable[Filter] = (), **raw: str
    ) -> ElasticsearchSource:
        """A source that reads the index."""
        return source(self.url, self, schema, filters, **raw)

    def fill(
        self, properties: dict[str, Any], documents: Iterable[dict[str, Any]], **more: Any
    ) -> None:
        """Create the index, with documents d0, d1 and so on."""
        fill(self.client, self, properties, documents, **more)

    def feed(self, schema: pa.Schema = CHANGES, **raw: str) -> ElasticsearchFeed:
        """The changes of the index, from the first one."""
        return feed(self.url, self, schema, **raw)

    def make_quiet(self, settings: dict[str, Any], **more: Any) -> None:
        make_quiet(self.client, self, settings, **more)

    def put(self, numbers: Iterable[int], n: int | None = None) -> None:
        put(self.client, self, numbers, n)


def fill(
    client: Elasticsearch,
    index: str,
    properties: dict[str, Any],
    documents: Iterable[dict[str, Any]],
    **more: Any,
) -> None:
    """Create an index with documents d0, d1 and so on."""
    mappings = {"properties": properties, **more.pop("mappings", {})}
    client.indices.create(index=index, mappings=mappings, **more)
    lines = [
        f'{{"index":{{"_id":"d{at}"}}}}\n{json.dumps(it)}\n' for at, it in enumerate(documents)
    ]
    if lines:
        answer = client.bulk(index=index, body="".join(lines), refresh=True)
        assert not answer["errors"], answer


def clear(client: Elasticsearch, begin: str) -> None:
    """Delete all streams, indices, templates and pipelines whose names have this prefix."""
    client = client.options(ignore_status=(400, 404, 405))
    client.indices.delete_data_stream(name=f"{begin}*")
    found = client.indices.get(index=f"{begin}*", expand_wildcards="all", features="settings")
    if found.body:
        client.indices.delete(index=",".join(found.body))
    client.indices.delete_index_template(name=f"{begin}*")
    client.indices.delete_template(name=f"{begin}*")
    client.ingest.delete_pipeline(id=f"{begin}*")


def documents(client: Elasticsearch, index: str) -> dict[str, dict[str, Any]]:
    """Every document by id, without its guard."""
    client.indices.refresh(index=index)
    hits = scan(client, index=index, size=5000)
    return {
        hit["_id"]: {name: one for name, one in hit["_source"].items() if name != "sparkonce"}
        for hit in hits
    }


def rows(client: Elasticsearch, index: str) -> list[dict[str, Any]]:
    """Every document, duplicates and all, in the order of all its values."""
    return sorted(documents(client, index).values(), key=str)


def has_script_processor(client: Elasticsearch) -> bool:
    """Whether the server can change documents by a pipeline, a module that some trees lack."""
    nodes = client.nodes.info(metric="ingest")["nodes"].values()
    return all({"type": "script"} in node["ingest"]["processors"] for node in nodes)


def make_counters(client: Elasticsearch, index: str, kind: str = "long", **settings: object) -> str:
    """Create the index, for counts of this type; return its name."""
    fields = {
        "id": {"type": "long"},
        "n": {"type": kind},
        "sparkonce": {"type": "object", "enabled": False},
    }
    client.indices.create(
        index=index,
        settings={"number_of_replicas": 0, **settings},
        mappings={"dynamic": "strict", "properties": fields},
    )
    return index


def counting(url: str, index: str, **options: str) -> ElasticsearchQuery:
    """A query that increments, or has these options; appended rows have no key."""
    given = {"url": url, "index": index, "writeMode": "increment", "chunkRows": "4", **options}
    key = {} if given["writeMode"] == "append" else {"key": "id"}
    return ElasticsearchQuery(COUNTER, **{**key, **given})


def counting_anew(url: str, **options: str) -> ElasticsearchQuery:
    """The same into index `counters`, which it creates itself, on a private node."""
    made = {"createIndex": "true", "chunkRows": "500", "timeout": "10"}
    return counting(url, "counters", **{**made, **options})


def counts(client: Elasticsearch, index: str) -> Counter[int]:
    """The number of effects of each row: a multiset."""
    found: Counter[int] = Counter()
    for one in documents(client, index).values():
        found[one["id"]] += one["n"]
    return found


def set_block(client: Elasticsearch, index: str, name: str, on: bool | None) -> None:
    """Set this block on the index, or remove it."""
    client.indices.put_settings(index=index, settings={f"index.blocks.{name}": on})


def apply_again(query: ElasticsearchQuery, decided: Any) -> None:
    """Send a decided epoch once more, like a superseded driver that does not know it yet."""
    store = query.sink.store
    is_over = store.records.is_over(decided)
    store.records.is_over = lambda _: is_over
    store.records.advance = lambda *_, **__: None
    store.records.progress = lambda *_: 0
    try:
        store.apply(decided, since=time.monotonic() - LONG_AGO)
    finally:
        del store.records.is_over, store.records.advance, store.records.progress


def decide(query: ElasticsearchQuery, epoch: int, *partitions: Any) -> Any:
    """Decide an epoch, and apply nothing; return its manifest."""
    receipts, kept = query.stage(epoch, *partitions), {}
    store = query.sink.store

    def dies(manifest: Any, *_: Any) -> None:
        kept["manifest"] = manifest
        raise KeyboardInterrupt

    store.apply = dies
    try:
        with pytest.raises(KeyboardInterrupt):
            query.commit(epoch, receipts)
    finally:
        del store.apply
    return kept["manifest"]


def die_after(query: ElasticsearchQuery, chunks: int, epoch: int, receipts: Any) -> None:
    """Commit an epoch, and die when this number of its chunks is applied."""
    store, applied = query.sink.store, count(1)

    def advance(_: int) -> None:
        if next(applied) == chunks:
            raise KeyboardInterrupt

    store.apply = lambda manifest, *_: type(store).apply(store, manifest, advance)
    try:
        with pytest.raises(KeyboardInterrupt):
            query.commit(epoch, receipts)
    finally:
        del store.apply


def keep_log(query: ElasticsearchQuery) -> None:
    """Disable the clean-up, so that a late driver still finds its chunks."""
    query.sink.store.discard = lambda *_: None


LOOP = "int n = 0; for (int i = 0; i < 100000; i++) { n += i % 7 } return n > 0"


MANY_SLOW = 12_000
"""The number of documents that take a second or more; the cluster checks after some thousands."""

MANY = 300
"""The number of documents of an index that is read in several splits."""

SLOW = json.dumps({"script": {"script": LOOP}})


def source(
    url: str,
    index: str,
    schema: pa.Schema | None = None,
    filters: Iterable[Filter] = (),
    **raw: str,
) -> ElasticsearchSource:
    parsed = options.parse(CONNECTOR.reads, {"url": url, "index": index, **raw})
    schema = schema or CONNECTOR.infer(parsed)
    return CONNECTOR.source(parsed, Scan(schema, tuple(filters)))


def searches(elastic: Elasticsearch) -> list[str]:
    """The searches that run in the cluster now."""
    target = "/_tasks?actions=*search*&detailed=true"
    reply = elastic.perform_request("GET", target, headers={"accept": "application/json"})
    tasks = [task for node in reply["nodes"].values() for task in node["tasks"].values()]
    return [str(task["description"]) for task in tasks]


ONE, SHARDS = {"number_of_replicas": 0}, {"number_of_replicas": 0, "number_of_shards": 3}


def feed(url: str, index: str, schema: pa.Schema = CHANGES, **raw: str) -> ElasticsearchFeed:
    given = {"url": url, "index": index, "startingPosition": "earliest", **raw}
    parsed = options.parse(CONNECTOR.follows, given)
    return CONNECTOR.feed(parsed, Scan(schema))


def make_quiet(elastic: Elasticsearch, index: str, settings: dict[str, Any], **more: Any) -> None:
    """An index whose documents no search finds before a refresh."""
    elastic.indices.create(index=index, settings={"refresh_interval": "-1", **settings}, **more)


def put(elastic: Elasticsearch, index: str, numbers: Iterable[int], n: int | None = None) -> None:
    """Documents with their numbers as ids and as `n`, unless another `n` is set."""
    operations: list[dict[str, Any]] = []
    for number in numbers:
        operations += {"index": {"_id": str(number)}}, {"n": number if n is None else n}
    reply = elastic.bulk(index=index, operations=operations)
    assert not reply["errors"], reply


def drain(made: ElasticsearchFeed, splits: Iterable[Any]) -> list[dict[str, Any]]:
    return [row for one in splits for batch in made.read(one) for row in batch.to_pylist()]


def changes(made: ElasticsearchFeed, after: Position, end: Position) -> list[dict[str, Any]]:
    return drain(made, made.between(after, end))


def numbers(made: ElasticsearchFeed, after: Position, end: Position) -> list[int]:
    """The sorted `n` of all rows, duplicates included."""
    return sorted(row["n"] for row in changes(made, after, end))


def read_rows(made: ElasticsearchSource) -> list[dict[str, Any]]:
    return [
        row for split in made.splits() for batch in made.read(split) for row in batch.to_pylist()
    ]
