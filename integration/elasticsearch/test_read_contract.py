"""The kit's rules of reads against real Elasticsearch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.proxy import Proxy
from integration.reading import ConnectorReads

from pyspark_elasticsearch.connector import ElasticsearchConnector
from sparkonce.tck.read_contract import ReadContract, ReadSubject

FIELDS = {
    "id": {"type": "long"},
    "name": {"type": "keyword"},
    "n": {"type": "long"},
    "x": {"type": "double"},
    "flag": {"type": "boolean"},
    "at": {"type": "date"},
}
AT_ONCE = 5000


class ElasticsearchReads(ConnectorReads):
    """An index of one shard, which is read in several slices."""

    connector = ElasticsearchConnector()
    limits: Mapping[str, str] = {
        "draw": "its mappings are drawn by tests of their own",
        "slow": "has tests of its own",
    }

    def __init__(self, proxy: Proxy, client: Elasticsearch, index: str) -> None:
        self.proxy, self.client, self.index = proxy, client, index
        self.raw, self.numbers = {"url": proxy.url, "index": index}, count(1)
        client.indices.create(index=index, mappings={"dynamic": "strict", "properties": FIELDS})

    def fill(self, table: pa.Table) -> None:
        lines = [
            json.dumps({"create": {"_id": str(row["id"])}})
            + "\n"
            + json.dumps({**row, "at": row["at"] and row["at"].isoformat()})
            for row in table.to_pylist()
        ]
        for at in range(0, len(lines), AT_ONCE):
            body = "\n".join(lines[at : at + AT_ONCE]) + "\n"
            told = self.client.bulk(index=self.index, body=body)
            assert not told["errors"], told["items"][0]
        self.client.indices.refresh(index=self.index)

    def churn(self) -> None:
        number = next(self.numbers)
        self.client.index(
            index=self.index, id=f"new{number}", document={"id": -number}, refresh=True
        )
        self.client.options(ignore_status=404).delete(index=self.index, id=f"new{number // 2}")

    def spoil(self) -> str:
        self.client.index(index=self.index, document={"n": [1, 2]}, refresh=True)
        return "n"


class TestElasticsearchReads(ReadContract):
    @pytest.fixture
    def reading(
        self, elasticsearch_proxy: Proxy, elastic: Elasticsearch, index: str
    ) -> ReadSubject:
        return ElasticsearchReads(elasticsearch_proxy, elastic, index)
