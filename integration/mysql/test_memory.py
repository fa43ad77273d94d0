"""The memory of a task and of the driver is bounded by a chunk, not by the rows of an epoch."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from pymysql.cursors import Cursor

pytestmark = pytest.mark.slow

PROGRAM = textwrap.dedent(
    """
    import resource, sys
    import pyarrow as pa
    from integration.support.epochs import MySqlQuery

    url, table, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
    columns = {"id": range(10_000), "name": ["x" * 50] * 10_000}
    rows = pa.RecordBatch.from_pydict(columns)
    query = MySqlQuery(rows.schema, url=url, dbtable=table)
    query.run_batches(0, (rows for _ in range(batches)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
)


READING = textwrap.dedent(
    """
    import resource, sys
    from pyspark_mysql.connector import MySqlConnector
    from sparkonce import options
    from sparkonce.reading import Scan

    url, table, most = sys.argv[1:]
    raw = {"url": url, "query": f"SELECT * FROM {table} LIMIT {most}"}
    given, connector = options.parse(MySqlConnector.reads, raw), MySqlConnector()
    source = connector.source(given, Scan(connector.infer(given)))
    (split,) = source.splits()
    assert sum(batch.num_rows for batch in source.read(split)) == int(most)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
)


def peak(url: str, table: str, batches: int, program: str = PROGRAM) -> int:
    """The most memory that a process took, in the unit of the system (KiB on Linux)."""
    command = [sys.executable, "-c", program, url, table, str(batches)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_ten_times_the_rows_take_no_more_memory(mysql: Cursor, mysql_url: str, table: str) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT, name VARCHAR(50))")
    few, many = peak(mysql_url, table, 4), peak(mysql_url, table, 40)
    assert many < few * 1.1
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchone() == (440_000,)
    few, many = (peak(mysql_url, table, rows, READING) for rows in (200_000, 440_000))
    assert many < few * 1.1
