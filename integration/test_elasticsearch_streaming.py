"""`format("elasticsearch")` under the streaming half of the kit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.servers.elasticsearch import connect

from sparkonce.tck.streaming import StreamingContract, StreamingSink

FIELDS = {"id": {"type": "keyword"}, "n": {"type": "long"}}


def counters(url: str, index: str) -> Counter[str]:
    """How often each id was added: the documents' numbers, all of them added up."""
    found: Counter[str] = Counter()
    after: list[Any] | None = None
    with connect(url) as client:
        client.indices.refresh(index=index)
        while True:
            hits = client.search(
                index=index,
                size=10_000,
                sort=["id", "_doc"],
                search_after=after,
                _source=["id", "n"],
            )["hits"]["hits"]
            for hit in hits:
                found[hit["_source"]["id"]] += hit["_source"]["n"]
            if len(hits) < 10_000:
                return found
            after = hits[-1]["sort"]


class TestElasticsearchStreaming(StreamingContract):
    """Rows are added to counters (`increment`), or each is a document (`append`)."""

    @pytest.fixture(params=["increment", "append"])
    def sink(
        self,
        request: pytest.FixtureRequest,
        elastic: Elasticsearch,
        elasticsearch_url: str,
        index: str,
        tmp_path: Path,
    ) -> Any:
        guard = {"sparkonce": {"type": "object", "enabled": False}}
        elastic.indices.create(
            index=index,
            settings={"number_of_replicas": 0},
            mappings={"dynamic": "strict", "properties": {**FIELDS, **guard}},
        )
        options = {"url": elasticsearch_url, "index": index, "writeMode": request.param}
        if request.param == "increment":
            options["key"] = "id"
        return StreamingSink(
            read=lambda: counters(elasticsearch_url, index),
            name=f"elasticsearch {request.param}",
            format="elasticsearch",
            options=options,
            env={"JAVA_HOME": str(java_home(tmp_path))},
        )
