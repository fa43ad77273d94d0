"""The clusters as sources: a feeder writes rows into them, and a query follows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pymysql
import redis
from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan
from integration.support.servers.mysql import connect as connect_mysql
from integration.support.servers.redis import connect as connect_redis
from tools.partitions.cluster import Cluster

NAME = "events"
"""The stream, the table or the index."""

GTIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::\d+(?:-\d+)?)+")
"""The transactions of one server that an error names."""

ACKNOWLEDGED, UNKNOWN = True, False


class Source(ABC):
    """The writes of the feeder, and the options of the query.

    Attributes:
        format: of the query's source.
        columns: SQL expressions of the columns `n` and `entry`.
        schema: the schema of the source; empty if the source knows it.
    """

    format: str
    columns: tuple[str, ...]
    schema = ""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def prepare(self) -> None:  # noqa: B027
        """Create the table or the index."""

    @abstractmethod
    def options(self) -> Mapping[str, str]:
        """The options of the source, except `failOnDataLoss`."""

    @abstractmethod
    def write(self, numbers: range, through: str) -> bool:
        """Write a row for each number through a server; return whether the cluster has them all."""

    @abstractmethod
    def stored(self) -> Counter[int]:
        """The numbers that the cluster has."""

    def confirms(self, note: str) -> bool:  # noqa: ARG002 (each store names losses its own way)
        """Whether the cluster lacks what a query named as lost, of which the target has no row."""
        return False


class RedisSource(Source):
    """A Redis stream; an acknowledged entry is on as many replicas as the cluster asks for."""

    format, columns, schema = "redis", ("n", "_id as entry"), "_id string, n bigint"

    def options(self) -> Mapping[str, str]:
        return {"url": self.cluster.sink_url, "streams": NAME, "startingPosition": "earliest"}

    def write(self, numbers: range, through: str) -> bool:
        replicas = int(self.cluster.options("rows")["waitReplicas"])
        try:
            with connect_redis(through) as client:
                for n in numbers:
                    client.xadd(NAME, {"n": n})
                return not replicas or client.wait(replicas, 2000) >= replicas
        except redis.RedisError:
            return UNKNOWN

    def stored(self) -> Counter[int]:
        with connect_redis(self.cluster.home_of(NAME)) as client:
            return Counter(int(fields[b"n"]) for _, fields in client.xrange(NAME))


class MySqlSource(Source):
    """A table, followed in the binary log."""

    format, columns = "mysql", ("n", "cast(n as string) as entry")

    def prepare(self) -> None:
        self._run(f"CREATE TABLE {NAME} (n BIGINT PRIMARY KEY)")

    def options(self) -> Mapping[str, str]:
        table = {"dbtable": NAME, "startingPosition": "snapshot"}
        return {"url": self.cluster.sink_url, **table, "columns": "n"}

    def write(self, numbers: range, through: str) -> bool:
        values = ", ".join(f"({n})" for n in numbers)
        try:
            self._run(f"INSERT INTO {NAME} VALUES {values}", through)
        except pymysql.MySQLError:
            return UNKNOWN
        return ACKNOWLEDGED

    def stored(self) -> Counter[int]:
        return Counter(n for (n,) in self._run(f"SELECT n FROM {NAME}"))

    def confirms(self, note: str) -> bool:
        """See `Source.confirms`. A reader may meet a transaction before replicas have it."""
        named = ",".join(GTIDS.findall(note))
        if not named:
            return False
        absent = f"GTID_SUBTRACT('{named}', @@GLOBAL.gtid_executed)"
        ((is_absent,),) = self._run(f"SELECT GTID_SUBTRACT('{named}', {absent}) = ''")
        return bool(is_absent)

    def _run(self, statement: str, through: str = "") -> tuple[tuple[Any, ...], ...]:
        how = {"connect_timeout": 2, "read_timeout": 5, "write_timeout": 5}
        with (
            closing(connect_mysql(through or self.cluster.url, **how)) as client,
            client.cursor() as cursor,
        ):
            cursor.execute(statement)
            return tuple(cursor.fetchall())


class ElasticsearchSource(Source):
    """An index with a replica of each shard, followed by sequence numbers."""

    format, columns = "elasticsearch", ("n", "_id as entry")
    schema = "_id string, n bigint"

    def prepare(self) -> None:
        with closing(self._client()) as client:
            mappings = {"properties": {"n": {"type": "long"}}}
            client.indices.create(index=NAME, settings={"number_of_replicas": 1}, mappings=mappings)

    def options(self) -> Mapping[str, str]:
        return {"url": self.cluster.sink_url, "index": NAME, "startingPosition": "earliest"}

    def write(self, numbers: range, through: str) -> bool:
        actions = [
            part
            for n in numbers
            for part in ({"create": {"_index": NAME, "_id": str(n)}}, {"n": n})
        ]
        try:
            with closing(self._client(through)) as client:
                return not client.bulk(operations=actions)["errors"]
        except Exception:  # the client raises various errors
            return UNKNOWN

    def stored(self) -> Counter[int]:
        with closing(self._client()) as client:
            client.indices.refresh(index=NAME)
            return Counter(hit["_source"]["n"] for hit in scan(client, index=NAME, size=10_000))

    def _client(self, through: str = "") -> Elasticsearch:
        return Elasticsearch(through or self.cluster.url, request_timeout=10, max_retries=0)


def source_of(cluster: Cluster) -> Source:
    """The source of a cluster, by the format of its sinks."""
    kinds = (RedisSource, MySqlSource, ElasticsearchSource)
    found: type[Source] = next(one for one in kinds if one.format == cluster.format)
    return found(cluster)
