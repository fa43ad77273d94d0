"""``format("sparkonce_opensearch")``, a name that no jar has; see `pyspark_opensearch`."""

from pyspark_opensearch import DefaultSource as OpenSearch

__all__ = ["DefaultSource"]


class DefaultSource(OpenSearch):
    """See `pyspark_opensearch.DefaultSource`."""
