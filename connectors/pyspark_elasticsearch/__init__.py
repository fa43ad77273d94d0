"""``format("elasticsearch")``. Spark imports this module to find `DefaultSource`; no driver."""

from sparkonce.spark.source import SinkSource

__all__ = ["DefaultSource"]


class DefaultSource(SinkSource):
    """Exactly-once writes of streams into Elasticsearch."""

    connector = "pyspark_elasticsearch.connector:ElasticsearchConnector"
