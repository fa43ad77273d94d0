"""Recordings of Elasticsearch: mappings, documents and versions of three indices, as JSON."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from integration import counted
from integration.counters import COUNTER
from integration.epochs import ElasticsearchQuery
from integration.history.story import CHUNK, QUERY, tell
from integration.servers.elasticsearch import connect

PREFIX = "history"
TARGET = "history-counters"
INDICES = (TARGET, f"{PREFIX}-ledger", f"{PREFIX}-log")
GUARD = {"type": "object", "enabled": False}
MAPPINGS = {"properties": {"id": {"type": "long"}, "n": {"type": "long"}, "sparkonce": GUARD}}
MODES = {
    "increment": {"key": "id"},
    "append": {},
    "upsert": {"key": "id"},
}


def query(url: str, mode: str) -> ElasticsearchQuery:
    own = {"index": TARGET, "indexPrefix": PREFIX, "chunkRows": CHUNK}
    made = ElasticsearchQuery(COUNTER, url=url, writeMode=mode, **own, **MODES[mode])
    made.query_id = QUERY
    return made


def record(url: str, mode: str) -> str:
    with connect(url) as client:
        client.indices.create(index=TARGET, mappings=MAPPINGS)
        one = query(url, mode)
        one.sink.check()
        tell(one)
        client.indices.refresh(index=",".join(INDICES))
        found = {name: _read(client, name) for name in INDICES}
    return json.dumps(found, indent=1) + "\n"


def load(url: str, recording: str) -> None:
    drop(url)
    with connect(url) as client:
        for name, index in json.loads(recording).items():
            client.indices.create(index=name, mappings=index["mappings"])
            versions = index.get("versions", {})
            for id_, source in index["documents"].items():
                seen = {"version": versions[id_], "version_type": "external"} if versions else {}
                client.index(index=name, id=id_, document=source, **seen)
        client.indices.refresh(index=",".join(INDICES))  # what is long there is listed


def drop(url: str) -> None:
    with connect(url) as client:
        client.indices.delete(index=",".join(INDICES), ignore_unavailable=True)


def counts(url: str) -> Counter[int]:
    with connect(url) as client:
        return counted.counts(client, TARGET)


def _read(client: Any, index: str) -> dict[str, Any]:
    hits = client.search(index=index, size=1000, version=True)["hits"]["hits"]
    hits = sorted(hits, key=lambda hit: hit["_id"])
    return {
        "mappings": client.indices.get_mapping(index=index)[index]["mappings"],
        "documents": {hit["_id"]: hit["_source"] for hit in hits},
        "versions": {hit["_id"]: hit["_version"] for hit in hits},
    }
