"""How fast the Redis sink is, beside what users do today and beside a writer that only counts.

Run it on a quiet machine::

    python -m tools.bench.redis_speed [--rows 500000] [--rounds 3]

All figures come from one run, one Spark session, one server and the same rows of four columns
(bigint, string, double, timestamp). A round is one epoch; the median of the rounds is shown.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import redis
from integration.support.servers import spark as local_spark
from integration.support.servers.cache import jars
from integration.support.servers.redis import RedisProcess, describe_private
from integration.support.servers.redis_cluster import RedisCluster
from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console
from rich.table import Table
from tools.bench import old_spark
from tools.bench.streams import Counting, Writer, in_batches, make_input, run, seconds

SPARK_REDIS = "com.redislabs:spark-redis_2.12:3.0.0"


Connect = Callable[[str], redis.Redis]


def one_server(url: str) -> redis.Redis:
    return redis.Redis.from_url(url)


def a_cluster(url: str) -> redis.Redis:
    """Its client of a cluster, which sends a pipeline to each node."""
    first = url.removeprefix("redis+cluster://").partition(",")[0]
    return redis.RedisCluster.from_url(f"redis://{first}")  # type: ignore[return-value]


def at_least_once(url: str, connect: Connect = one_server) -> Callable[[DataFrame, int], None]:
    """What users write by hand: foreachBatch with a redis-py pipeline in each partition.

    Rows are taken apart as tuples and sent 1,000 at a time: attributes by name and larger
    pipelines were slower.
    """

    def send(rows: Iterator[Row]) -> None:
        with connect(url) as client, client.pipeline(transaction=False) as pipe:
            for id_, name, price, at in rows:
                fields = {"id": id_, "name": name, "price": price, "at": str(at)}
                pipe.hset(f"user:{id_}", mapping=fields)
                if len(pipe) >= 1000:
                    pipe.execute()
            pipe.execute()

    return lambda batch, _: batch.foreachPartition(send)


def writers(url: str) -> dict[str, Writer]:
    return {
        "noop in the JVM": lambda rows: rows.writeStream.format("noop"),
        "counting Arrow writer": lambda rows: rows.writeStream.format("counting"),
        "foreachBatch + redis-py": lambda rows: rows.writeStream.foreachBatch(at_least_once(url)),
        "sparkonce": lambda rows: (
            rows.writeStream.format("redis").option("url", url).option("key", "user:{id}")
        ),
        "sparkonce, df.write": in_batches("redis", url=url, key="user:{id}"),
    }


def cluster_writers(url: str) -> dict[str, Writer]:
    by_hand = at_least_once(url, a_cluster)
    return {
        "cluster: foreachBatch + redis-py": lambda rows: rows.writeStream.foreachBatch(by_hand),
        "cluster: sparkonce": lambda rows: (
            rows.writeStream.format("redis").option("url", url).option("key", "user:{id}")
        ),
    }


def by_spark_redis(source: Path, server: RedisProcess) -> list[float]:
    """The seconds of each epoch after the first, on a Spark of its own; an upsert as ours."""
    own = {"host": "127.0.0.1", "port": str(server.port), "key.column": "id"}
    targets = [{**own, "table": table} for table in ("warm", "user")]
    flush(server.url)
    took = old_spark.write(source, jars(SPARK_REDIS), "org.apache.spark.sql.redis", targets)
    return took[1:]


def throughput(
    spark: SparkSession, source: Path, named: dict[str, Writer], urls: Sequence[str], rows: int
) -> dict[str, float]:
    found = {}
    for name, writer in named.items():
        for url in urls:
            flush(url)
        query = run(spark, source, writer, files=4)
        found[name] = rows / statistics.median(seconds(query, "addBatch"))
    return found


def latency(spark: SparkSession, source: Path, url: str) -> dict[str, float]:
    found = {}
    for name, writer in writers(url).items():
        flush(url)
        query = run(spark, source, writer, files=1)
        found[name] = statistics.median(seconds(query, "addBatch")) * 1000
    return found


def flush(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()


def show(fast: dict[str, float], small: dict[str, float], rows: int, server: str) -> None:
    by_hand = fast["foreachBatch + redis-py"]
    counting = small["counting Arrow writer"]
    table = Table(title=f"{rows:,} rows of 4 columns an epoch, {server}")
    for column in ("writer", "rows/s", "x by hand", "1-row ms", "extra ms"):
        table.add_column(column, justify="left" if column == "writer" else "right", no_wrap=True)
    for name, rate in fast.items():
        one = (f"{small[name]:.0f}", f"{small[name] - counting:+.0f}") if name in small else ()
        table.add_row(name, f"{rate:,.0f}", f"{rate / by_hand:.2f}", *one)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="sparkonce-bench-"))
    try:
        with (
            RedisProcess() as server,
            RedisCluster(replicas=0) as cluster,
            local_spark.session(home) as spark,
        ):
            spark.dataSource.register(Counting)
            large = make_input(spark, home / "large", args.rows, args.rounds + 1)
            single = make_input(spark, home / "single", 1, 25)
            fast = throughput(spark, large, writers(server.url), [server.url], args.rows)
            nodes = [node.url for node in cluster.nodes]
            fast |= throughput(spark, large, cluster_writers(cluster.url), nodes, args.rows)
            jvm = statistics.median(by_spark_redis(large, server))
            fast["spark-redis, its own Spark"] = args.rows / jvm
            small = latency(spark, single, server.url)
    finally:
        shutil.rmtree(home)
    show(fast, small, args.rows, describe_private())
    if args.json:
        args.json.write_text(json.dumps({"rows_per_s": fast, "one_row_ms": small}, indent=2))


if __name__ == "__main__":
    main()
