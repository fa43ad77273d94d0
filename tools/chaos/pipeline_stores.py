"""The stores of the pipelines: writes to the sources, and compares sources with targets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pymysql
import redis
from elasticsearch import Elasticsearch
from integration.support.proxy import Proxy
from integration.support.servers import mysql
from integration.support.servers.elasticsearch import ElasticsearchProcess, private_tree, version_at
from integration.support.servers.mysql import MySqlProcess, private_binary
from integration.support.servers.redis import RedisProcess, describe_private
from tools.chaos.elasticsearch import LONG, WORD
from tools.chaos.mysql import DURABLE as DURABLE_LOG
from tools.chaos.query import Query
from tools.chaos.redis import DURABLE
from tools.chaos.shop import COPY, SOURCE, Shop, differing, documents, rows_of

LOGGED = (
    *("--log-bin=b", "--binlog-format=ROW", "--binlog-row-metadata=FULL"),
    *("--gtid-mode=ON", "--enforce-gtid-consistency=ON"),
)
STREAMS = ("events:0", "events:1")
IDS = 3000
MOST = "2000"
TIMEOUT = "5"
BEGUN_AGAIN = 90.0
"""Seconds in which a killed server with much data restarts."""

REPLICATE = (
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='root',"
    " SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1,"
    " SOURCE_RETRY_COUNT=100000"
)

Row = tuple[Any, ...]


class PipelineStores:
    """Redis, MySQL and its replica, Elasticsearch, and a proxy for each, which clients use."""

    def __init__(self, stack: ExitStack, seed: int) -> None:
        self.chance, self.number = random.Random(seed), 0
        self.shop = Shop(self.chance)
        self.redis = stack.enter_context(RedisProcess(*DURABLE))
        logged = (*DURABLE_LOG, *LOGGED)
        self.mysql = stack.enter_context(
            MySqlProcess(private_binary("mysql"), *logged, "--server-id=1")
        )
        self.replica = stack.enter_context(
            MySqlProcess(private_binary("mysql"), *logged, "--server-id=2", "--read-only=1")
        )
        self.elasticsearch = stack.enter_context(ElasticsearchProcess(private_tree()))
        self.servers = {
            "redis": self.redis,
            "mysql": self.mysql,
            "elasticsearch": self.elasticsearch,
        }
        for server in (*self.servers.values(), self.replica):
            server.start_seconds = BEGUN_AGAIN
        self.proxies = {
            name: stack.enter_context(Proxy(server.url)) for name, server in self.servers.items()
        }

    def prepare(self) -> None:
        self._ask(self.replica, REPLICATE.format(port=self.mysql.port), "START REPLICA")
        self._ask(
            self.mysql,
            "CREATE TABLE landed (stream VARCHAR(20), entry VARCHAR(40), n BIGINT)",
            "CREATE TABLE orders (id INT PRIMARY KEY, n BIGINT NOT NULL, t VARCHAR(20))",
            *self.shop.definitions(),
        )
        with closing(self._elastic()) as client:
            fields = {"id": LONG, "n": LONG, "t": WORD}
            fields["sparkonce"] = {"type": "object", "enabled": False}
            client.indices.create(index="orders", mappings={"properties": fields})

    def versions(self) -> Mapping[str, str]:
        """The versions of the servers."""
        return {
            "redis": describe_private(),
            "mysql": mysql.version_at(self.mysql.url),
            "elasticsearch": version_at(self.elasticsearch.url),
        }

    def queries(self, checkpoints: Path) -> dict[str, Query]:
        """The queries of the driver by name, each with its checkpoint in `checkpoints`."""
        urls = {
            name: {"url": proxy.url, "timeout": TIMEOUT} for name, proxy in self.proxies.items()
        }
        streams = {"streams": ",".join(STREAMS), "startingPosition": "earliest"}
        changes = {"dbtable": "orders", "startingPosition": "snapshot"}
        entries = ("_key AS stream", "_id AS entry", "n")
        columns, schema = ("_op", "id", "n", "t"), "_key string, _id string, n bigint"

        database = {
            "dbtable": f"{SOURCE}.*",
            "startingPosition": "snapshot",
            "onSchemaChange": "continue",
            "onTruncate": "row",
        }
        rows = ("_op", "_table", "_key", "_row", "substring_index(_table, '.', -1) AS name")
        of_tables = {"rowColumn": "_row"}

        def query(name: str, source: str, sink: str, reads: Any, writes: Any) -> Query:
            reads = {**urls[source], **reads, "maxRowsPerBatch": MOST}
            where = {"checkpointLocation": str(checkpoints / name), "chunkRows": "200"}
            writes = {**urls[sink], **writes, **where}
            if source == "redis":
                return Query((source, sink), reads, writes, entries, schema=schema)
            of = rows if "rowColumn" in writes else columns
            return Query((source, sink), reads, {**writes, "opColumn": "_op"}, of)

        index = {"index": "orders", "key": "id"}
        made = (
            ("stream-to-table", "redis", "mysql", streams, {"dbtable": "landed"}),
            ("log-to-index", "mysql", "elasticsearch", changes, index),
            ("log-to-hashes", "mysql", "redis", changes, {"key": "order:{id}"}),
            (
                *("database-to-indices", "mysql", "elasticsearch", database),
                {"index": "{_table}", "key": "_key", **of_tables},
            ),
            (
                *("database-to-copy", "mysql", "mysql", database),
                {"dbtable": f"{COPY}.{{name}}", **of_tables},
            ),
        )
        return {one[0]: query(*one) for one in made}

    # -- the sources

    def write(self, rows: int) -> None:
        """Append entries and change rows; skips a server that is unreachable."""
        with suppress(redis.RedisError), redis.from_url(self.redis.url) as client:
            pipe = client.pipeline(transaction=False)
            for _ in range(rows):
                self.number += 1
                pipe.xadd(self.chance.choice(STREAMS), {"n": self.number})
            pipe.execute()
        with suppress(pymysql.MySQLError), closing(self._writer()) as client:
            cursor = client.cursor()
            for _ in range(rows // 20):
                for _ in range(self.chance.randrange(1, 5)):
                    cursor.execute(*self._change())
                    cursor.execute(self.shop.change())
                client.commit()

    def alter(self) -> None:
        """Alter, empty or create a table of the database that is copied."""
        self._ask(self.mysql, *self.shop.alteration())

    def _writer(self) -> Any:
        return mysql.connect(self.mysql.url, autocommit=False, read_timeout=10)

    def _change(self) -> tuple[str, Row]:
        one, other, self.number = self._id(), self._id(), self.number + 1
        text = self.chance.choice((None, "", f"t{self.number}"))
        draw = self.chance.random()
        if draw < 0.4:
            return "REPLACE INTO orders VALUES (%s, %s, %s)", (one, self.number, text)
        if draw < 0.7:
            change = "UPDATE orders SET n = n + 1, t = %s WHERE id BETWEEN %s AND %s"
            return change, (text, one, one + 30)
        if draw < 0.85:
            return "UPDATE IGNORE orders SET id = %s WHERE id = %s", (other, one)
        return "DELETE FROM orders WHERE id BETWEEN %s AND %s", (one, one + 5)

    def _id(self) -> int:
        return self.chance.randrange(IDS)

    # -- a failover

    def fail_over(self) -> str:
        """Promote the replica by GTID, after queries connected to it while it lagged."""
        self._ask(self.replica, "STOP REPLICA SQL_THREAD")
        self.write(400)
        self.proxies["mysql"].lead_to(self.replica.url)
        yielded = "queries connected to the replica while it lagged"
        self._ask(self.mysql, "SET GLOBAL super_read_only = 1")
        (((gtids,),)) = self._ask(self.mysql, "SELECT @@global.gtid_executed")
        self._ask(self.replica, "START REPLICA SQL_THREAD")
        self._ask(self.replica, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 60)")
        self.mysql.kill()
        self._ask(
            self.replica,
            "STOP REPLICA",
            "RESET REPLICA ALL",
            "SET GLOBAL super_read_only = 0",
            "SET GLOBAL read_only = 0",
        )
        self.mysql, self.replica = self.replica, self.mysql
        self.servers["mysql"] = self.mysql
        return yielded

    # -- the comparison

    def differences(self) -> dict[str, tuple[int, int]]:
        """For each pipeline, the number of missing or stale rows, and of surplus rows."""
        entries, landed = self._entries(), self._landed()
        orders, index, hashes = self._orders(), self._index(), self._hashes()
        return {
            "stream-to-table": ((entries - landed).total(), (landed - entries).total()),
            "log-to-index": apart(orders, index),
            "log-to-hashes": apart(orders, hashes),
            **self._of_shop(),
        }

    def _of_shop(self) -> dict[str, tuple[int, int]]:
        found = {"database-to-indices": [0, 0], "database-to-copy": [0, 0]}
        for name in self.shop.tables:
            columns, source = self._table(f"{SOURCE}.{name}")
            targets = documents(self._elastic(), name), self._table(f"{COPY}.{name}")[1]
            for sums, target in zip(found.values(), targets, strict=True):
                for at, many in enumerate(differing(source, target, columns)):
                    sums[at] += many
        return {name: (lost, more) for name, (lost, more) in found.items()}

    def _table(self, name: str) -> tuple[list[str], dict[int, dict[str, Any]]]:
        with closing(mysql.connect(self.mysql.url)) as client, client.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            columns = [one[0] for one in cursor.description]
            return columns, rows_of(columns, cursor.fetchall())

    def count(self) -> int:
        """The number of entries in the streams plus transactions in the log."""
        (((gtids,),)) = self._ask(self.mysql, "SELECT @@global.gtid_executed")
        return self._entries().total() + _many(gtids)

    def _entries(self) -> Counter[Row]:
        with redis.from_url(self.redis.url, decode_responses=True) as client:
            return Counter(
                (key, one, int(fields["n"]))
                for key in STREAMS
                for one, fields in client.xrange(key)
            )

    def _landed(self) -> Counter[Row]:
        return Counter(self._ask(self.mysql, "SELECT stream, entry, n FROM landed"))

    def _orders(self) -> dict[int, Row]:
        return {row[0]: row for row in self._ask(self.mysql, "SELECT id, n, t FROM orders")}

    def _index(self) -> dict[int, Row]:
        with closing(self._elastic()) as client:
            client.indices.refresh(index="orders")
            hits = client.search(index="orders", size=10_000)["hits"]["hits"]
        rows = [hit["_source"] for hit in hits]
        return {row["id"]: (row["id"], row["n"], row.get("t")) for row in rows}

    def _hashes(self) -> dict[int, Row]:
        with redis.from_url(self.redis.url, decode_responses=True) as client:
            keys = list(client.scan_iter("order:*", count=1000))
            pipe = client.pipeline(transaction=False)
            for key in keys:
                pipe.hgetall(key)
            found = zip(keys, pipe.execute(), strict=True)
        return {int(key[6:]): (int(key[6:]), int(row["n"]), row.get("t")) for key, row in found}

    def _elastic(self) -> Elasticsearch:
        return Elasticsearch(self.elasticsearch.url, request_timeout=30)

    def _ask(self, server: MySqlProcess, *statements: str) -> list[Row]:
        with closing(mysql.connect(server.url)) as client, client.cursor() as cursor:
            for one in statements:
                cursor.execute(one)
            return list(cursor.fetchall())


def apart(source: Mapping[int, Row], target: Mapping[int, Row]) -> tuple[int, int]:
    """The number of rows that are missing or stale in the target, and of surplus rows."""
    stale = sum(target.get(key) != row for key, row in source.items())
    return stale, len(target.keys() - source.keys())


def _many(gtids: str) -> int:
    from pyspark_mysql.binlog.gtids import GtidSet

    return len(GtidSet(gtids))
