"""Counters in each store, as the kit fills and reads them: new ones under a name that is free."""

from __future__ import annotations

from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from integration.support.servers import elasticsearch as elastic
from integration.support.servers import mysql, redis

from sparkonce.tck.spark.sink import StreamingSink

FIELDS = {
    "id": {"type": "keyword"},
    "n": {"type": "long"},
    "sparkonce": {"type": "object", "enabled": False},
}


def counting(url: str, name: str, **described: Any) -> StreamingSink:
    """The sink that a URL tells of; it adds to counters, each of an id.

    Args:
        url: of the store.
        name: of the table or the index, or the beginning of all keys.
        described: more of the `StreamingSink`.
    """
    make = {"redis": _redis, "mysql": _mysql}.get(urlsplit(url).scheme, _elasticsearch)
    return make(url, name, described)


def _redis(url: str, name: str, described: dict[str, Any]) -> StreamingSink:
    options = {"url": url, "key": f"{name}:{{id}}", "writeMode": "increment"}
    return StreamingSink(lambda: in_redis(url, name), format="redis", options=options, **described)


def _mysql(url: str, name: str, described: dict[str, Any]) -> StreamingSink:
    with mysql.connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} (id VARCHAR(100) PRIMARY KEY, n BIGINT)")
    options = {"url": url, "dbtable": name, "key": "id", "writeMode": "increment"}
    return StreamingSink(lambda: in_mysql(url, name), format="mysql", options=options, **described)


def _elasticsearch(url: str, name: str, described: dict[str, Any]) -> StreamingSink:
    make_index(url, name)
    options = {"url": url, "index": name, "key": "id", "writeMode": "increment"}
    return StreamingSink(
        lambda: in_elasticsearch(url, name), format="elasticsearch", options=options, **described
    )


def make_index(url: str, name: str) -> None:
    """Make an index that takes these fields alone."""
    with elastic.connect(url) as client:
        client.indices.create(
            index=name,
            settings={"number_of_replicas": 0},
            mappings={"dynamic": "strict", "properties": FIELDS},
        )


def in_redis(url: str, name: str) -> Counter[str]:
    """The counter of each id: how often it took effect."""
    with redis.connect(url) as client:
        keys = list(client.scan_iter(f"{name}:*", count=10_000))
        with client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hget(key, "n")
            counted = zip(keys, pipe.execute(), strict=True)
            return Counter({key.decode().split(":", 1)[1]: int(times) for key, times in counted})


def in_mysql(url: str, table: str) -> Counter[str]:
    """How often each id was added."""
    with mysql.connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT id, n FROM {table}")
        return Counter({name: int(times) for name, times in cursor.fetchall()})


def in_elasticsearch(url: str, index: str) -> Counter[str]:
    """How often each id was added: the documents' numbers, all of them added up."""
    found: Counter[str] = Counter()
    after: list[Any] | None = None
    with elastic.connect(url) as client:
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
