"""`format("elasticsearch")` under the streaming half of the kit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from demo.java import java_home
from integration.support.runs import Job
from integration.support.sinks import counting, in_elasticsearch
from pyspark import TaskContext
from pyspark.sql import SparkSession

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import CHECKS
from sparkonce.tck.spark.run import run_check


@pytest.fixture
def job(spark: SparkSession, elasticsearch_url: str, index: str, tmp_path: Path) -> Job:
    made = Job(spark, tmp_path / "job", elasticsearch_url, index)
    made.format = "elasticsearch"
    made.options = {"url": elasticsearch_url, "index": index, "createIndex": "true"}
    return made


def half_and_fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first attempt of a task dies with half of its rows written."""
    context = TaskContext.get()
    for batch in batches:
        yield batch.slice(0, len(batch) // 2)
        if context and context.attemptNumber() == 0 and batch.column(0)[0].as_py() >= 3000:
            raise RuntimeError("the first attempt dies")
        yield batch.slice(len(batch) // 2)


@pytest.mark.slow
def test_task_that_fails_and_replay_write_each_row_once(job: Job, index: str) -> None:
    job.transform = lambda rows: rows.coalesce(1).mapInArrow(half_and_fail, rows.schema)
    job.put(range(3000))
    job.put(range(3000, 6500))
    job.run()
    job.uncommit(1)
    job.put(range(6500, 7000))
    job.run()
    assert in_elasticsearch(job.url, index) == Counter(range(7000))
    sink = job.sink()
    assert sink.ledger is not None
    assert (sink.ledger.decision.epoch, sink.ledger.totals.rows) == (2, 7000)


@pytest.fixture
def java(tmp_path: Path) -> dict[str, str]:
    return {"JAVA_HOME": str(java_home(tmp_path))}


@pytest.mark.slow
@pytest.mark.parametrize("rule", CHECKS)
def test_a_stream_is_exactly_once(
    bench: Bench, elasticsearch_url: str, index: str, java: dict[str, str], rule: str
) -> None:
    run_check(bench, rule, counting(elasticsearch_url, index, env=java)).insist()


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["Q03", "Q08"])
def test_an_append_is_exactly_once(
    bench: Bench, elasticsearch_url: str, index: str, java: dict[str, str], rule: str
) -> None:
    """Its documents are named by their chunks, which no other test of these rules does."""
    sink = counting(elasticsearch_url, index, env=java)
    options = {"url": elasticsearch_url, "index": index, "writeMode": "append"}
    run_check(bench, rule, replace(sink, options=options)).insist()
