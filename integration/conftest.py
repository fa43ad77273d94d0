"""Fixtures for tests against real servers. No server starts unless a collected test needs it."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from integration.support.elasticsearch import clear, make_counters
from integration.support.environments import build_wheel
from integration.support.marks import slow_cases
from integration.support.proxy import Proxy
from integration.support.servers import spark as local_spark
from integration.support.servers.elasticsearch import ELASTICSEARCH
from integration.support.servers.elasticsearch import connect as connect_elasticsearch
from integration.support.servers.finder import Server, or_skip
from integration.support.servers.mysql import SERVERS as MYSQLS
from integration.support.servers.mysql import connect as connect_mysql
from integration.support.servers.redis import REDIS, RedisProcess

from pyspark_mysql.journal import tables
from sparkonce.tck.spark.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from elasticsearch import Elasticsearch
    from pymysql.cursors import Cursor
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def redis_server() -> Server:
    return or_skip(REDIS.find)


@pytest.fixture
def redis_url(redis_server: Server) -> str:
    """Give the address of the Redis all tests share: use `unique` in the names of keys."""
    return redis_server.url


@pytest.fixture
def unique() -> str:
    """Give a short name that no other test uses."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
def private_redis() -> Iterator[Callable[..., RedisProcess]]:
    """Start a Redis of the test's own: `private_redis("appendonly yes", "requirepass secret")`."""
    with ExitStack() as running:

        def start(*config: str) -> RedisProcess:
            return running.enter_context(or_skip(lambda: RedisProcess(*config)))

        yield start


@pytest.fixture
def redis_proxy(redis_server: Server) -> Iterator[Proxy]:
    """Stand between a test and the shared Redis, to make the network fail."""
    with Proxy(redis_server.url) as proxy:
        yield proxy


@pytest.fixture(scope="session", params=["mysql", *slow_cases("mariadb")])
def mysql_name(request: pytest.FixtureRequest) -> str:
    """Run the test on MySQL, and in `make slow` on MariaDB; `-k mariadb` runs it on one."""
    return request.param


@pytest.fixture(scope="session")
def mysql_server(mysql_name: str) -> Iterator[Server]:
    """Give the server, with a database of this process of tests: no other one sees its ledgers.

    Ledger and log are there from the beginning, whichever test comes first.
    """
    server = or_skip(MYSQLS[mysql_name].find)
    own = f"sparkonce_{uuid.uuid4().hex[:10]}"
    with connect_mysql(server.url) as client, client.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {own} CHARACTER SET utf8mb4")
        for statement in tables.ddl(own):
            cursor.execute(statement)
        yield replace(server, url=urlsplit(server.url)._replace(path=f"/{own}").geturl())
        cursor.execute(f"DROP DATABASE {own}")


@pytest.fixture
def mysql_url(mysql_server: Server) -> str:
    """Give the address of a database that tests share: use `table` as the target's name."""
    return mysql_server.url


@pytest.fixture
def mysql(mysql_url: str) -> Iterator[Cursor]:
    """A plain client of that database."""
    with connect_mysql(mysql_url) as client, client.cursor() as cursor:
        yield cursor


@pytest.fixture
def own_url(mysql: Cursor, mysql_url: str, unique: str) -> Iterator[str]:
    """Give the address of a database of the test's own: commands look at all of one."""
    mysql.execute(f"CREATE DATABASE {unique}")
    yield urlsplit(mysql_url)._replace(path=f"/{unique}").geturl()
    mysql.execute(f"DROP DATABASE {unique}")


@pytest.fixture
def table(mysql: Cursor, unique: str) -> Iterator[str]:
    """Give the name of a table that no other test uses, and drop it in the end."""
    yield unique
    mysql.execute(f"DROP TABLE IF EXISTS {unique}")


@pytest.fixture
def counters(mysql: Cursor, table: str) -> str:
    """Make a table of counters."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    return table


@pytest.fixture(scope="session")
def elasticsearch_server() -> Server:
    return or_skip(ELASTICSEARCH.find)


@pytest.fixture
def elasticsearch_url(elasticsearch_server: Server) -> str:
    """Give the address of a cluster that tests share: use `index` as the target's name."""
    return elasticsearch_server.url


@pytest.fixture
def elastic(elasticsearch_url: str) -> Iterator[Elasticsearch]:
    """A plain client of that cluster."""
    with connect_elasticsearch(elasticsearch_url) as client:
        yield client


@pytest.fixture
def index(elastic: Elasticsearch, unique: str) -> Iterator[str]:
    """Give the name of an index that no other test uses; what begins so goes in the end."""
    yield unique
    clear(elastic, unique)


@pytest.fixture
def counter_index(elastic: Elasticsearch, index: str) -> str:
    """Make an index of counters."""
    return make_counters(elastic, index)


@pytest.fixture
def bad_index(index: str) -> str:
    """Give a name for the index of dead letters."""
    return f"{index}-bad"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def one_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[local_spark.OneSession]:
    with closing(local_spark.OneSession(lambda: tmp_path_factory.mktemp("spark"))) as one:
        yield one


@pytest.fixture(scope="module")
def spark(one_session: local_spark.OneSession) -> SparkSession:
    """The session that all modules share whose `spark` is this one."""
    return one_session.having({})


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The Sparks of the kit, which many checks share."""
    with Bench(tmp_path_factory.mktemp("bench")) as sparks:
        yield sparks
