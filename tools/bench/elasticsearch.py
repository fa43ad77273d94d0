"""Compares the Elasticsearch connector with others: `python -m tools.bench.elasticsearch write`.

Run it on a quiet machine. The commands:

    write: writes rows, also with elasticsearch-hadoop.
    alone: measures the server and its client, without Spark.
    read: reads documents.
    large: writes an epoch of five million rows.
    driver: measures the driver's share of a commit.

All figures of a table result from one run, one node and the same rows. Each writer fills a new
index with the same explicit mapping. An uncounted pass of all writers runs first, because Java
compiles the server's code while it runs, which favours later writers.

`SPARKONCE_TEST_ELASTICSEARCH=opensearch3` measures OpenSearch, with its client, and without
elasticsearch-hadoop.
"""

from __future__ import annotations

import json
import statistics
from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from integration.support.epochs import ElasticsearchQuery
from integration.support.servers.cache import jar
from integration.support.servers.elasticsearch import (
    ElasticsearchProcess,
    connect,
    is_opensearch,
    private_tree,
    version_at,
)
from pyspark.sql.datasource import InputPartition
from tools.bench import harness
from tools.bench.harness import BY_HAND, COUNTING, OWN, OWN_BATCH, PARTS, Writer

if TYPE_CHECKING:
    from pyspark.sql import Row

if is_opensearch():
    from opensearchpy import OpenSearch as Client
    from opensearchpy.helpers import parallel_bulk, scan

    FORMAT, PRODUCT = "opensearch", "OpenSearch"
else:
    from elasticsearch import Elasticsearch as Client
    from elasticsearch.helpers import parallel_bulk, scan

    FORMAT, PRODUCT = "elasticsearch", "Elasticsearch"

MAPPING = {
    "dynamic": "strict",
    "properties": {
        "id": {"type": "long"},
        "name": {"type": "keyword"},
        "price": {"type": "double"},
        "at": {"type": "date"},
    },
}
LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}
CHUNK, SENDERS = 6000, 4

HADOOP = "org.elasticsearch:elasticsearch-spark-30_2.12:9.4.9"
JVM, JVM_FORM = "elasticsearch-hadoop, its own Spark", "org.elasticsearch.spark.sql"
TUNED = {
    "es.batch.size.entries": "5000",
    "es.batch.size.bytes": "5mb",
    "es.batch.write.refresh": "false",
}


def measured() -> ElasticsearchProcess:
    """A node with the default garbage collector of the release; tests use a smaller one."""
    return ElasticsearchProcess(private_tree(), heap="2g", collector="G1")


def fresh(url: str, *indices: str, shards: int = 2) -> None:
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    with connect(url) as client:
        for index in indices:
            client.options(ignore_status=404).indices.delete(index=index)
            client.indices.create(index=index, settings=settings, mappings=MAPPING)


def total(url: str, index: str) -> tuple[int, float]:
    """The number of rows, and the sum of their ids."""
    with connect(url) as client:
        client.indices.refresh(index=index)
        ids = {"ids": {"stats": {"field": "id"}}}
        said = client.search(index=index, size=0, aggs=ids)["aggregations"]["ids"]
    return said["count"], said["sum"]


def query(url: str, index: str) -> ElasticsearchQuery:
    fresh(url, index)
    made = ElasticsearchQuery(harness.ARROW, url=url, index=index, key="id")
    made.sink.check()
    return made


def send_by_hand(url: str, rows: Iterator[Row], **settings: int) -> None:
    def actions() -> Iterator[dict[str, Any]]:
        for row in rows:
            yield {"_index": "byhand", "_id": row["id"], "_source": row.asDict()}

    with Client([url]) as client:
        for done, told in parallel_bulk(client, actions(), **settings):
            assert done, told


def on_driver(url: str) -> Writer:
    """A common first solution: foreachBatch, and helpers.parallel_bulk on the driver."""
    return lambda rows: rows.writeStream.foreachBatch(
        lambda batch, _: send_by_hand(url, batch.toLocalIterator(prefetchPartitions=True))
    )


def write(given: Namespace) -> None:
    rows = given.rows or 200_000
    with measured() as node, harness.session() as (spark, home):
        own = {"url": node.url, "index": "sink", "key": "id"}
        tuned = partial(send_by_hand, node.url, chunk_size=5000)
        writers = {
            COUNTING: harness.stream("nowhere"),
            BY_HAND: on_driver(node.url),
            f"{BY_HAND}, partitions": harness.in_partitions(partial(send_by_hand, node.url)),
            f"{BY_HAND}, partitions, tuned": harness.in_partitions(tuned),
            OWN: harness.stream(FORMAT, **own),
            OWN_BATCH: harness.in_batches(FORMAT, **own),
        }
        many = [range(at * rows, (at + 1) * rows) for at in range(given.rounds + 1)]
        large = harness.make_epochs(spark, home / "large", many)
        indices = partial(fresh, node.url, "byhand", "sink")

        def hadoop(**settings: str) -> list[float]:
            fresh(node.url, "warm", "hadoop")
            address = {"es.nodes": "127.0.0.1", "es.port": str(node.port), "es.mapping.id": "id"}
            address |= {"es.nodes.wan.only": "true", **settings}
            targets = [{**address, "path": index} for index in ("warm", "hadoop")]
            files = harness.folders(large)
            took = harness.jvm([jar(HADOOP)], JVM_FORM, targets=targets, folders=files)
            assert total(node.url, "hadoop")[0] == rows * len(many)
            return took

        ways = {
            name: harness.way(spark, large, writer, indices) for name, writer in writers.items()
        }
        if not is_opensearch():
            ways |= {JVM: hadoop, f"{JVM}, tuned": lambda: hadoop(**TUNED)}
        took = harness.medians(harness.in_turns(ways, 2, uncounted=1))
        harness.show_single_rows(spark, home, writers, indices)
        title = f"{rows:,} rows of 4 columns, {PRODUCT} {version_at(node.url)}"
    _show(title, {name: rows / each for name, each in took.items()})


