"""The kit's rules of reads against a real Redis, and a cluster of three."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pyarrow as pa
import pytest
import redis
from integration.proxy import Proxy

from pyspark_redis.connector import RedisConnector
from sparkonce import options
from sparkonce.reading import Scan, Source
from sparkonce.tck.read_contract import ReadContract, ReadSubject
from sparkonce.values.text import to_text

AT_ONCE = 5000


class RedisReads(ReadSubject):
    """Hashes whose keys begin alike."""

    many = 6000

    def __init__(self, proxy: Proxy, client: redis.Redis, unique: str) -> None:
        self.proxy, self.client, self.unique = proxy, client, unique
        self.numbers = count(1)

    def fill(self, table: pa.Table) -> None:
        texts = [to_text(column.combine_chunks()).to_pylist() for column in table.columns]
        names = [name.encode() for name in table.column_names]
        pipe = self.client.pipeline(transaction=False)
        for at, row in enumerate(zip(*texts, strict=True)):
            there = {
                name: value for name, value in zip(names, row, strict=True) if value is not None
            }
            pipe.hset(f"{self.unique}:{at}", mapping=there)  # type: ignore[arg-type]
        pipe.execute()

    def _options(self) -> options.Options:
        raw = {"url": self.proxy.url, "key": f"{self.unique}:{{id}}", "timeout": "5"}
        return options.parse(RedisConnector.reads, raw)

    def infer(self) -> pa.Schema:
        return RedisConnector().infer(self._options())

    def source(self, scan: Scan) -> Source:
        return RedisConnector().source(self._options(), scan)

    def churn(self) -> None:
        """So many new keys that the table of all keys grows, and shrinks, while it is scanned."""
        number = next(self.numbers)
        pipe = self.client.pipeline(transaction=False)
        for at in range(1000):
            pipe.hset(f"{self.unique}:-{number * 1000 + at}", "name", "new")
            pipe.delete(f"{self.unique}:-{number // 2 * 1000 + at}")
        pipe.execute()

    def spoil(self) -> str:
        self.client.hset(f"{self.unique}:3", "n", "three")
        return "n"

    @contextmanager
    def outage(self) -> Iterator[Callable[[], None]]:
        def begin() -> None:
            self.proxy.refuse()
            self.proxy.disconnect()

        try:
            yield begin
        finally:
            self.proxy.restore()


class TestRedisReads(ReadContract):
    @pytest.fixture
    def reading(self, redis_proxy: Proxy, redis_url: str, unique: str) -> Iterator[ReadSubject]:
        with redis.from_url(redis_url) as client:
            yield RedisReads(redis_proxy, client, unique)
            keys = [*client.scan_iter(f"{unique}:*", count=1000)]
            for at in range(0, len(keys), AT_ONCE):
                client.unlink(*keys[at : at + AT_ONCE])
