"""A table of MySQL as an index: its rows, then all their changes, including deletes.

Addresses come from the environment: MYSQL, ELASTICSEARCH, and CHECKPOINTS, a folder.
"""

import os

from pyspark.sql import SparkSession


def main() -> None:
    spark = SparkSession.builder.appName("products").getOrCreate()
    changes = (
        spark.readStream.format("mysql")
        .option("url", os.environ["MYSQL"])
        .option("dbtable", "products")
        .option("startingPosition", "snapshot")
        .option("maxRowsPerBatch", "1000000")  # of the snapshot, and of later changes
        .load()
    )
    query = (
        changes.drop("_gtid", "_ts")
        .writeStream.format("elasticsearch")
        .option("url", os.environ["ELASTICSEARCH"])
        .option("index", "products")
        .option("key", "id")
        .option("opColumn", "_op")
        .option("createIndex", "true")
        .option("checkpointLocation", f"{os.environ['CHECKPOINTS']}/index")
        .trigger(availableNow=True)  # without it, the query follows the table until it is stopped
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
