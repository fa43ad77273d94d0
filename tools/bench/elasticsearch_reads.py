"""How fast an index is read into `noop`, beside a reader by hand and elasticsearch-hadoop.

Run it on a quiet machine::

    python -m tools.bench.elasticsearch_reads [--rows 500000] [--rounds 3] [--no-hadoop]

One run, one node, one index of four columns in four shards. The readers take turns; medians of the
rounds are shown. elasticsearch-hadoop reads with a Spark of its own (the newest that it is made
for), after the others.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from elasticsearch.helpers import scan
from integration.support.servers import spark as local_spark
from integration.support.servers.cache import jar
from integration.support.servers.elasticsearch import connect, version_at
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from tools.bench import old_spark, reads
from tools.bench.elasticsearch_speed import HADOOP, MAPPING, measured

INDEX, JVM = "bench-reads", "elasticsearch-hadoop, its own Spark"
SETTINGS = {"number_of_shards": reads.PARTS, "number_of_replicas": 0}


class HandReader(reads.HandReader):
    """What users write: a slice a partition, documents as tuples."""

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        part = {"slice": {"id": partition.value, "max": reads.PARTS}}
        with connect(self.options["url"]) as client:
            for hit in scan(client, query=part, index=INDEX, size=5000):
                source = hit["_source"]
                at = datetime.fromisoformat(source["at"].replace("Z", "+00:00"))
                yield source["id"], source["name"], source["price"], at


class Hand(reads.Hand):
    reads = HandReader


def own(spark: SparkSession, url: str) -> DataFrame:
    reader = spark.read.format("elasticsearch").options(url=url, index=INDEX)
    return reader.option("numPartitions", reads.PARTS).schema(reads.SCHEMA).load()


def fill(spark: SparkSession, url: str, rows: int) -> None:
    with connect(url) as client:
        client.indices.create(index=INDEX, settings=SETTINGS, mappings=MAPPING)
        reads.made(spark, rows).write.format("elasticsearch").options(
            url=url, index=INDEX, key="id"
        ).mode("append").save()
        client.indices.refresh(index=INDEX)
        client.indices.forcemerge(index=INDEX, max_num_segments=1)


def main() -> None:
    parser = reads.arguments(__doc__, 500_000)
    parser.add_argument("--no-hadoop", action="store_true")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
    with measured() as node:
        with local_spark.session(home) as spark:
            spark.dataSource.register(Hand)
            fill(spark, node.url, given.rows)
            readers = {
                reads.BY_HAND: partial(reads.by_hand, url=node.url),
                reads.OWN: partial(own, url=node.url),
            }
            took = reads.in_turns(spark, readers, given.rows, given.rounds)
        if not given.no_hadoop:
            options = {"es.nodes": "127.0.0.1", "es.port": str(node.port), "path": INDEX}
            options |= {"es.nodes.wan.only": "true", "es.scroll.size": "5000"}
            form, rounds = "org.elasticsearch.spark.sql", given.rounds + 1
            seconds = old_spark.read([jar(HADOOP)], form, options, reads.SCHEMA, rounds)
            took[JVM] = statistics.median(seconds[1:])
        reads.show(took, given.rows, JVM if JVM in took else reads.BY_HAND, version_at(node.url))


if __name__ == "__main__":
    main()
