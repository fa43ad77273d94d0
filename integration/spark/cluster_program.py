"""A driver on a cluster: counts rows in Redis. It needs no package but sparkonce.

Its fifth argument, if there is one, asks for `sparkonce.register`.
"""

import sys

from pyspark.sql import SparkSession

url, name, source, checkpoint, *asked = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if asked:
    import sparkonce

    sparkonce.register(spark)
rows = spark.readStream.schema("id bigint, n bigint").option("maxFilesPerTrigger", 1).json(source)
query = (
    rows.repartition(4, "id")
    .writeStream.format("redis")
    .option("url", url)
    .option("key", f"{name}:{{id}}")
    .option("writeMode", "increment")
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
