"""Recordings of Elasticsearch: mappings and documents of three indices, as JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from integration.counters import COUNTER
from integration.epochs import ElasticsearchQuery
from integration.history.story import CHUNK, QUERY, tell
from integration.servers.elasticsearch import connect

PREFIX = "history"
TARGET = "history-counters"
INDICES = (TARGET, f"{PREFIX}-ledger", f"{PREFIX}-log")
GUARD = {"type": "object", "enabled": False}
MAPPINGS = {"properties": {"id": {"type": "long"}, "n": {"type": "long"}, "sparkonce": GUARD}}


def query(url: str) -> ElasticsearchQuery:
    made = ElasticsearchQuery(
        COUNTER,
        url=url,
        index=TARGET,
        key="id",
        writeMode="increment",
        indexPrefix=PREFIX,
        chunkRows=CHUNK,
    )
    made.query_id = QUERY
    return made


def record(url: str) -> str:
    with connect(url) as client:
        client.indices.create(index=TARGET, mappings=MAPPINGS)
        one = query(url)
        one.sink.store.check()
        tell(one)
        client.indices.refresh(index=",".join(INDICES))
        found = {name: _read(client, name) for name in INDICES}
    return json.dumps(found, indent=1) + "\n"


def load(url: str, recording: str) -> None:
    drop(url)
    with connect(url) as client:
        for name, index in json.loads(recording).items():
            client.indices.create(index=name, mappings=index["mappings"])
            for id_, source in index["documents"].items():
                client.index(index=name, id=id_, document=source)


def drop(url: str) -> None:
    with connect(url) as client:
        client.options(ignore_status=404).indices.delete(index=",".join(INDICES))


def counts(url: str) -> Counter[int]:
    with connect(url) as client:
        client.indices.refresh(index=TARGET)
        hits = client.search(index=TARGET, size=1000)["hits"]["hits"]
        return Counter({int(hit["_id"]): int(hit["_source"]["n"]) for hit in hits})


def _read(client: Any, index: str) -> dict[str, Any]:
    hits = client.search(index=index, size=1000)["hits"]["hits"]
    return {
        "mappings": client.indices.get_mapping(index=index)[index]["mappings"],
        "documents": {hit["_id"]: hit["_source"] for hit in sorted(hits, key=lambda h: h["_id"])},
    }
