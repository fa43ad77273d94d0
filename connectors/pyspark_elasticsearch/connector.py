"""The Elasticsearch connector."""

from pyspark_elasticsearch.search_connector import SearchConnector
from pyspark_elasticsearch.server.elastic import ELASTICSEARCH


class ElasticsearchConnector(SearchConnector):
    """See `SearchConnector`."""

    name, dialect = "elasticsearch", ELASTICSEARCH
