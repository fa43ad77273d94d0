"""A change stream, as Debezium writes it to Kafka, applied to a table and to an index.

Addresses come from the environment: KAFKA, MYSQL, ELASTICSEARCH, and CHECKPOINTS, a folder.
"""

import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROW = "STRUCT<id: BIGINT, name: STRING, stock: INT>"
CHANGE = f"op STRING, before {ROW}, after {ROW}, source STRUCT<pos: BIGINT>"


def main() -> None:
    spark = SparkSession.builder.appName("products").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA"])
        .option("subscribe", "products")
        .option("startingOffsets", "earliest")
        .load()
    )
    changes = records.select(f.from_json(f.col("value").cast("string"), CHANGE).alias("c")).select(
        "c.op",
        f.coalesce("c.after.id", "c.before.id").alias("id"),
        f.col("c.after.name").alias("name"),
        f.col("c.after.stock").alias("stock"),
        f.col("c.source.pos").alias("pos"),
    )
    into_table = changes.writeStream.format("mysql").options(
        url=os.environ["MYSQL"],
        dbtable="products",
        key="id",
        opColumn="op",
        sequenceColumn="pos",  # the latest change of a key wins, whatever partition it is in
        createTable="true",
    )
    into_index = changes.writeStream.format("elasticsearch").options(
        url=os.environ["ELASTICSEARCH"],
        index="products",
        key="id",
        opColumn="op",
        versionColumn="pos",
        createIndex="true",
    )
    queries = [
        sink.option("checkpointLocation", f"{os.environ['CHECKPOINTS']}/{name}")
        .trigger(availableNow=True)
        .start()
        for name, sink in (("table", into_table), ("index", into_index))
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main()
