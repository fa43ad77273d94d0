"""How fast epochs are staged and published, beside pymysql's executemany; without Spark.

Run it on a quiet machine::

    python -m tools.bench.mysql_apply [--rows 500000] [--server mysql|mariadb]

The same rows of four columns (bigint, string, double, timestamp) go into an empty table, and then
again as duplicates.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import pyarrow as pa
from integration.support.epochs import MySqlQuery
from integration.support.servers.mysql import MySqlProcess, connect, private_binary, version_at
from rich.console import Console
from rich.table import Table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.float64()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
DDL = "(id BIGINT PRIMARY KEY, name VARCHAR(50), price DOUBLE, at DATETIME(6))"
UPSERT = (
    "INSERT INTO byhand (id, name, price, at) VALUES (%s, %s, %s, %s) ON DUPLICATE KEY UPDATE"
    " name = VALUES(name), price = VALUES(price), at = VALUES(at)"
)


def make_rows(count: int) -> pa.RecordBatch:
    columns = [
        range(count),
        [f"name-{i % 1000}" for i in range(count)],
        [i * 0.123457 for i in range(count)],
        [1_600_000_000_000_000 + i * 1_000_003 for i in range(count)],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def timed(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def by_hand(url: str, rows: pa.RecordBatch) -> None:
    """What users do in foreachBatch: executemany, 10,000 rows at a time, one commit."""
    with connect(url, autocommit=False) as client, client.cursor() as cursor:
        for start in range(0, rows.num_rows, 10_000):
            part = rows.slice(start, 10_000).to_pydict()
            cursor.executemany(UPSERT, list(zip(*part.values(), strict=True)))
        client.commit()


def measure(url: str, rows: pa.RecordBatch) -> dict[str, list[float]]:
    with connect(url) as client, client.cursor() as cursor:
        for table in ("byhand", "sparkonce"):
            cursor.execute(f"CREATE TABLE {table} {DDL}")
    query = MySqlQuery(SCHEMA, url=url, dbtable="sparkonce", key="id")
    query.sink.check()
    found: dict[str, list[float]] = {"executemany": [], "stage": [], "publish": []}
    for epoch in range(3):
        found["executemany"].append(timed(lambda: by_hand(url, rows)))
        receipts: list[object] = []
        batches = [rows.slice(at, 10_000) for at in range(0, rows.num_rows, 10_000)]
        found["stage"].append(timed(lambda: receipts.extend(query.stage_batches(epoch, batches))))  # noqa: B023
        found["publish"].append(timed(lambda: query.commit(epoch, receipts)))  # noqa: B023
    return found


def show(found: dict[str, list[float]], rows: int, server: str) -> None:
    table = Table(title=f"{rows:,} rows of 4 columns an epoch, {server}")
    for column in ("step", "empty table", "all duplicates", "again"):
        table.add_column(column, justify="left" if column == "step" else "right")
    both = [a + b for a, b in zip(found["stage"], found["publish"], strict=True)]
    for name, seconds in {**found, "stage + publish": both}.items():
        table.add_row(name, *(f"{rows / each:,.0f} rows/s" for each in seconds))
    gains = [a / b for a, b in zip(found["executemany"], both, strict=True)]
    table.add_row("x executemany", *(f"{gain:.2f}" for gain in gains))
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    args = parser.parse_args()
    with MySqlProcess(private_binary(args.server), "--local-infile=1") as server:
        show(measure(server.url, make_rows(args.rows)), args.rows, version_at(server.url))


if __name__ == "__main__":
    main()
