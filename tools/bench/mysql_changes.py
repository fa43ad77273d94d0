"""How long the commit of a change stream takes whose keys repeat; without Spark.

Run it on a quiet machine::

    python -m tools.bench.mysql_changes [--rows 40000] [--keys 20000] [--server mariadb]

Of the rows, of three columns, each fifth is a delete. The first epoch finds an empty table, the
second one the rows of the first.
"""

from __future__ import annotations

import argparse

import pyarrow as pa
from integration.support.epochs import MySqlQuery
from integration.support.servers.mysql import MySqlProcess, connect, private_binary, version_at
from rich.console import Console
from rich.table import Table
from tools.bench.mysql_apply import timed

SCHEMA = pa.schema(
    [("id", pa.int64()), ("op", pa.string()), ("at", pa.int64()), ("name", pa.string())]
)
WAYS = {
    "opColumn": {"opColumn": "op"},
    "opColumn and sequenceColumn": {"opColumn": "op", "sequenceColumn": "at"},
}


def make_rows(rows: int, keys: int) -> pa.Table:
    numbers = range(rows)
    return pa.table(
        {
            "id": [n * 7919 % keys for n in numbers],
            "op": ["d" if n % 5 == 0 else "u" for n in numbers],
            "at": numbers,
            "name": [f"name-{n % 1000}" for n in numbers],
        },
        SCHEMA,
    )


def measure(url: str, made: pa.Table, **options: str) -> list[float]:
    """Seconds that each epoch takes to be committed."""
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS changes")
        cursor.execute("CREATE TABLE changes (id BIGINT PRIMARY KEY, at BIGINT, name VARCHAR(50))")
    query = MySqlQuery(SCHEMA, url=url, dbtable="changes", key="id", **options)
    query.sink.store.check()
    found = []
    for epoch in range(2):
        receipts = query.stage_batches(epoch, made.to_batches(10_000))
        found.append(timed(lambda: query.commit(epoch, receipts)))  # noqa: B023
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--timeout", default="30")
    parser.add_argument("--server", choices=["mysql", "mariadb"], default="mysql")
    args = parser.parse_args()
    made = make_rows(args.rows, args.keys)
    with MySqlProcess(private_binary(args.server)) as server:
        title = f"{args.rows:,} rows of {args.keys:,} keys, {version_at(server.url)}"
        table = Table("", "empty table", "again", title=title)
        for name, options in WAYS.items():
            taken = measure(server.url, made, timeout=args.timeout, **options)
            table.add_row(name, *(f"{seconds:.2f} s" for seconds in taken))
    Console().print(table)


if __name__ == "__main__":
    main()
