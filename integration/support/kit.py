"""Descriptions of the project's sinks, sources and readers for the kit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

import pyarrow as pa
from integration.support.proxy import Proxy
from integration.support.runs import hashes
from integration.support.servers import elasticsearch as elastic
from integration.support.servers import mysql, redis
from pyspark.sql import SparkSession

from pyspark_mysql.connector import MySqlConnector
from sparkonce import options
from sparkonce.reading import Scan, Source
from sparkonce.tck.read_contract import ReadSubject
from sparkonce.tck.spark.sink import StreamingSink
from sparkonce.tck.spark.source import StreamingSource

FIELDS = {
    "id": {"type": "keyword"},
    "n": {"type": "long"},
    "sparkonce": {"type": "object", "enabled": False},
}


def counting(url: str, name: str, **described: Any) -> StreamingSink:
    """The sink of a URL's store; it adds to one counter for each id.

    Args:
        url: the URL of the store.
        name: the name of the table or the index, or the prefix of all keys.
        described: more attributes of the `StreamingSink`.
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
    """Create an index that accepts only these fields."""
    with elastic.connect(url) as client:
        client.indices.create(
            index=name,
            settings={"number_of_replicas": 0},
            mappings={"dynamic": "strict", "properties": FIELDS},
        )


def in_redis(url: str, name: str) -> Counter[str]:
    """The counter of each id: the number of its effects."""
    return Counter({key: int(fields["n"]) for key, fields in hashes(url, name).items()})


def in_mysql(url: str, table: str) -> Counter[str]:
    """The number of times that each id was added."""
    with mysql.connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT id, n FROM {table}")
        return Counter({name: int(times) for name, times in cursor.fetchall()})


def in_elasticsearch(url: str, index: str) -> Counter[str]:
    """The number of times that each id was added: the sum of its documents' numbers."""
    from elasticsearch.helpers import scan

    found: Counter[str] = Counter()
    with elastic.connect(url) as client:
        client.indices.refresh(index=index)
        for hit in scan(client, index=index, size=10_000):
            found[hit["_source"]["id"]] += hit["_source"]["n"]
    return found


def redis_stream(url: str, key: str, env: Mapping[str, str]) -> StreamingSource:
    """A stream of Redis with this key."""
    client = redis.connect(url)

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
    """The same, with every second row in another stream."""
    one, other = (redis_stream(url, name, env) for name in (key, f"{key}:other"))

    def append(ids: Sequence[str]) -> None:
        one.append(ids[::2])
        other.append(ids[1::2])

    both = {**one.options, "streams": f"{key},{key}:other"}
    return replace(one, options=both, fewer={"streams": key}, append=append, ordered=False)


def table_of_mysql(url: str, name: str, env: Mapping[str, str]) -> StreamingSource:
    """A new table on a server whose log can be followed; each row is a transaction."""
    return _rows_of_mysql(url, [name], name, env)


def tables_of_mysql(url: str, name: str, env: Mapping[str, str]) -> StreamingSource:
    """Three new tables in one stream; the rows of an append are spread over them."""
    mysql.connect(url).cursor().execute("SET GLOBAL binlog_row_metadata = FULL")
    found = _rows_of_mysql(url, [f"{name}_{at}" for at in range(3)], f"{name}_*", env)
    fewer = {"dbtable": f"{name}_*,!{name}_0"}
    return replace(found, column="get_json_object(_row, '$.id')", fewer=fewer)


def _rows_of_mysql(
    url: str, tables: Sequence[str], dbtable: str, env: Mapping[str, str]
) -> StreamingSource:
    cursor = mysql.connect(url).cursor()
    for name in tables:
        cursor.execute(f"CREATE TABLE {name} (id VARCHAR(40) PRIMARY KEY, times INT NOT NULL)")

    def table(one: str) -> str:
        return tables[crc32(one.encode()) % len(tables)]

    def append(ids: Sequence[str]) -> None:
        for one in ids:
            cursor.execute(f"INSERT INTO {table(one)} VALUES (%s, 1)", [one])

    def change(ids: Sequence[str]) -> None:
        for one in ids:
            cursor.execute(f"UPDATE {table(one)} SET times = times + 1 WHERE id = %s", [one])

    return StreamingSource(
        format="mysql",
        options={"url": url, "dbtable": dbtable, "startingPosition": _executed(url)},
        latest={"startingPosition": "latest"},
        limit="maxRowsPerBatch",
        ordered=True,
        env=env,
        append=append,
        change=change,
    )


def _executed(url: str) -> str:
    """The transactions that a server has executed."""
    given = {"url": url, "dbtable": "none", "startingPosition": "latest"}
    parsed = options.parse(MySqlConnector.follows, given)
    return str(MySqlConnector().feed(parsed, Scan(pa.schema([]))).latest()["gtids"])


def index_of_elasticsearch(url: str, name: str, env: Mapping[str, str]) -> StreamingSource:
    """A new index with one shard."""
    client = elastic.connect(url)
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


class ConnectorReads(ReadSubject):
    """A connector's reader, behind a proxy that makes the network fail.

    Attributes:
        connector: makes the reader.
        raw: the options of a read.
    """

    connector: Any
    proxy: Proxy
    raw: dict[str, str]

    def _options(self) -> options.Options:
        return options.parse(self.connector.reads, {"timeout": "5", **self.raw})

    def infer(self) -> pa.Schema:
        return self.connector.infer(self._options())

    def source(self, scan: Scan) -> Source:
        found: Source = self.connector.source(self._options(), scan)
        return found

    @contextmanager
    def outage(self) -> Iterator[Callable[[], None]]:
        def begin() -> None:
            self.proxy.refuse()
            self.proxy.disconnect()

        try:
            yield begin
        finally:
            self.proxy.restore()


@contextmanager
def pushing(spark: SparkSession) -> Iterator[None]:
    """Let Spark push conditions down inside the block."""
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    try:
        yield
    finally:
        spark.conf.unset(name)
