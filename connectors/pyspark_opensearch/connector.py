"""The OpenSearch connector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark_elasticsearch import options as of_elasticsearch
from pyspark_elasticsearch.search_connector import SearchConnector
from pyspark_elasticsearch.server import address
from pyspark_opensearch.dialect import OPENSEARCH
from sparkonce.options import Option

PRODUCT = "Elasticsearch"
PREFIX = "opensearch+"
"""Begins a URL of the command line, where ``https://`` is Elasticsearch's."""


def url(text: str) -> str:
    """Check option ``url``; `ValueError` if it is invalid."""
    return address.url(",".join(one.removeprefix(PREFIX) for one in text.split(",")))


def _of_opensearch(options: Sequence[Option]) -> tuple[Option, ...]:
    """The options, with the name of the product in their meanings."""
    named = (replace(one, meaning=one.meaning.replace(PRODUCT, "OpenSearch")) for one in options)
    return tuple(replace(one, parse=url) if one.name == "url" else one for one in named)


class OpenSearchConnector(SearchConnector):
    """See `SearchConnector`."""

    name, dialect = "opensearch", OPENSEARCH
    options = _of_opensearch(of_elasticsearch.OPTIONS)
    reads = _of_opensearch(of_elasticsearch.READING)
    follows = _of_opensearch(of_elasticsearch.FOLLOWING)