def _show(title: str, rates: Mapping[str, float]) -> None:
    harness.show_rates(title, rates, *(name for name in (BY_HAND, JVM) if name in rates))


def alone(given: Namespace) -> None:
    """Compares the sink with a plain client that sends prepared requests."""
    rows = given.rows or 200_000
    found: dict[str, list[float]] = {"raw _bulk": [], "stage": [], "commit": [], "stage+commit": []}
    with measured() as node:
        sink = query(node.url, "alone")
        for epoch in range(given.rounds + 1):
            batches = harness.batches_of(range(epoch * rows, (epoch + 1) * rows))
            bodies = [body for batch in batches for body in _bodies(batch)]
            fresh(node.url, "raw")
            raw = harness.timed(partial(_send, node.url, bodies))
            stage, commit = harness.stage_and_commit(sink, epoch, batches)
            if epoch:  # the first epoch warms up the server
                for name, each in zip(found, (raw, stage, commit, stage + commit), strict=True):
                    found[name].append(each)
    rates = {name: rows / statistics.median(each) for name, each in found.items()}
    harness.show_rates(f"{rows:,} rows of 4 columns, no Spark", rates)


def _bodies(batch: pa.RecordBatch) -> Iterator[bytes]:
    """Requests with explicit ids."""
    for start in range(0, len(batch), CHUNK):
        lines = []
        for one in batch.slice(start, CHUNK).to_pylist():
            source = json.dumps({**one, "at": one["at"].isoformat()})
            lines.append(f'{{"index":{{"_id":"{one["id"]}"}}}}\n{source}\n')
        yield "".join(lines).encode()


def _send(url: str, bodies: list[bytes]) -> None:
    with connect(url) as client, ThreadPoolExecutor(SENDERS) as pool:

        def send(body: bytes) -> None:
            said = client.perform_request("POST", "/raw/_bulk", headers=LINES, body=body)
            assert not said.body["errors"]

        list(pool.map(send, bodies))


class HandReader(harness.HandReader):
    """A common solution: one slice for each partition, documents as tuples."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        part = {"slice": {"id": partition.value, "max": PARTS}}
        with Client([self.options["url"]]) as client:
            for hit in scan(client, query=part, index="reads", size=5000):
                source = hit["_source"]
                at = datetime.fromisoformat(source["at"].replace("Z", "+00:00"))
                yield source["id"], source["name"], source["price"], at


class Hand(harness.Hand):
    reads = HandReader


def read(given: Namespace) -> None:
    rows = given.rows or 400_000
    with measured() as node:
        own = {"url": node.url, "index": "reads"}
        with harness.session(hand=Hand) as (spark, _):
            fresh(node.url, "reads", shards=PARTS)
            made = harness.rows_of(spark.range(rows)).write.format(FORMAT)
            made.options(**own, key="id").mode("append").save()
            with connect(node.url) as client:
                client.indices.refresh(index="reads")
                client.indices.forcemerge(index="reads", max_num_segments=1)
            reader = spark.read.format(FORMAT).options(**own, numPartitions=PARTS)
            readers = {
                BY_HAND: spark.read.format("by_hand").option("url", node.url).load(),
                OWN: reader.schema(harness.SCHEMA).load(),
            }
            took = harness.reads(readers, rows, given.rounds)
        if not is_opensearch():
            settings = {"es.nodes": "127.0.0.1", "es.port": str(node.port), "path": "reads"}
            settings |= {"es.nodes.wan.only": "true", "es.scroll.size": "5000"}
            other = {"options": settings, "schema": harness.SCHEMA, "rounds": given.rounds + 1}
            took[JVM] = statistics.median(harness.jvm([jar(HADOOP)], JVM_FORM, **other))
        title = f"{rows:,} documents, {PRODUCT} {version_at(node.url)}"
    _show(title, {name: rows / each for name, each in took.items()})


def large(given: Namespace) -> None:
    lines = []
    with measured() as node, harness.session() as (spark, _):
        for rows in (100_000, given.rows or 5_000_000):
            fresh(node.url, "large")
            own = {"url": node.url, "index": "large", "key": "id", "timeout": "120"}
            made = harness.rows_of(harness.numbers(spark, rows))
            writer = harness.stream(FORMAT, **own)
            line = harness.large(made, writer, lambda: total(node.url, "large"), rows)
            lines.append(("upsert", *line))
    harness.show(f"Epochs, {PRODUCT}", harness.LARGE, lines)


def driver(given: Namespace) -> None:
    with measured() as node:
        harness.show_driver(PRODUCT, query(node.url, "bench"), given)


if __name__ == "__main__":
    commands = {one.__name__: one for one in (write, alone, read, large, driver)}
    harness.main(__doc__, commands)
