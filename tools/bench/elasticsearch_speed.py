"""How fast the Elasticsearch sink is, beside what users do today and beside the server alone.

Run it on a quiet machine::

    python -m tools.bench.elasticsearch_speed [--rows 200000] [--no-spark]

All figures come from one run, one node and the same rows of four columns (bigint, string, double,
timestamp), into an index with the same explicit mapping, new for each writer. A round is one
epoch of new keys; writers take turns, and the median of all rounds but those of the first turn is
shown. elasticsearch-hadoop gets the same files on a Spark of its own (the newest that it is made
for), in an environment that pip makes in the cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from elasticsearch.helpers import parallel_bulk
from integration.support.epochs import ElasticsearchQuery
from integration.support.servers import spark as local_spark
from integration.support.servers.cache import jar
from integration.support.servers.elasticsearch import (
    ElasticsearchProcess,
    Tree,
    connect,
    private_tree,
)
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tools.bench import old_spark
from tools.bench.streams import Counting, in_batches, make_input, run, seconds

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.write.chunks import ChunkEncoder
from sparkonce import options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
MAPPING = {
    "dynamic": "strict",
    "properties": {
        "id": {"type": "long"},
        "name": {"type": "keyword"},
        "price": {"type": "double"},
        "at": {"type": "date"},
    },
}
SETTINGS = {"number_of_shards": 2, "number_of_replicas": 0}
LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}
CHUNK = 6000

HADOOP = "org.elasticsearch:elasticsearch-spark-30_2.12:9.4.9"
TUNED = {
    "es.batch.size.entries": "5000",
    "es.batch.size.bytes": "5mb",
    "es.batch.write.refresh": "false",
}


def measured(tree: Tree | None = None) -> ElasticsearchProcess:
    """A node with the collector that the release comes with; tests take a smaller one."""
    return ElasticsearchProcess(tree or private_tree(), heap="2g", collector="G1")


def fresh(url: str, index: str) -> None:
    with connect(url) as client:
        client.options(ignore_status=404).indices.delete(index=index)
        client.indices.create(index=index, settings=SETTINGS, mappings=MAPPING)


def make_rows(first: int, count: int) -> pa.RecordBatch:
    ids = range(first, first + count)
    columns = [
        ids,
        [f"name-{i % 1000}" for i in ids],
        [i * 0.123457 for i in ids],
        [1_600_000_000_000_000 + i * 1_000_003 for i in ids],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def nested(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, with a struct, an array and a map of their values."""
    values = rows.to_pydict()
    made = {
        "id": rows["id"],
        "item": pa.StructArray.from_arrays([rows["name"], rows["price"]], ["name", "price"]),
        "names": pa.array([[name, name] for name in values["name"]]),
        "prices": pa.array(
            [[(name, price)] for name, price in zip(values["name"], values["price"], strict=True)],
            pa.map_(pa.string(), pa.float64()),
        ),
    }
    return pa.RecordBatch.from_arrays(list(made.values()), list(made))


def query(url: str, index: str) -> ElasticsearchQuery:
    made = ElasticsearchQuery(SCHEMA, url=url, index=index, key="id")
    made.sink.check()
    return made


