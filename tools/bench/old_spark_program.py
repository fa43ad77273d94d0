"""Writes folders of parquet by a connector of the JVM, or reads; prints the seconds as JSON.

A program of its own, as such connectors are made for an older Spark; see `harness.jvm`. It is told
`targets`, the options of the writes before and of those that count, and `folders`; or `options`,
`schema` and `rounds` of reads.
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
    for options in given.get("targets", ()):  # Java compiles what runs often
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
