"""Orders from Kafka into MySQL and Elasticsearch, their sums into Redis, each exactly once.

Addresses come from the environment: KAFKA, REDIS, MYSQL, ELASTICSEARCH, and CHECKPOINTS, a folder.
"""

import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ORDER = "order_id BIGINT, customer STRING, cents BIGINT"


def main() -> None:
    spark = SparkSession.builder.appName("orders").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", os.environ["KAFKA"])
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    order = f.from_json(f.col("value").cast("string"), ORDER).alias("order")
    orders = records.select(order).select("order.*")
    sums = orders.select("customer", f.lit(1).alias("orders"), "cents")
    sinks = {
        "mysql": orders.writeStream.format("mysql").options(
            url=os.environ["MYSQL"], dbtable="orders", key="order_id", createTable="true"
        ),
        "elasticsearch": orders.writeStream.format("elasticsearch").options(
            url=os.environ["ELASTICSEARCH"], index="orders", key="order_id", createIndex="true"
        ),
        "redis": sums.writeStream.format("redis").options(
            url=os.environ["REDIS"], key="customer:{customer}", writeMode="increment"
        ),
    }
    queries = [
        sink.option("checkpointLocation", f"{os.environ['CHECKPOINTS']}/{name}")
        .trigger(availableNow=True)
        .start()
        for name, sink in sinks.items()
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main()
