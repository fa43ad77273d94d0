"""``format("elasticsearch")``. Spark finds `DefaultSource` here. Imports no client library."""

from sparkonce.spark.source import SinkSource

__all__ = ["DefaultSource"]


class DefaultSource(SinkSource):
    """Exactly-once writes of streams into Elasticsearch."""

    connector = "pyspark_elasticsearch.connector:ElasticsearchConnector"
