"""The kit's rules of reads against real Elasticsearch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from random import Random

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch_reading import MANY_SLOW, SLOW, searches
from integration.support.proxy import Proxy
from integration.support.reading import ConnectorReads

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
WHOLE = (-1, 0, 1, 99, 100, "5", 1.0)
TEXTS = ("", " ", "a", "A", "á", "ab", "a*", "a?b", "\\", "long " * 9, "1", "1.10", "true", "😀", 5)
DATES = (
    *("0001-01-01", "9999-12-31T23:59:59.999Z", "1969-12-31T23:59:59.9999Z", "1970-01-01"),
    *("2026-03-29T01:30:00.123456Z", 1700000000000),
)
DRAWN: list[tuple[dict[str, object], Sequence[object]]] = [
    *(({"type": kind}, WHOLE) for kind in ("byte", "short", "integer", "long")),
    ({"type": "byte"}, (-128, 127)),
    ({"type": "long"}, (-(2**63), -(2**53) - 1, 2**53 + 1, 2**63 - 1)),
    ({"type": "long", "null_value": 7}, (7, 8)),
    ({"type": "long", "index": False}, WHOLE),
    ({"type": "long", "doc_values": False}, WHOLE),
    ({"type": "long", "ignore_malformed": True}, (1, 2, 3)),
    *(({"type": kind}, (0.0, -0.0, 0.1, 1.5, -2.5)) for kind in ("double", "float", "half_float")),
    ({"type": "double"}, (5e-324, 1.7976931348623157e308, 2.0**53, 1 / 3)),
    ({"type": "boolean"}, (True, False, "true", "false", "")),
    ({"type": "keyword"}, TEXTS),
    ({"type": "keyword"}, (1.5, True, 7, "1.5", "\uffffb", "\U0001f600a")),
    ({"type": "keyword", "index": False}, TEXTS),
    ({"type": "keyword", "ignore_above": 5}, TEXTS),
    ({"type": "keyword", "normalizer": "low"}, TEXTS),
    ({"type": "keyword", "null_value": "none"}, TEXTS),
    ({"type": "text"}, TEXTS),
    ({"type": "ip"}, ("10.0.0.1", "::1", "0:0:0:0:0:0:0:1")),
    ({"type": "date"}, DATES),
    ({"type": "date", "format": "epoch_second"}, (0, 1, 1700000000)),
    ({"type": "date_nanos"}, ("2026-03-29T01:30:00.123456789Z", "1970-01-01T00:00:00Z")),
]
"""Mappings of a field, and values that it takes."""


class ElasticsearchReads(ConnectorReads):
    """An index of one shard, which is read in several slices."""

    connector = ElasticsearchConnector()
    columns = 4
    words = ("sort", "fields", "hits", "pit_id", "timed_out", "total")

    def __init__(self, proxy: Proxy, client: Elasticsearch, index: str) -> None:
        self.proxy, self.client, self.index = proxy, client, index
        self.raw, self.numbers = {"url": proxy.url, "index": index}, count(1)
        client.indices.create(index=index, mappings={"dynamic": "strict", "properties": FIELDS})

    def fill(self, table: pa.Table) -> None:
        further = {name: {"type": "long"} for name in table.column_names if name not in FIELDS}
        self.client.indices.put_mapping(index=self.index, properties=further)
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

    def draw(self, random: Random) -> str:
        mapping, values = random.choice(DRAWN)
        settings = {"analysis": {"normalizer": {"low": {"type": "custom", "filter": "lowercase"}}}}
        self.index = self.raw["index"] = f"{self.index.partition('.')[0]}.{next(self.numbers)}"
        properties = {"v": mapping, "other": {"type": "long"}}
        self.client.indices.create(
            index=self.index, settings=settings, mappings={"properties": properties}
        )
        rows = [*values, *random.choices([*values, None], k=60)]
        lines = ('{"create": {}}\n' + json.dumps({"v": one, "other": 1}) for one in rows)
        self.client.bulk(index=self.index, body="\n".join(lines) + "\n", refresh=True)
        return str(mapping)

    @contextmanager
    def slow(self) -> Iterator[Callable[[], int]]:
        """A query that computes for a while of each document, of thousands."""
        lines = ['{"create": {}}', '{"id": 1}'] * MANY_SLOW
        self.client.bulk(index=self.index, body="\n".join(lines) + "\n", refresh=True)
        self.raw |= {"timeout": "0.3", "query": SLOW}
        yield lambda: sum(self.index in one for one in searches(self.client))

    def spoil(self) -> str:
        self.client.index(index=self.index, document={"n": [1, 2]}, refresh=True)
        return "n"


class TestElasticsearchReads(ReadContract):
    @pytest.fixture
    def reading(
        self, elasticsearch_proxy: Proxy, elastic: Elasticsearch, index: str
    ) -> ReadSubject:
        return ElasticsearchReads(elasticsearch_proxy, elastic, index)
