"""``format("redis")``. Spark imports this module for `DefaultSource`; it imports no driver."""

from sparkonce.spark.source import SinkSource

__all__ = ["DefaultSource"]


class DefaultSource(SinkSource):
    """Exactly-once writes of streams to Redis."""

    connector = "pyspark_redis.connector:RedisConnector"
