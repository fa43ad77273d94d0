"""How fast streams of Redis and MySQL's binary log go through Spark into `noop`.

Run it on a quiet machine::

    python -m tools.bench.follows [--rows 1000000] [--rounds 3]

Beside them, in the same run and on the same rows, what reads them without Spark: a loop over XRANGE
with redis-py; and of the binary log python-mysql-replication, which reads a part, as it is slow.
Medians of the rounds after the first.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import redis
from integration.support.mysql_following import GTIDS, LOGGED
from integration.support.servers import spark as local_spark
from integration.support.servers.mysql import QUICK, MySqlProcess, connect, private_binary
from integration.support.servers.redis import RedisProcess, describe_private
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from tools.bench import reads

AT_ONCE, TRANSACTION = 1000, 1000
SLOW = 10
"""One row of so many is read by what is slow."""
SCHEMA = "id bigint, name string, price double, at timestamp"


def row(at: int) -> tuple[int, str, float, str]:
    return at, f"customer {at % 9973}", at * 0.37, f"2026-01-01 00:00:{at % 60:02}"


def fill_redis(url: str, rows: int) -> None:
    with redis.from_url(url) as client:
        for low in range(0, rows, AT_ONCE):
            pipe = client.pipeline(transaction=False)
            for at in range(low, low + AT_ONCE):
                pipe.xadd("s", dict(zip(("id", "name", "price", "at"), row(at), strict=True)))
            pipe.execute()


def fill_mysql(url: str, rows: int) -> None:
    with closing(connect(url)) as client, client.cursor() as cursor:
        columns = "id BIGINT PRIMARY KEY, name VARCHAR(40), price DOUBLE, at TIMESTAMP"
        cursor.execute(f"CREATE TABLE t ({columns})")
        for low in range(0, rows, TRANSACTION):
            values = ", ".join(str(row(at)) for at in range(low, low + TRANSACTION))
            cursor.execute(f"INSERT INTO t VALUES {values}")


def through_spark(spark: SparkSession, form: str, **options: str) -> int:
    """A query of what is there, from its start to its end; how many rows it read."""
    stream = spark.readStream.format(form).options(**options)
    stream = stream.schema(SCHEMA) if form == "redis" else stream
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = stream.load().writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(one["numInputRows"] for one in query.recentProgress)


def by_xrange(url: str) -> int:
    """What users write: each entry as a dictionary."""
    found, after = 0, "-"
    with redis.from_url(url, decode_responses=True) as client:
        while entries := client.xrange("s", after, count=AT_ONCE):
            found += len(entries)
            after = f"({entries[-1][0]}"
    return found


def by_replication(url: str, rows: int) -> int:
    """What users write: each row as a dictionary; a part of them."""
    parts = urlsplit(url)
    login = {"host": parts.hostname, "port": parts.port, "user": "root", "passwd": ""}
    found = 0
    with closing(
        BinLogStreamReader(connection_settings=login, server_id=77, only_events=[WriteRowsEvent])
    ) as stream:
        for event in stream:
            found += len(event.rows)
            if found >= rows:
                break
    return found


def in_turns(ways: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Rows a second of each."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            began = time.monotonic()
            rows = way()
            if number:  # in the first one Java compiles and workers start
                took[name].append(rows / (time.monotonic() - began))
    return {name: statistics.median(each) for name, each in took.items()}


def show(title: str, took: dict[str, float], plain: str) -> None:
    table = Table("reader", "rows/s", f"against {plain}", title=title)
    for name, each in took.items():
        table.add_row(name, f"{each:,.0f}", f"{each / took[plain]:.2f}")
    Console(width=100).print(table)


def main() -> None:
    given = reads.arguments(__doc__, 1_000_000).parse_args()
    with ExitStack() as running:
        streams = running.enter_context(RedisProcess())
        binary = private_binary("mysql")
        log = MySqlProcess(binary, *LOGGED, *GTIDS["mysql"], *QUICK, "--binlog-row-metadata=FULL")
        running.enter_context(log)
        home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
        spark = running.enter_context(local_spark.session(home))
        fill_redis(streams.url, given.rows)
        own = partial(through_spark, spark)
        of_redis = {"url": streams.url, "streams": "s", "startingPosition": "earliest"}
        took = in_turns(
            {
                "redis-py, a loop over XRANGE": lambda: by_xrange(streams.url),
                "sparkonce": partial(own, "redis", **of_redis),
                "sparkonce, 200,000 rows an epoch": partial(
                    own, "redis", **of_redis, maxRowsPerBatch="200000"
                ),
            },
            given.rounds,
        )
        show(f"Redis stream, {describe_private()}", took, "redis-py, a loop over XRANGE")
        with closing(connect(log.url)) as client, client.cursor() as cursor:
            cursor.execute("SELECT @@global.gtid_executed")
            ((begin,),) = cursor.fetchall()
        fill_mysql(log.url, given.rows)
        of_mysql = {"url": log.url, "dbtable": "t"}
        from_log = {**of_mysql, "startingPosition": begin}
        took = in_turns(
            {
                "python-mysql-replication, a loop": partial(
                    by_replication, log.url, given.rows // SLOW
                ),
                "sparkonce": partial(own, "mysql", **from_log),
                "sparkonce, 200,000 rows an epoch": partial(
                    own, "mysql", **from_log, maxRowsPerBatch="200000"
                ),
                "sparkonce, snapshot": partial(
                    own, "mysql", **of_mysql, startingPosition="snapshot"
                ),
            },
            given.rounds,
        )
        title = f"Binary log of {binary.how} {binary.version}, {TRANSACTION} rows a transaction"
        show(title, took, "python-mysql-replication, a loop")


if __name__ == "__main__":
    main()
