"""Tasks that read and fail, are killed or run twice: each row of a store comes once."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
import redis
from elasticsearch import Elasticsearch
from integration.support.proxy import Proxy
from integration.support.servers.spark import OneSession, environment
from pymysql.cursors import Cursor
from pyspark.sql import SparkSession

from sparkonce.tck.spark import setup
from sparkonce.tck.spark.cluster import Cluster

ROWS, AT_ONCE = 30_000, 10_000
SOON = 60
"""Seconds in which Spark, with its workers to start, asks for rows on a machine that is busy."""

ONCE = Counter(range(ROWS))


@pytest.fixture
def spark(one_session: OneSession) -> SparkSession:
    """The shared session, looked up for each test: one of them ends it, and has another."""
    return one_session.having({})


class Place(NamedTuple):
    """What is read through a proxy, and how a request for rows is known."""

    form: str
    options: Mapping[str, str]
    proxy: Proxy
    asks: Callable[[bytes], bool]

    def read(self, spark: SparkSession) -> Counter[int]:
        """How often each row comes."""
        frame = spark.read.format(self.form).options(**self.options, numPartitions="2").load()
        return Counter(row.id for row in frame.select("id").collect())


@pytest.fixture
def in_redis(redis_proxy: Proxy, redis_url: str, unique: str) -> Iterator[Place]:
    with redis.from_url(redis_url) as client:
        pipe = client.pipeline(transaction=False)
        for at in range(ROWS):
            pipe.hset(f"{unique}:{at}", "n", at)
        pipe.execute()
        options = {"url": redis_proxy.url, "key": f"{unique}:{{id}}"}
        yield Place("redis", options, redis_proxy, lambda data: b"HMGET" in data)
        for at in range(ROWS):
            pipe.unlink(f"{unique}:{at}")
        pipe.execute()


def cut(place: Place, spark: SparkSession) -> Counter[int]:
    """A read in which the network cuts a request for rows."""
    place.proxy.reset(place.asks, nth=2)
    found = place.read(spark)
    assert place.proxy.cuts == 1
    return found


def killed(place: Place, spark: SparkSession) -> Counter[int]:
    """A read in which a Python worker is killed that waits for rows."""
    place.proxy.stall(place.asks, nth=2)
    with ThreadPoolExecutor(1) as beside:
        read = beside.submit(place.read, spark)
        assert place.proxy.wait(seconds=SOON)
        os.kill(_owner(place.proxy), signal.SIGKILL)
        place.proxy.disconnect()
        place.proxy.restore()
        return read.result(120)


def _owner(proxy: Proxy) -> int:
    """The process at the client's end of the connection that was hit."""
    for one in psutil.net_connections("tcp4"):
        here = one.raddr and one.raddr.port in proxy.ports
        if one.pid and here and one.laddr.port == proxy.hits[-1]:
            return one.pid
    raise AssertionError("nobody holds the connection any more")


class Reads:
    """What holds in each store."""

    @pytest.mark.slow
    @pytest.mark.parametrize("fault", [cut, killed])
    def test_each_row_comes_once(
        self, spark: SparkSession, place: Place, fault: Callable[..., Counter[int]]
    ) -> None:
        assert fault(place, spark) == ONCE


class TestRedis(Reads):
    @pytest.fixture
    def place(self, in_redis: Place) -> Place:
        return in_redis


class TestMySql(Reads):
    @pytest.fixture
    def place(self, mysql_url: str, mysql: Cursor, table: str) -> Iterator[Place]:
        mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n INT)")
        for at in range(0, ROWS, AT_ONCE):
            values = ", ".join(f"({one}, 1)" for one in range(at, at + AT_ONCE))
            mysql.execute(f"INSERT INTO {table} VALUES {values}")
        mysql.execute(f"ANALYZE TABLE {table}")
        with Proxy(mysql_url) as proxy:
            options = {"url": proxy.url, "dbtable": table}
            yield Place("mysql", options, proxy, lambda data: b"CONCAT(" in data)


class TestElasticsearch(Reads):
    @pytest.fixture
    def place(self, elasticsearch_url: str, elastic: Elasticsearch, index: str) -> Iterator[Place]:
        elastic.indices.create(index=index, mappings={"properties": {"id": {"type": "long"}}})
        for at in range(0, ROWS, AT_ONCE):
            lines = (json.dumps({"id": one}) for one in range(at, at + AT_ONCE))
            body = "".join(f'{{"index":{{}}}}\n{line}\n' for line in lines)
            assert not elastic.bulk(index=index, body=body, refresh=True)["errors"]
        with Proxy(elasticsearch_url) as proxy:
            options = {"url": proxy.url, "index": index}
            yield Place("elasticsearch", options, proxy, lambda data: b'"_shard_doc"' in data)


@pytest.mark.slow
def test_a_task_that_runs_beside_its_twin_gives_its_rows_once(
    one_session: OneSession, in_redis: Place, tmp_path: Path
) -> None:
    """By speculation: the first one waits for rows until the other has given them."""
    home = {"PYTHONPATH": os.pathsep.join(sys.path), **setup.environment(tmp_path)}
    cluster = Cluster(tmp_path / "cluster", {**os.environ, **environment(tmp_path), **home})
    settings = {**setup.driver(tmp_path, tmp_path), **setup.SPECULATIVE}
    try:
        spark = one_session.having({**settings, "spark.master": cluster.url})
        patient = in_redis._replace(options={**in_redis.options, "timeout": "600"})
        assert patient.read(spark) == ONCE
        in_redis.proxy.stall(in_redis.asks, nth=2)
        with ThreadPoolExecutor(1) as beside:
            read = beside.submit(patient.read, spark)
            assert in_redis.proxy.wait(seconds=SOON)
            assert read.result(120) == ONCE  # the first one waits still
            in_redis.proxy.restore()
    finally:
        one_session.close()
        cluster.close()
