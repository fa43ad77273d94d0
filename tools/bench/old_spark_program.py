"""Writes folders of parquet by a connector of the JVM, or reads; prints the seconds as JSON.

A separate program, because these connectors need an older Spark; see `harness.jvm`. Its argument
is JSON: for writes `folders` and `targets`, the options of warm-up and counted writes; for reads
`options`, `schema` and `rounds`.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").config("spark.jars", given["jars"])
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    took: list[float] = []
    for options in given.get("targets", ()):  # the first writes let Java compile
        folders = map(spark.read.parquet, given["folders"])
        took = [seconds(rows, given["format"], options) for rows in folders]
    for _ in range(given.get("rounds", 0)):
        reader = spark.read.format(given["format"]).options(**given["options"])
        took.append(seconds(reader.schema(given["schema"]).load(), "noop", {}))
    print(json.dumps(took))


def seconds(rows: DataFrame, form: str, options: dict[str, str]) -> float:
    started = time.perf_counter()
    rows.write.format(form).options(**options).mode("append").save()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
