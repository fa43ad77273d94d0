"""The kit against a real Elasticsearch: rows that are appended, and rows that are added up."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import has_script_processor
from integration.support.servers.elasticsearch import connect

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.journal.indices import definition
from sparkonce.tck.connector_subject import ConnectorSubject
from sparkonce.tck.store_contract import StoreContract
from sparkonce.tck.subject import NewSubject

pytestmark = [pytest.mark.slow, pytest.mark.variants]

WORLDS = 4
TARGET = {
    "settings": {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "-1"},
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "n": {"type": "long"},
            "sparkonce": {"type": "object", "enabled": False},
        },
    },
}
REFUSING = "sparkonce-kit-refuses"


class ElasticsearchSubject(ConnectorSubject):
    """Indices of its own. A row is appended, or adds to the document of its id."""

    pace = 200

    def __init__(self, url: str, world: str, mode: str) -> None:
        self.limits = {"whole epochs": "an index shows each document by itself"}
        self.world, self.mode, self.client = world, mode, connect(url)
        if mode == "append" and not has_script_processor(self.client):
            self.limits |= {"refusal": "this server has no script processor to refuse rows with"}
        self.indices = f"{world}-ledger", f"{world}-log", f"{world}-target"
        options = {"url": url, "index": self.indices[2], "indexPrefix": world, "writeMode": mode}
        if mode == "increment":
            options["key"] = "id"
        nowhere = {"url": "http://127.0.0.1:1", "timeout": "2"}
        super().__init__(ElasticsearchConnector(), options, nowhere=nowhere)

    def took_effect(self) -> Counter[str]:
        target = self.indices[2]
        self.client.indices.refresh(index=target)
        sums = {"n": {"sum": {"field": "n"}}}
        by = {"by": {"terms": {"field": "id", "size": 50_000}, "aggs": sums}}
        found = self.client.search(index=target, size=0, aggs=by)["aggregations"]["by"]["buckets"]
        return Counter({bucket["key"]: int(bucket["n"]["value"]) for bucket in found})

    def refuse(self, row: str) -> Callable[[], None]:
        """Let the mapping refuse it: its number becomes a word; or let its sum be too large."""
        if self.mode == "increment":
            self.client.index(index=self.indices[2], id=row, document={"n": 2**63 - 1})
            return lambda: self.client.delete(index=self.indices[2], id=row)
        words = {"script": {"source": f"if (ctx.id == '{row}') ctx.n = 'a word'"}}
        self.client.ingest.put_pipeline(id=REFUSING, processors=[words])
        self._settings({"index.final_pipeline": REFUSING})
        return lambda: self._settings({"index.final_pipeline": None})

    def settle(self) -> None:
        self.client.indices.refresh(index=self.indices[1])

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        self.client.indices.refresh(index=",".join(self.indices))
        found = {}
        for index in self.indices:
            hits = self.client.search(index=index, size=10_000, version=True)["hits"]["hits"]
            found[index] = hits
        return found

    def restore(self, state: Any) -> None:
        self.empty()
        for index, hits in state.items():
            for hit in hits:
                self.client.index(index=index, id=hit["_id"], document=hit["_source"])
        self.client.indices.refresh(index=",".join(self.indices))

    def empty(self) -> None:
        everything = ",".join(self.indices)
        self.client.indices.refresh(index=everything)
        self.client.delete_by_query(
            index=everything, query={"match_all": {}}, refresh=True, conflicts="proceed"
        )

    def _settings(self, settings: dict[str, Any]) -> None:
        self.client.indices.put_settings(index=self.indices[2], settings=settings)


def make_world(client: Elasticsearch, name: str) -> None:
    bodies = {"ledger": definition("ledger"), "log": definition("log"), "target": TARGET}
    for part, body in bodies.items():
        client.options(ignore_status=404).indices.delete(index=f"{name}-{part}")
        client.indices.create(index=f"{name}-{part}", **body)


@pytest.fixture(scope="module")
def worlds(elasticsearch_server: Any) -> Iterator[list[str]]:
    """Names of worlds that the checks use in turns."""
    names = [f"kit-{number}" for number in range(WORLDS)]
    with connect(elasticsearch_server.url) as client:
        for name in names:
            make_world(client, name)
        yield names
        for name in names:
            client.indices.delete(index=f"{name}-ledger,{name}-log,{name}-target")


@pytest.fixture(params=["append", pytest.param("increment", marks=pytest.mark.slow)])
def new_subject(
    request: pytest.FixtureRequest,
    worlds: list[str],
    elasticsearch_url: str,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[NewSubject]:
    caplog.set_level(logging.CRITICAL, logger="sparkonce")
    numbers = count()
    made: list[ElasticsearchSubject] = []

    def make() -> ElasticsearchSubject:
        world = worlds[next(numbers) % WORLDS]
        subject = ElasticsearchSubject(elasticsearch_url, world, request.param)
        subject.empty()
        made.append(subject)
        return subject

    yield make
    for subject in made:
        subject.client.close()


class TestElasticsearchStore(StoreContract):
    pass
