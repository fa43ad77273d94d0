"""Writes folders of parquet by elasticsearch-hadoop, and prints the seconds of each as JSON.

A program of its own, as elasticsearch-hadoop is made for an older Spark; see `elasticsearch_speed`.
All is written once before, into another index, as Java compiles what runs often.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession


def main() -> None:
    jar, port, warm, index, tuned, *folders = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jar)
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    options = {
        "es.nodes": "127.0.0.1",
        "es.port": port,
        "es.nodes.wan.only": "true",
        "es.mapping.id": "id",
        **json.loads(tuned),
    }
    took = []
    for target in (warm, index):
        took = [seconds(spark, folder, target, options) for folder in folders]
    print(json.dumps(took))


def seconds(spark: SparkSession, folder: str, index: str, options: dict[str, str]) -> float:
    rows = spark.read.parquet(folder)
    started = time.perf_counter()
    writer = rows.write.format("org.elasticsearch.spark.sql").options(**options)
    writer.mode("append").save(index)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
