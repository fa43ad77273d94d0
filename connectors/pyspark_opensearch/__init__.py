"""``format("opensearch")``. Spark finds `DefaultSource` here. Imports no client library."""

from sparkonce.spark.source import SinkSource

__all__ = ["DefaultSource"]


class DefaultSource(SinkSource):
    """Exactly-once writes of streams into OpenSearch."""

    connector = "pyspark_opensearch.connector:OpenSearchConnector"
