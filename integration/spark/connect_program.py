"""A client of Spark Connect that has nothing but `pyspark-client`: counts rows in Redis."""

import importlib.util
import sys

from pyspark.sql import SparkSession

remote, url, name, source, checkpoint = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
query = (
    spark.readStream.schema("id bigint, n bigint")
    .json(source)
    .writeStream.format("sparkonce_redis")
    .option("url", url)
    .option("key", f"{name}:{{id}}")
    .option("writeMode", "increment")
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
print("has sparkonce:", importlib.util.find_spec("sparkonce") is not None)
