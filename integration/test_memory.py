"""The memory of a task, of a driver and of a reader is bounded by a chunk, not by all rows."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from elasticsearch import Elasticsearch
from pymysql.cursors import Cursor

pytestmark = pytest.mark.slow
STAGING = """
    from sparkonce.protocol import Task
    from sparkonce.store import Patience
    from sparkonce.sink import open_sink
    from sparkonce.exactly_once.staging import stage

    sink = open_sink(REDIS, {"url": url, "key": name + ":{id}"}, rows.schema)
    task = Task("query", "run", 0, name, 0, "attempt")
    stage(sink.store, task, many, sink.encoder(sink.plan), sink.size, Patience(0))
    sink.store.discard(name, ["attempt"])
"""
INTO_MYSQL = "    MySqlQuery(rows.schema, url=url, dbtable=name).run_batches(0, many)\n"
INTO_ELASTICSEARCH = """
    query = ElasticsearchQuery(rows.schema, url=url, index=name, createIndex="true")
    query.sink.check()
    query.run_batches(0, many)
"""
READING = """
    from pyspark_mysql.connector import MySqlConnector
    from sparkonce import options
    from sparkonce.reading import Scan

    raw = {"url": url, "query": f"SELECT * FROM {name} LIMIT {size}"}
    given, connector = options.parse(MySqlConnector.reads, raw), MySqlConnector()
    source = connector.source(given, Scan(connector.infer(given)))
    (split,) = source.splits()
    assert sum(batch.num_rows for batch in source.read(split)) == size
"""
PROGRAM = """
    import resource, sys
    import pyarrow as pa
    from integration.support.epochs import REDIS, ElasticsearchQuery, MySqlQuery

    url, name, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    columns = {"id": range(10_000), "name": ["x" * 50] * 10_000}
    rows = pa.RecordBatch.from_pydict(columns)
    many = (rows for _ in range(size))
"""
PEAK = "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"


def require_bounded(doing: str, url: str, name: str, few: int, many: int) -> None:
    """What is done of many takes about as much memory as of few."""
    program = textwrap.dedent(PROGRAM + doing + PEAK)
    peaks = []
    for size in (few, many):
        command = [sys.executable, "-c", program, url, name, str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] * 1.1


def test_a_task_of_redis_stages_ten_times_the_rows(redis_url: str, unique: str) -> None:
    require_bounded(STAGING, redis_url, unique, 20, 200)


def test_an_epoch_and_a_read_of_mysql_have_ten_times_the_rows(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT, name VARCHAR(50))")
    require_bounded(INTO_MYSQL, mysql_url, table, 4, 40)
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchone() == (440_000,)
    require_bounded(READING, mysql_url, table, 200_000, 440_000)


def test_an_epoch_of_elasticsearch_has_ten_times_the_rows(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    require_bounded(INTO_ELASTICSEARCH, elasticsearch_url, index, 8, 80)
    elastic.indices.refresh(index=index)
    assert elastic.count(index=index)["count"] == 880_000
