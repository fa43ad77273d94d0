"""The user's program: two streams into Redis. No line of it handles failures.

The rows of a replayed epoch are never the same: the load id is random, and so is the partition
of each counter's row. Both streams are exact nevertheless.
"""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

SCHEMA = """
    id BIGINT, year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT,
    arr_time INT, sched_arr_time INT, arr_delay INT, carrier STRING, flight INT, tailnum STRING,
    origin STRING, dest STRING, air_time INT, distance INT, hour INT, minute INT,
    time_hour TIMESTAMP
"""


def main(files: str, checkpoints: str) -> None:
    spark = SparkSession.builder.appName("flights").getOrCreate()
    # On by default since Spark 4.2: rows with random values are never duplicated or lost.
    for setting in ("enabled", "enableFullRetryOnMismatch"):
        spark.conf.set(f"spark.sql.shuffle.orderIndependentChecksum.{setting}", "true")
    flights = (
        spark.readStream.format("csv")
        .schema(SCHEMA)
        .options(header=True, maxFilesPerTrigger=2)
        .load(files)
    )
    loads = flights.withColumn("load_id", f.expr("uuid()"))
    counters = flights.select(
        "origin",
        f.lit(1).alias("flights"),
        f.col("distance").alias("miles"),
        f.col("dep_delay").alias("delay_minutes"),
    ).repartition(2, f.rand())

    redis = {"url": os.environ["SPARKONCE_DEMO_REDIS_URL"], "keyPrefix": "sparkonce-demo"}
    queries = [
        loads.writeStream.format("redis")
        .options(**redis, key="sparkonce-demo:flight:{id}", writeMode="upsert")
        .option("checkpointLocation", f"{checkpoints}/flights")
        .trigger(availableNow=True)
        .start(),
        counters.writeStream.format("redis")
        .options(**redis, key="sparkonce-demo:airport:{origin}", writeMode="increment")
        .option("checkpointLocation", f"{checkpoints}/airports")
        .trigger(availableNow=True)
        .start(),
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
