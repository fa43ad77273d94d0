"""A task's memory is bounded by a chunk, not by its rows."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

PROGRAM = textwrap.dedent(
    """
    import resource, sys
    import pyarrow as pa
    from integration.support.epochs import REDIS
    from sparkonce.protocol import Task
    from sparkonce.exactly_once.retry import Patience
    from sparkonce.sink import open_sink
    from sparkonce.exactly_once.staging import stage

    url, name, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
    columns = {"id": range(10_000), "name": ["x" * 50] * 10_000}
    rows = pa.RecordBatch.from_pydict(columns)
    sink = open_sink(REDIS, {"url": url, "key": name + ":{id}"}, rows.schema)
    task = Task("query", "run", 0, name, 0, "attempt")
    many = (rows for _ in range(batches))
    stage(sink.store, task, many, sink.encoder(sink.plan), sink.size, Patience(0))
    sink.store.discard(name, ["attempt"])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
)


def peak(url: str, name: str, batches: int) -> int:
    """The most memory that staging took, in the unit of the system (KiB on Linux)."""
    command = [sys.executable, "-c", PROGRAM, url, name, str(batches)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_ten_times_the_rows_take_no_more_memory(redis_url: str, unique: str) -> None:
    few, many = peak(redis_url, unique, 20), peak(redis_url, unique, 200)
    assert many < few * 1.1
