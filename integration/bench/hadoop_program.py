"""Writes folders of parquet by elasticsearch-hadoop, and prints the seconds of each as JSON.

A program of its own, as elasticsearch-hadoop is made for an older Spark; see `elasticsearch_speed`.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession


def main() -> None:
    jar, port, index, tuned, *folders = sys.argv[1:]
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
    for folder in folders:
        rows = spark.read.parquet(folder)
        started = time.perf_counter()
        rows.write.format("org.elasticsearch.spark.sql").options(**options).mode("append").save(
            index
        )
        took.append(time.perf_counter() - started)
    print(json.dumps(took))


if __name__ == "__main__":
    main()
