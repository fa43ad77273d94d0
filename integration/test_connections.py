"""Many queries in one process need no more connections than one, and idle ones are closed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery
from integration.support.runs import Job
from integration.support.servers.process import wait_until
from integration.support.servers.redis import RedisProcess
from pymysql.cursors import Cursor
from pyspark.sql import SparkSession
from redis import Redis

from pyspark_mysql.connector import MySqlConnector
from sparkonce import connections

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
QUERIES = 60
NEW = 3
"""Connections that all of them may need."""


def run(number: int, make: Callable[..., DirectQuery], **options: str) -> None:
    """An epoch of a query with a name and a checkpoint of its own."""
    own = {"sinkId": f"q{number}", "checkpointLocation": f"/nowhere/{number}", "timeout": "29s"}
    query = make(SCHEMA, **options, **own)
    query.sink.check()
    query.run(0, [{"id": number, "n": 1}])


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Idle connections are closed soon, by a process that has used none yet."""
    monkeypatch.setattr(connections, "_processes", {})
    monkeypatch.setattr(connections, "IDLE", 1.0)
    yield
    connections.forget()


def of_mysql(mysql: Cursor) -> set[int]:
    """Those into this process's database."""
    mysql.execute("SELECT id FROM information_schema.processlist WHERE db = DATABASE()")
    return {int(row[0]) for row in mysql.fetchall()}


def require_shared(opened: Callable[[], set[Any]], query: Callable[[int], object]) -> None:
    """Many queries open few connections, which are closed; and another one gets through."""
    before = opened()
    for number in range(QUERIES):
        query(number)
    assert 1 <= len(opened() - before) <= NEW
    wait_until(lambda: not opened() - before, 10, "idle connections to be closed")
    query(QUERIES)


@pytest.mark.usefixtures("soon")
def test_many_queries_into_mysql_share_their_connections(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    given = {"url": mysql_url, "dbtable": table, "key": "id", "createTable": "true"}
    require_shared(lambda: of_mysql(mysql), lambda number: run(number, MySqlQuery, **given))
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchone() == (QUERIES + 1,)


@pytest.mark.usefixtures("soon")
def test_many_queries_into_redis_share_their_connections(
    private_redis: Callable[..., RedisProcess],
) -> None:
    url = private_redis().url
    with Redis.from_url(url) as client:
        require_shared(
            lambda: {one["id"] for one in client.client_list()},
            lambda number: run(number, DirectQuery, url=url, key="c:{id}"),
        )
        assert len(client.keys("c:*")) == QUERIES + 1


@pytest.mark.usefixtures("soon")
def test_many_queries_into_elasticsearch_share_their_connections(
    elasticsearch_url: str, index: str
) -> None:
    at = urlsplit(elasticsearch_url).port

    def opened() -> set[Any]:
        sockets = psutil.Process().net_connections("tcp")
        return {one.laddr for one in sockets if one.raddr and one.raddr.port == at}

    def read(number: int) -> None:
        own = {"sinkId": f"q{number}", "checkpointLocation": f"/nowhere/{number}"}
        query = ElasticsearchQuery(SCHEMA, url=elasticsearch_url, index=index, timeout="29s", **own)
        assert query.sink.store.read(query.name).revision == 0

    require_shared(opened, read)


@pytest.mark.usefixtures("soon")
def test_a_connection_has_one_user_at_a_time(mysql: Cursor, mysql_url: str, table: str) -> None:
    before = of_mysql(mysql)
    options = {"url": mysql_url, "dbtable": table, "key": "id", "createTable": "true"}
    run(0, MySqlQuery, **options)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: run(number, MySqlQuery, **options), range(1, 40)))
    assert 1 <= len(of_mysql(mysql) - before) <= 4
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchone() == (40,)


@pytest.mark.usefixtures("soon")
def test_when_a_connection_broke_the_others_are_not_tried_one_by_one(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    before = of_mysql(mysql)
    options = {"url": mysql_url, "dbtable": table, "key": "id", "createTable": "true"}
    run(0, MySqlQuery, **options)
    session = MySqlQuery(SCHEMA, **options, timeout="29s").sink.store.session
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: session.run("SELECT SLEEP(0.2)"), range(4)))
    for connection in of_mysql(mysql) - before:
        mysql.execute(f"KILL {connection}")
    wait_until(lambda: not of_mysql(mysql) - before, 10, "idle connections to be closed")
    with pytest.raises(Exception, match=r"(?i)lost|gone|closed|\(0, ''\)"):
        session.run("SELECT 1")
    assert session.run("SELECT 1") == ((1,),)


FORKED = textwrap.dedent(
    """
    import os, sys
    from integration.support.epochs import MySqlQuery
    import pyarrow as pa

    query = MySqlQuery(pa.schema([("id", pa.int64())]), url=sys.argv[1], dbtable="t", key="id")
    session = query.sink.store.session
    asked = "SELECT CONNECTION_ID()"
    own = session.run(asked)
    child = os.fork()
    if child == 0:
        os._exit(0 if query.sink.store.session.run(asked) != own else 17)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert session.run(asked) == own
    """
)


def test_a_forked_process_does_not_speak_on_a_socket_of_its_parent(mysql_url: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, mysql_url]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


@pytest.mark.slow
def test_a_session_of_spark_that_runs_many_queries_keeps_few_connections(
    spark: SparkSession, mysql: Cursor, mysql_name: str, mysql_url: str, table: str, tmp_path: Path
) -> None:
    """Each query has a checkpoint of its own, which is one of its sink's options."""
    if mysql_name != "mysql":
        pytest.skip("the other server differs in nothing that matters here")
    job = Job(spark, tmp_path / "job", mysql_url, table)
    job.format = MySqlConnector.name
    job.options = {"url": mysql_url, "dbtable": table, "key": "id", "createTable": "true"}
    job.put(range(4))
    before, seen = of_mysql(mysql), dict[int, Any]()
    for number in range(1, 9):
        job.run(checkpoint=tmp_path / f"checkpoint{number}")
        seen[number] = len(of_mysql(mysql) - before)
    assert seen[8] <= seen[3] + 1, seen
