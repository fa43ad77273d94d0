"""How a client of the cluster is made, without a server."""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import pytest

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.server.client import Cluster
from sparkonce import connections, options


def test_renewed_certificates_are_read_by_the_next_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients are closed while idle, and made anew by what the first cluster lent."""
    read: list[int] = []

    def context(_: Mapping[str, str]) -> ssl.SSLContext:
        read.append(len(read))
        return ssl.create_default_context()

    monkeypatch.setattr(connections, "_processes", {})
    monkeypatch.setattr("pyspark_elasticsearch.server.client.connections.tls_context", context)
    raw = {"url": "https://localhost:1", "index": "orders"}
    lent = Cluster(options.parse(ElasticsearchConnector.options, raw))._lent
    for _ in range(2):
        before = len(read)
        with lent.client():
            assert len(read) == before + 1
        lent.close_idle()
