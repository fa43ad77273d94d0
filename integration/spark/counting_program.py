"""A driver on a cluster, or a client of Spark Connect: counts rows in Redis.

It needs no package but sparkonce, and as a client none but `pyspark-client`. Its fifth argument,
if there is one, asks for `sparkonce.register`, or is the address of a server of Spark Connect.
"""

import importlib.util
import sys

from pyspark.sql import SparkSession

url, name, source, checkpoint, *asked = sys.argv[1:]
form, builder = "redis", SparkSession.builder
if asked and asked[0] != "register":
    form, builder = "sparkonce_redis", builder.remote(asked[0])
    print("has sparkonce:", importlib.util.find_spec("sparkonce") is not None)
spark = builder.getOrCreate()
if asked == ["register"]:
    import sparkonce

    sparkonce.register(spark)
rows = spark.readStream.schema("id bigint, n bigint").option("maxFilesPerTrigger", 1).json(source)
query = (
    rows.repartition(4, "id")
    .writeStream.format(form)
    .option("url", url)
    .option("key", f"{name}:{{id}}")
    .option("writeMode", "increment")
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
