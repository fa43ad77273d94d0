"""Writes folders of parquet by a connector of the JVM, or reads; prints the seconds as JSON.

A program of its own, as such connectors are made for an older Spark; see `old_spark`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    given = json.loads(sys.argv[1])
    builder = SparkSession.builder.master("local[2]").config("spark.jars", given["jars"])
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if "targets" not in given:
        print(json.dumps([read_seconds(spark, given) for _ in range(given["rounds"])]))
        return
    took = []
    for options in given["targets"]:
        took = [seconds(spark, folder, given["format"], options) for folder in given["folders"]]
    print(json.dumps(took))


def read_seconds(spark: SparkSession, given: dict[str, Any]) -> float:
    started = time.perf_counter()
    reader = spark.read.format(given["format"]).options(**given["options"])
    reader.schema(given["schema"]).load().write.format("noop").mode("append").save()
    return time.perf_counter() - started


def seconds(spark: SparkSession, folder: str, named: str, options: dict[str, str]) -> float:
    rows = spark.read.parquet(folder)
    started = time.perf_counter()
    rows.write.format(named).options(**options).mode("append").save()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
