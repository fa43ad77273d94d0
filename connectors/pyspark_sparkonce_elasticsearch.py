"""``format("sparkonce_elasticsearch")``, a name that no jar has; see `pyspark_elasticsearch`."""

from pyspark_elasticsearch import DefaultSource as Elasticsearch

__all__ = ["DefaultSource"]


class DefaultSource(Elasticsearch):
    """See `pyspark_elasticsearch.DefaultSource`."""
