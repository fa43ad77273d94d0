"""What one driver can move: the rows of a commit for each second of its own CPU time.

Run it on a quiet machine::

    python -m tools.bench.driver_speed [--rows 500000] [--rounds 5]

A driver waits for its server most of the time. Its CPU time is what is left where the server
answers at once, so it bounds what one driver can move, however many servers there are behind it.
Tasks stage in processes of their own; only the commit is measured. The median of the rounds counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from integration.support.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery
from integration.support.servers.mysql import MySqlProcess, connect, private_binary
from integration.support.servers.redis import RedisProcess
from rich.console import Console
from rich.table import Table
from tools.bench.elasticsearch_speed import fresh, measured
from tools.bench.mysql_apply import DDL, SCHEMA, make_rows


@contextmanager
def on_redis() -> Iterator[DirectQuery]:
    with RedisProcess() as server:
        yield DirectQuery(SCHEMA, url=server.url, key="row:{id}")


@contextmanager
def on_mysql() -> Iterator[DirectQuery]:
    with MySqlProcess(private_binary("mysql"), "--local-infile=0") as server:
        with connect(server.url) as client, client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE bench {DDL}")
        yield MySqlQuery(SCHEMA, url=server.url, dbtable="bench", key="id")


@contextmanager
def on_elasticsearch() -> Iterator[DirectQuery]:
    with measured() as node:
        fresh(node.url, "bench")
        yield ElasticsearchQuery(SCHEMA, url=node.url, index="bench", key="id")


STORES: dict[str, Callable[[], Iterator[DirectQuery]]] = {
    "Redis": on_redis,
    "MySQL": on_mysql,
    "Elasticsearch": on_elasticsearch,
}


def rate(query: DirectQuery, rows: pa.RecordBatch, rounds: int) -> float:
    """Rows for each second of CPU time in a commit."""
    query.sink.check()
    batches = [rows.slice(at, 10_000) for at in range(0, len(rows), 10_000)]
    found = []
    for epoch in range(rounds):
        receipts = query.stage_batches(epoch, batches)
        began = time.process_time()
        query.commit(epoch, receipts)
        found.append(len(rows) / (time.process_time() - began))
    return statistics.median(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rows = make_rows(args.rows)
    table = Table(title=f"What one driver can move, of epochs of {args.rows:,} rows of 4 columns")
    table.add_column("store")
    table.add_column("rows for each second of the driver's CPU time", justify="right")
    for name, opened in STORES.items():
        with opened() as query:
            table.add_row(name, f"{rate(query, rows, args.rounds):,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
