"""The kit's rules of reads against a real Redis, and a cluster of three."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import count
from random import Random

import pyarrow as pa
import pytest
import redis
from integration.support.kit import ConnectorReads
from integration.support.proxy import Proxy
from integration.support.redis import Everywhere, Keys
from integration.support.servers.finder import Server, or_skip
from integration.support.servers.redis import RedisProcess, version_at
from integration.support.servers.redis_cluster import RedisCluster
from redis import Redis

from pyspark_redis.connector import RedisConnector
from pyspark_redis.target import keys
from sparkonce.tck.read_contract import ReadContract, ReadSubject
from sparkonce.tck.reading import TEXTS
from sparkonce.values.text import to_text

pytestmark = pytest.mark.variants
AT_ONCE = 5000
DRAWN: list[tuple[pa.DataType, list[object]]] = [
    (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63)]),
    (pa.string(), [*filter(None, TEXTS)]),
    (pa.bool_(), [True, False]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(2026, 3, 29), dt.date(9999, 12, 31)]),
    (pa.float64(), [0.5, -0.25, 1e22]),
]
"""Types of a column in a key, and its values."""


class RedisReads(ConnectorReads):
    """Hashes whose keys begin alike."""

    connector, many, columns = RedisConnector(), 6000, 2
    words = ("value", "score", "key", "field", "cursor", "0")
    limits: Mapping[str, str] = {"slow": "has tests of its own"}

    def __init__(self, proxy: Proxy, client: Redis, unique: str) -> None:
        self.proxy, self.client = proxy, client
        self._read(proxy.url, unique)

    def _read(self, url: str, unique: str) -> None:
        self.unique, self.numbers = unique, count(1)
        self.raw = {"url": url, "key": f"{unique}:{{id}}"}

    def of(self, _: str) -> Redis:
        """The client of the server that has a key."""
        return self.client

    def fill(self, table: pa.Table) -> None:
        texts = [to_text(column.combine_chunks()).to_pylist() for column in table.columns]
        names = [name.encode() for name in table.column_names]
        pipes = defaultdict[Redis, list[tuple[str, dict[bytes, bytes]]]](list)
        for at, row in enumerate(zip(*texts, strict=True)):
            there = {n: value for n, value in zip(names, row, strict=True) if value is not None}
            key = f"{self.unique}:{at}"
            pipes[self.of(key)].append((key, there))
        for client, hashes in pipes.items():
            pipe = client.pipeline(transaction=False)
            for key, there in hashes:
                pipe.hset(key, mapping=there)  # type: ignore[arg-type]
            pipe.execute()

    def churn(self) -> None:
        """Keys come and go while all are scanned."""
        number = next(self.numbers)
        for at in range(100):
            new, old = (f"{self.unique}:-{one * 100 + at}" for one in (number, number // 2))
            self.of(new).hset(new, "name", "new")
            self.of(old).delete(old)

    def draw(self, random: Random) -> str:
        """Keys that are made of the column, beside ones that are not."""
        kind, values = random.choice(DRAWN)
        self.raw["key"] = f"{self.unique}d{next(self.numbers)}:{{v}}"
        named = keys.parse_key_text(self.raw["key"])
        column = pa.array(random.choices(values, k=60), kind)
        for key in keys.make_keys(named, pa.RecordBatch.from_arrays([column], ["v"])).to_pylist():
            self.of(key.decode()).hset(key, "other", "1")
        return str(kind)

    def spoil(self) -> str:
        key = f"{self.unique}:3"
        self.of(key).hset(key, "n", "three")
        return "n"


class ClusterReads(RedisReads):
    """The same in the slots of three primaries."""

    many = 3000
    limits: Mapping[str, str] = {**RedisReads.limits, "outage": "nodes are reached directly"}

    def __init__(self, cluster: RedisCluster, unique: str) -> None:
        self.everywhere = Everywhere(cluster)
        self._read(cluster.url, unique)

    def of(self, key: str) -> Redis:
        return self.everywhere.of(key)[0]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[Server]:
    """A server that has these keys only: a read scans all."""
    with or_skip(RedisProcess) as server:
        yield Server("redis", version_at(server.url), "private", server.url)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of few rows, so that much is written between them."""
    monkeypatch.setattr("pyspark_redis.read.source.ROWS", 500)
    monkeypatch.setattr("pyspark_redis.read.servers.SCANNED", b"100")


class TestRedisReads(ReadContract):
    @pytest.fixture
    def reading(self, redis_proxy: Proxy, keys: Keys) -> Iterator[ReadSubject]:
        with redis.from_url(keys.url) as client:
            yield RedisReads(redis_proxy, client, keys)
            names = [*client.scan_iter(f"{keys}:*", count=1000)]
            for at in range(0, len(names), AT_ONCE):
                client.unlink(*names[at : at + AT_ONCE])


@pytest.mark.slow
class TestClusterReads(ReadContract):
    @pytest.fixture
    def reading(self, cluster: RedisCluster, unique: str) -> ReadSubject:
        return ClusterReads(cluster, unique)
