"""Indices of counters, and queries that add to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from integration.support.counters import COUNTER
from integration.support.documents import documents
from integration.support.epochs import ElasticsearchQuery

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch


def make_counters(client: Elasticsearch, index: str, kind: str = "long", **settings: object) -> str:
    """Make the index, for counts of this type; its name."""
    fields = {
        "id": {"type": "long"},
        "n": {"type": kind},
        "sparkonce": {"type": "object", "enabled": False},
    }
    client.indices.create(
        index=index,
        settings={"number_of_replicas": 0, **settings},
        mappings={"dynamic": "strict", "properties": fields},
    )
    return index


def counting(url: str, index: str, **options: str) -> ElasticsearchQuery:
    given = {"url": url, "index": index, "key": "id", "writeMode": "increment", "chunkRows": "4"}
    return ElasticsearchQuery(COUNTER, **{**given, **options})


def counting_anew(url: str, **options: str) -> ElasticsearchQuery:
    """The same into `counters`, an index that it makes itself, on a node of the test's own."""
    made = {"createIndex": "true", "chunkRows": "500", "timeout": "10"}
    return counting(url, "counters", **{**made, **options})


def counts(client: Elasticsearch, index: str) -> Counter[int]:
    """How often each row took effect: a multiset."""
    found: Counter[int] = Counter()
    for one in documents(client, index).values():
        found[one["id"]] += one["n"]
    return found


def set_block(client: Elasticsearch, index: str, name: str, on: bool | None) -> None:
    """Let the index have such a block, or none."""
    client.indices.put_settings(index=index, settings={f"index.blocks.{name}": on})
