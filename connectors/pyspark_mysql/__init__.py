"""``format("mysql")``. Spark imports this module to find `DefaultSource`; no client is imported."""

from sparkonce.spark.source import SinkSource

__all__ = ["DefaultSource"]


class DefaultSource(SinkSource):
    """Exactly-once writes of streams into MySQL and MariaDB."""

    connector = "pyspark_mysql.connector:MySqlConnector"
