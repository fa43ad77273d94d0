"""A driver that counts rows, with random values and partitions at every replay."""

import sys

from pyspark.sql import SparkSession

from sparkonce.tck.spark.draws import DRAW, with_draw

url, name, source, checkpoint = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
rows = spark.readStream.schema("id bigint, n bigint").option("maxFilesPerTrigger", 1).json(source)
query = (
    with_draw(rows)
    .repartition(3, DRAW)
    .drop(DRAW)
    .writeStream.format("redis")
    .option("url", url)
    .option("key", f"{name}:{{id}}")
    .option("writeMode", "increment")
    .option("chunkRows", 1000)
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
