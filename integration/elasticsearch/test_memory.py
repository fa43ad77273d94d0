"""The memory of a task and of the driver is bounded by a chunk, not by the rows of an epoch."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
from elasticsearch import Elasticsearch

pytestmark = pytest.mark.slow

PROGRAM = textwrap.dedent(
    """
    import resource, sys
    import pyarrow as pa
    from integration.support.epochs import ElasticsearchQuery

    url, index, batches = sys.argv[1], sys.argv[2], int(sys.argv[3])
    columns = {"id": range(10_000), "name": ["x" * 50] * 10_000}
    rows = pa.RecordBatch.from_pydict(columns)
    query = ElasticsearchQuery(rows.schema, url=url, index=index, createIndex="true")
    query.sink.check()
    query.run_batches(0, (rows for _ in range(batches)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
)


def peak(url: str, index: str, batches: int) -> int:
    """The most memory that an epoch took, in the unit of the system (KiB on Linux)."""
    command = [sys.executable, "-c", PROGRAM, url, index, str(batches)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_ten_times_the_rows_take_no_more_memory(
    elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    few, many = (peak(elasticsearch_url, index, batches) for batches in (8, 80))
    assert many < few * 1.1
    elastic.indices.refresh(index=index)
    assert elastic.count(index=index)["count"] == 880_000
