"""The stores of batches: their targets, the writes into them, and what they must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import redis
from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan
from integration.support.proxy import Proxy
from integration.support.servers import mysql
from integration.support.servers.elasticsearch import ElasticsearchProcess, private_tree, version_at
from integration.support.servers.mysql import MySqlProcess, private_binary
from integration.support.servers.redis import RedisProcess, describe_private
from tools.chaos.elasticsearch import LONG, WORD
from tools.chaos.mysql import DURABLE as DURABLE_LOG
from tools.chaos.query import Write
from tools.chaos.redis import DURABLE

SHARED = "shared"
"""The table and the index that every writer appends to."""

DRAWN = f"SELECT writer, n, draw FROM {SHARED}"
LATEST = ("n", "version")
TIMEOUT = "5"
BEGUN_AGAIN = 90.0
"""Seconds in which a killed server with much data restarts."""

Effects = Counter[tuple[str, int]]
"""The effects of each row: by writer and number."""


class BatchStores:
    """Redis, MySQL, Elasticsearch, and a proxy for each, which clients use."""

    def __init__(self, stack: ExitStack) -> None:
        self.servers: dict[str, Any] = {
            "redis": stack.enter_context(RedisProcess(*DURABLE)),
            "mysql": stack.enter_context(MySqlProcess(private_binary("mysql"), *DURABLE_LOG)),
            "elasticsearch": stack.enter_context(ElasticsearchProcess(private_tree())),
        }
        for server in self.servers.values():
            server.start_seconds = BEGUN_AGAIN
        self.proxies = {
            name: stack.enter_context(Proxy(server.url)) for name, server in self.servers.items()
        }

    def prepare(self, jobs: Iterable[str]) -> None:
        """Create the tables and the indices; `jobs` are the names of the orchestrators."""
        with closing(mysql.connect(self.url("mysql"))) as client, client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {SHARED} (writer VARCHAR(20), n BIGINT, draw CHAR(36))")
            for name in jobs:
                cursor.execute(f"CREATE TABLE latest_{name} (n BIGINT, version BIGINT)")
        fields = {"writer": WORD, "n": LONG, "draw": WORD}
        with closing(self._elastic()) as client:
            client.indices.create(index=SHARED, mappings={"properties": fields})

    def url(self, name: str) -> str:
        """The URL of a server itself, without its proxy."""
        return str(self.servers[name].url)

    def versions(self) -> Mapping[str, str]:
        """The versions of the servers."""
        return {
            "redis": describe_private(),
            "mysql": mysql.version_at(self.url("mysql")),
            "elasticsearch": version_at(self.url("elasticsearch")),
        }

    def appends(self) -> list[Write]:
        """Writes of rows with columns `writer`, `n`, `one`, `draw` into all three stores."""
        drawn, mode = ("writer", "n", "draw"), {"writeMode": "append"}
        counter = {"key": "{writer}:{n}", "writeMode": "increment"}
        return [
            self._write("redis", ("writer", "n", "one"), counter),
            self._write("mysql", drawn, {"dbtable": SHARED, **mode}),
            self._write("elasticsearch", drawn, {"index": SHARED, **mode}),
        ]

    def overwrites(self, job: str) -> list[Write]:
        """Writes of rows with columns `n` and `version` that replace all rows of their target."""
        alias = {"index": f"latest-{job}", "createIndex": "true", "writeMode": "append"}
        return [
            self._write("redis", LATEST, {"key": f"latest-{job}:{{n}}"}),
            self._write("mysql", LATEST, {"dbtable": f"latest_{job}", "writeMode": "append"}),
            self._write("elasticsearch", LATEST, alias),
        ]

    def _write(self, name: str, columns: Sequence[str], options: Mapping[str, str]) -> Write:
        return name, columns, {**self._common(name), **options}

    def _common(self, name: str) -> dict[str, str]:
        """Options of each write; small chunks make epochs that die half-way."""
        return {"url": self.proxies[name].url, "timeout": TIMEOUT, "chunkRows": "50"}

    # -- the content of the targets

    def effects(self) -> dict[str, Effects]:
        """The effects of all appended rows, by store."""
        return {
            "redis": self._counted(),
            **{
                name: Effects((writer, n) for writer, n, _ in rows)
                for name, rows in self.appended().items()
            },
        }

    def appended(self) -> dict[str, list[tuple[str, int, str]]]:
        """Writer, number and random value of the appended rows, by store that has the value."""
        columns = ("writer", "n", "draw")
        documents = self._documents(SHARED)
        return {
            "mysql": [(row[0], row[1], row[2]) for row in self._ask(DRAWN)],
            "elasticsearch": [tuple(row[one] for one in columns) for row in documents],
        }

    def latest(self, job: str) -> list[Counter[tuple[int, int]]]:
        """The rows of each overwritten target, in the order of `overwrites`."""
        return [
            Counter(self._hashes(f"latest-{job}:*")),
            Counter(self._ask(f"SELECT n, version FROM latest_{job}")),
            Counter((row["n"], row["version"]) for row in self._documents(f"latest-{job}")),
        ]

    def _counted(self) -> Effects:
        found = Effects()
        with redis.from_url(self.url("redis"), decode_responses=True) as client:
            names = [
                name
                for name in {*client.scan_iter(count=1000)}
                if not name.startswith(("{sparkonce}", "latest-"))
            ]
            pipe = client.pipeline(transaction=False)
            for name in names:
                pipe.hget(name, "one")
            for name, one in zip(names, pipe.execute(), strict=True):
                writer, _, n = name.rpartition(":")
                found[writer, int(n)] = int(one or 0)
        return found

    def _hashes(self, pattern: str) -> list[tuple[int, int]]:
        with redis.from_url(self.url("redis"), decode_responses=True) as client:
            names = {*client.scan_iter(pattern, count=1000)}
            return [
                (int(name.rpartition(":")[2]), int(client.hget(name, "version") or -1))
                for name in names
            ]

    def _documents(self, index: str) -> list[dict[str, Any]]:
        with closing(self._elastic()) as client:
            if not client.indices.exists(index=index):
                return []
            client.indices.refresh(index=index)
            return [hit["_source"] for hit in scan(client, index=index, size=10_000)]

    def _elastic(self) -> Elasticsearch:
        return Elasticsearch(self.url("elasticsearch"), request_timeout=30)

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(mysql.connect(self.url("mysql"))) as client, client.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())
