"""Our sources of streams, as the kit wants them described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from integration.support.servers.elasticsearch import connect as connect_elasticsearch
from integration.support.servers.mysql import connect as connect_mysql
from integration.support.servers.redis import connect as connect_redis

from pyspark_mysql.connector import MySqlConnector
from sparkonce import options
from sparkonce.reading import Scan
from sparkonce.tck.spark.source import StreamingSource


def redis_stream(url: str, key: str, env: Mapping[str, str]) -> StreamingSource:
    """A stream of Redis with this key."""
    client = connect_redis(url)

    def append(ids: Sequence[str]) -> None:
        with client.pipeline(transaction=False) as pipeline:
            for one in ids:
                pipeline.xadd(key, {"id": one})
            pipeline.execute()

    def lose(ids: Sequence[str]) -> None:
        gone = [entry for entry, fields in client.xrange(key) if fields[b"id"].decode() in ids]
        client.xdel(key, *gone)

    def fall_back(ids: Sequence[str]) -> None:
        left = [one for one in client.xrange(key) if one[1][b"id"].decode() not in ids]
        client.delete(key)
        for entry, fields in left:
            client.xadd(key, fields, entry)

    return StreamingSource(
        format="redis",
        options={"url": url, "streams": key, "startingPosition": "earliest"},
        fall_back=fall_back,
        schema="id string",
        latest={"startingPosition": "latest"},
        limit="maxRowsPerBatch",
        ordered=True,
        tolerant={"failOnDataLoss": "false"},
        env=env,
        append=append,
        lose=lose,
        change=append,
    )


def two_streams_of_redis(url: str, key: str, env: Mapping[str, str]) -> StreamingSource:
    """The same, of which another one has every second row."""
    one, other = (redis_stream(url, name, env) for name in (key, f"{key}:other"))

    def append(ids: Sequence[str]) -> None:
        one.append(ids[::2])
        other.append(ids[1::2])

    both = {**one.options, "streams": f"{key},{key}:other"}
    return replace(one, options=both, fewer={"streams": key}, append=append, ordered=False)


def table_of_mysql(url: str, name: str, env: Mapping[str, str]) -> StreamingSource:
    """A new table, of a server whose log can be followed; each row is a transaction."""
    cursor = connect_mysql(url).cursor()
    cursor.execute(f"CREATE TABLE {name} (id VARCHAR(40) PRIMARY KEY, times INT NOT NULL)")

    def append(ids: Sequence[str]) -> None:
        for one in ids:
            cursor.execute(f"INSERT INTO {name} VALUES (%s, 1)", [one])

    def change(ids: Sequence[str]) -> None:
        for one in ids:
            cursor.execute(f"UPDATE {name} SET times = times + 1 WHERE id = %s", [one])

    return StreamingSource(
        format="mysql",
        options={"url": url, "dbtable": name, "startingPosition": _executed(url)},
        latest={"startingPosition": "latest"},
        limit="maxRowsPerBatch",
        ordered=True,
        env=env,
        append=append,
        change=change,
    )


def _executed(url: str) -> str:
    """The transactions that a server has had."""
    given = {"url": url, "dbtable": "none", "startingPosition": "latest"}
    parsed = options.parse(MySqlConnector.follows, given)
    return str(MySqlConnector().feed(parsed, Scan(pa.schema([]))).latest()["gtids"])


def index_of_elasticsearch(url: str, name: str, env: Mapping[str, str]) -> StreamingSource:
    """A new index, of one shard."""
    client = connect_elasticsearch(url)
    fields = {"id": {"type": "keyword"}}
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    client.indices.create(index=name, mappings={"properties": fields}, settings=settings)

    def write(ids: Sequence[str]) -> None:
        lines = [part for one in ids for part in ({"index": {"_id": one}}, {"id": one})]
        assert not client.bulk(index=name, operations=lines)["errors"]

    return StreamingSource(
        format="elasticsearch",
        options={"url": url, "index": name, "startingPosition": "earliest"},
        latest={"startingPosition": "latest"},
        limit="maxRowsPerBatch",
        newest=True,
        env=env,
        append=write,
        change=write,
    )
