"""Fixtures for tests against real servers. No server starts unless a collected test needs it."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from integration.counted import make_counters
from integration.environments import build_wheel
from integration.epochs import ElasticsearchQuery, MySqlQuery
from integration.marks import also
from integration.proxy import Proxy
from integration.runs import Job
from integration.servers import spark as local_spark
from integration.servers.elasticsearch import ELASTICSEARCH, ElasticsearchProcess, private_tree
from integration.servers.elasticsearch import connect as connect_elasticsearch
from integration.servers.finder import Server, or_skip
from integration.servers.mysql import SERVERS as MYSQLS
from integration.servers.mysql import MySqlProcess, private_binary
from integration.servers.mysql import connect as connect_mysql
from integration.servers.redis import REDIS, RedisProcess

from pyspark_mysql.journal import tables
from sparkonce.tck.spark.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
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


@pytest.fixture(scope="session", params=["mysql", *also("mariadb")])
def mysql_name(request: pytest.FixtureRequest) -> str:
    """Run the test on MySQL, and in `make test-all` on MariaDB; `-k mariadb` runs it on one."""
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
def table(mysql: Cursor, unique: str) -> Iterator[str]:
    """Give the name of a table that no other test uses, and drop it in the end."""
    yield unique
    mysql.execute(f"DROP TABLE IF EXISTS {unique}")


@pytest.fixture
def counters(mysql: Cursor, table: str) -> str:
    """Make a table of counters."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    return table


@pytest.fixture
def make(mysql: Cursor, mysql_url: str, table: str) -> Callable[..., MySqlQuery]:
    """Make a checked query into a table with this definition."""

    def make(schema: pa.Schema, definition: str, **options: str) -> MySqlQuery:
        mysql.execute(f"CREATE TABLE {table} ({definition})")
        query = MySqlQuery(schema, url=mysql_url, dbtable=table, **options)
        query.sink.check()
        return query

    return make


@pytest.fixture
def stored(mysql: Cursor, table: str) -> Callable[..., list[tuple[Any, ...]]]:
    """Read the rows of the table, in order."""

    def stored(columns: str = "*") -> list[tuple[Any, ...]]:
        mysql.execute(f"SELECT {columns} FROM {table} ORDER BY 1")
        return list(mysql.fetchall())

    return stored


@pytest.fixture
def local_infile(mysql: Cursor) -> Iterator[Callable[[bool], None]]:
    """Say whether the server allows LOAD DATA LOCAL, for connections that are made from then on."""
    mysql.execute("SELECT @@GLOBAL.local_infile")
    before = mysql.fetchone()
    yield lambda on: mysql.execute(f"SET GLOBAL local_infile = {int(on)}")
    mysql.execute("SET GLOBAL local_infile = %s", before)


@pytest.fixture
def private_mysql(mysql_name: str) -> Iterator[Callable[..., MySqlProcess]]:
    """Start a server of the test's own: `private_mysql("--read-only=1")`."""
    with ExitStack() as running:

        def start(*config: str) -> MySqlProcess:
            return running.enter_context(
                or_skip(lambda: MySqlProcess(private_binary(mysql_name), *config))
            )

        yield start


@pytest.fixture
def mysql_proxy(mysql_url: str) -> Iterator[Proxy]:
    """Stand between a test and the shared MySQL or MariaDB, to make the network fail."""
    with Proxy(mysql_url) as proxy:
        yield proxy


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
    """Give the name of an index that no other test uses, and drop it in the end."""
    yield unique
    elastic.options(ignore_status=404).indices.delete(index=unique)


@pytest.fixture
def counter_index(elastic: Elasticsearch, index: str) -> str:
    """Make an index of counters."""
    return make_counters(elastic, index)


@pytest.fixture
def into_index(elasticsearch_url: str, index: str) -> Callable[..., ElasticsearchQuery]:
    """Make a checked query into the index, which is made from its schema if it is not there."""

    def make(schema: pa.Schema, **options: str) -> ElasticsearchQuery:
        given = {"url": elasticsearch_url, "index": index, "createIndex": "true", **options}
        query = ElasticsearchQuery(schema, **given)
        query.sink.check()
        return query

    return make


@pytest.fixture
def bad_index(elastic: Elasticsearch, index: str) -> Iterator[str]:
    """Give a name for the index of dead letters."""
    yield f"{index}-bad"
    elastic.options(ignore_status=404).indices.delete(index=f"{index}-bad")


@pytest.fixture
def private_elasticsearch() -> Iterator[Callable[..., ElasticsearchProcess]]:
    """Start a node of the test's own: `private_elasticsearch("http.max_content_length: 1mb")`."""
    with ExitStack() as running:

        def start(*config: str, **settings: Any) -> ElasticsearchProcess:
            return running.enter_context(
                or_skip(lambda: ElasticsearchProcess(private_tree(), *config, **settings))
            )

        yield start


@pytest.fixture
def elasticsearch_proxy(elasticsearch_url: str) -> Iterator[Proxy]:
    """Stand between a test and the shared cluster, to make the network fail."""
    with Proxy(elasticsearch_url) as proxy:
        yield proxy


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


@pytest.fixture
def counting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    """A job that adds 1 for each row, to a counter of the row's own."""
    job = Job(spark, tmp_path / "job", redis_url, unique)
    job.options["writeMode"] = "increment"
    return job


@pytest.fixture
def upserting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    """A job that writes each row into a hash of its own."""
    return Job(spark, tmp_path / "job", redis_url, unique)
