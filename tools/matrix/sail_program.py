"""Batches in Sail instead of Spark: `sail_program.py TASK RESULT`, two files of JSON."""

from __future__ import annotations

import json
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from integration.support.kit import counting
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

import sparkonce

if TYPE_CHECKING:
    from sparkonce.tck.spark.sink import StreamingSink

ROWS, PLANNED = 300, "fails as planned"
JOBS = (
    ("a batch with a name", 1, ROWS, ""),
    ("the same again, with other tasks", 1, ROWS, ""),
    ("a job that fails", 2, 2 * ROWS, f"raise_error('{PLANNED}')"),
    ("the next batch", 2, 2 * ROWS, ""),
)
"""The jobs: a description, the version, the end of the ids, and the fault of the last row."""


def steps(spark: SparkSession, sink: StreamingSink) -> Iterator[dict[str, Any]]:
    """The result of each job."""
    wanted: set[str] = set()
    app = uuid.uuid4().hex
    for tasks, (what, number, rows, fault) in enumerate(JOBS, start=2):
        ids = range((number - 1) * ROWS, rows)
        last = f"if(id = {ids.stop - 1}, {fault}, 1)" if fault else "1"
        frame = spark.range(ids.start, ids.stop).repartition(tasks)
        frame = frame.selectExpr("cast(id as string) as id", f"bigint({last}) as n")
        options = {**sink.options, "txnAppId": app, "txnVersion": str(number)}
        error = ""
        try:
            frame.write.format(f"sparkonce_{sink.format}").mode("append").options(**options).save()
            wanted.update(map(str, ids))
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"[:500]
        as_planned = PLANNED in error if fault else not error
        exact = Counter(sink.read()) == Counter(wanted) and as_planned
        why = "" if exact else error
        yield {"store": sink.format, "what": what, "rows": len(wanted), "exact": exact, "why": why}


def main(task: Path, result: Path) -> None:
    urls: dict[str, str] = json.loads(task.read_text())["urls"]
    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    host, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    sparkonce.register(spark)
    name = f"sail{uuid.uuid4().hex[:8]}"
    made = [step for url in urls.values() for step in steps(spark, counting(url, name))]
    versions = {name: version(name) for name in ("pysail", "pyspark", "pyarrow")}
    result.write_text(json.dumps({"versions": versions, "steps": made}))
    spark.stop()
    server.stop()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