def timed(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


# -- the server alone, without Spark


def encoding(rows: pa.RecordBatch) -> float:
    """Rows a second from Arrow to the lines of a request, on one core."""
    parsed = options.parse(
        ElasticsearchConnector.options, {"url": "http://localhost", "index": "x", "key": "id"}
    )
    encode = ChunkEncoder(ElasticsearchConnector().plan(parsed, rows.schema).detail)
    parts = [rows.slice(at, CHUNK) for at in range(0, rows.num_rows, CHUNK)]
    return rows.num_rows / timed(lambda: [encode.lines(part) for part in parts])


def ready_made(rows: pa.RecordBatch) -> list[bytes]:
    """Requests with explicit ids."""
    bodies = []
    for start in range(0, rows.num_rows, CHUNK):
        part = rows.slice(start, CHUNK).to_pylist()
        lines = [
            f'{{"index":{{"_id":"{one["id"]}"}}}}\n'
            + json.dumps({**one, "at": one["at"].isoformat()})
            for one in part
        ]
        bodies.append(("\n".join(lines) + "\n").encode())
    return bodies


def raw_bulk(url: str, bodies: list[bytes], threads: int = 4) -> None:
    """Send ready-made requests by a plain client."""
    with connect(url) as client, ThreadPoolExecutor(threads) as pool:

        def send(body: bytes) -> None:
            said = client.perform_request("POST", "/raw/_bulk", headers=LINES, body=body)
            assert not said.body["errors"]

        list(pool.map(send, bodies))


def alone(url: str, rows: int, rounds: int) -> dict[str, float]:
    fresh(url, "alone")
    sink = query(url, "alone")
    found: dict[str, list[float]] = {"raw _bulk": [], "stage": [], "commit": [], "stage+commit": []}
    for epoch in range(rounds + 1):
        batch = make_rows(epoch * rows, rows)
        bodies = ready_made(batch)
        fresh(url, "raw")
        raw = timed(partial(raw_bulk, url, bodies))
        batches = [batch.slice(at, 10_000) for at in range(0, rows, 10_000)]
        receipts: list[Any] = []
        stage = timed(lambda: receipts.extend(sink.stage_batches(epoch, batches)))  # noqa: B023
        commit = timed(lambda: sink.commit(epoch, receipts))  # noqa: B023
        if epoch:  # the server warms up in the first one
            for name, each in zip(found, (raw, stage, commit, stage + commit), strict=True):
                found[name].append(each)
    rates = {name: rows / statistics.median(each) for name, each in found.items()}
    flat = make_rows(0, rows)
    lines = {"encoding, one core": encoding(flat), "the same, nested": encoding(nested(flat))}
    return {**lines, **rates}


# -- through Spark


def send_by_hand(url: str, rows: Iterator[Row], **settings: int) -> None:
    def actions() -> Iterator[dict[str, Any]]:
        for row in rows:
            yield {"_index": "byhand", "_id": row["id"], "_source": row.asDict()}

    with connect(url) as client:
        for done, told in parallel_bulk(client, actions(), **settings):
            assert done, told


def on_driver(url: str) -> Callable[[DataFrame, int], None]:
    """What users write first: foreachBatch, and helpers.parallel_bulk on the driver."""
    return lambda batch, _: send_by_hand(url, batch.toLocalIterator(prefetchPartitions=True))


def in_partitions(url: str, **settings: int) -> Callable[[DataFrame, int], None]:
    """The same in each partition."""
    return lambda batch, _: batch.foreachPartition(lambda rows: send_by_hand(url, rows, **settings))


def writers(url: str) -> dict[str, Callable[[DataFrame], DataStreamWriter]]:
    def each_batch(send: Callable[[DataFrame, int], None]) -> Callable[..., DataStreamWriter]:
        return lambda rows: rows.writeStream.foreachBatch(send)

    options = {"url": url, "index": "sink", "key": "id"}
    return {
        "counting Arrow writer": lambda rows: rows.writeStream.format("counting"),
        "foreachBatch + parallel_bulk, driver": each_batch(on_driver(url)),
        "foreachBatch + parallel_bulk, partitions": each_batch(in_partitions(url)),
        "the same, tuned": each_batch(in_partitions(url, chunk_size=5000)),
        "sparkonce": lambda rows: rows.writeStream.format("elasticsearch").options(**options),
        "sparkonce, df.write": in_batches("elasticsearch", **options),
    }


Way = Callable[[], list[float]]
"""Writes all epochs; the seconds of each but the first."""


def through_spark(
    spark: SparkSession, source: Path, url: str, files: int
) -> Iterator[tuple[str, Way]]:
    for name, writer in writers(url).items():

        def way(writer: Callable[[DataFrame], DataStreamWriter] = writer) -> list[float]:
            for index in ("byhand", "sink"):
                fresh(url, index)
            return seconds(run(spark, source, writer, files), "addBatch")

        yield name, way


def in_turns(ways: Mapping[str, Way], passes: int) -> dict[str, float]:
    """The median seconds of each way.

    The server's code is compiled while it runs, so whoever comes later has it easier: a pass of all
    of them comes before those that count.
    """
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in track(range(passes + 1), "passes"):
        for name, way in ways.items():
            took = way()
            found[name] += took if turn else []
    return {name: statistics.median(took) for name, took in found.items()}


def by_hadoop(source: Path, node: ElasticsearchProcess, rows: int, **tuned: str) -> list[float]:
    for index in ("warm", "hadoop"):
        fresh(node.url, index)
    own = {"es.nodes": "127.0.0.1", "es.port": str(node.port), "es.nodes.wan.only": "true"}
    own |= {"es.mapping.id": "id", **tuned}
    targets = [{**own, "path": index} for index in ("warm", "hadoop")]
    took = old_spark.write(source, [jar(HADOOP)], "org.elasticsearch.spark.sql", targets)
    with connect(node.url) as client:
        client.indices.refresh(index="hadoop")
        assert client.count(index="hadoop")["count"] == rows * len(took)
    return took[1:]


def show(title: str, found: dict[str, float], unit: str) -> None:
    table = Table(title=title)
    table.add_column("what")
    table.add_column(unit, justify="right")
    for name, figure in found.items():
        table.add_row(name, f"{figure:,.0f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=2, choices=range(1, 10))
    parser.add_argument("--no-spark", action="store_true")
    args = parser.parse_args()
    tree = private_tree()
    title = f"{args.rows:,} rows of 4 columns, Elasticsearch {tree.version}"
    with measured(tree) as node:
        show(f"{title}, no Spark", alone(node.url, args.rows, args.rounds), "rows/s")
        if args.no_spark:
            return
        with tempfile.TemporaryDirectory(prefix="sparkonce-bench-") as scratch:
            home = Path(scratch)
            with local_spark.session(home) as spark:
                spark.dataSource.register(Counting)
                large = make_input(spark, home / "large", args.rows, args.rounds + 1)
                single = make_input(spark, home / "single", 1, 12)
                ways = dict(through_spark(spark, large, node.url, files=4))
                other = partial(by_hadoop, large, node, args.rows)
                ways["elasticsearch-hadoop, its own Spark"] = other
                ways["elasticsearch-hadoop, tuned"] = partial(other, **TUNED)
                took = in_turns(ways, args.passes)
                rates = {name: args.rows / each for name, each in took.items()}
                show(f"{title}, through Spark", rates, "rows/s")
                small = in_turns(dict(through_spark(spark, single, node.url, files=1)), 1)
                shown = {name: each * 1000 for name, each in small.items()}
                show("an epoch of one row", shown, "ms")


if __name__ == "__main__":
    main()
