"""A database of MySQL as indices: every table, with all its changes, in the index of its name.

Tables that are created later join. Columns that an ALTER adds come with the next rows, and a
TRUNCATE empties the index. Addresses come from the environment: MYSQL, ELASTICSEARCH, and
CHECKPOINTS, a folder.
"""

import os

from pyspark.sql import SparkSession


def main() -> None:
    spark = SparkSession.builder.appName("database").getOrCreate()
    changes = (
        spark.readStream.format("mysql")
        .option("url", os.environ["MYSQL"])
        .option("dbtable", "shop.*")
        .option("startingPosition", "snapshot")
        .option("onSchemaChange", "continue")
        .option("onTruncate", "row")
        .option("maxRowsPerBatch", "5000")
        .load()
    )
    query = (
        changes.writeStream.format("elasticsearch")
        .option("url", os.environ["ELASTICSEARCH"])
        .option("index", "{_table}")  # shop.film, shop.actor, ...
        .option("key", "_key")
        .option("rowColumn", "_row")
        .option("opColumn", "_op")
        .option("checkpointLocation", f"{os.environ['CHECKPOINTS']}/database")
        .trigger(availableNow=True)  # without it, the query goes on until it is stopped
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
