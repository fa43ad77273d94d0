"""Replays, retries and restarts through real Spark into a real Redis: each row counts once.

Most jobs here increment a counter for each row: the counter is a witness that a row which took
effect twice can't hide from.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from integration.support.runs import Job, once
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def test_every_row_takes_effect_once_and_nothing_stays_staged(counting: Job) -> None:
    counting.put(range(1000))
    counting.put(range(1000, 2500))
    counting.run()
    assert counting.counts() == once(range(2500))
    sink = counting.sink()
    assert sink.ledger is not None
    assert (sink.ledger.decision.epoch, sink.ledger.totals.rows, sink.staged) == (1, 2500, ())


def test_replayed_epoch_is_not_applied_again(counting: Job) -> None:
    counting.put(range(100))
    counting.run()
    counting.put(range(100, 200))
    counting.run()
    counting.uncommit(1)
    counting.put(range(200, 300))
    query = counting.run()
    assert [progress.batchId for progress in query.recentProgress][:2] == [1, 2]
    assert counting.counts() == once(range(300))
    assert counting.sink().staged == ()


def test_replay_that_computes_other_rows_changes_nothing(upserting: Job) -> None:
    upserting.transform = lambda rows: rows.withColumn("random", F.expr("uuid()")).repartition(3)
    upserting.put(range(500))
    upserting.run()
    before = upserting.rows()
    upserting.uncommit(0)
    upserting.run()
    assert len(before) == 500
    assert upserting.rows() == before


def test_both_names_of_the_format_go_on_with_one_checkpoint(counting: Job) -> None:
    counting.put(range(100))
    counting.run()
    counting.uncommit(0)
    counting.format = "sparkonce_redis"
    counting.put(range(100, 200))
    counting.run()
    assert counting.counts() == once(range(200))


def test_restart_with_another_number_of_partitions_counts_once(counting: Job) -> None:
    counting.transform = lambda rows: rows.repartition(5)
    counting.put(range(300))
    counting.run()
    counting.uncommit(0)
    counting.transform = lambda rows: rows.coalesce(1)
    counting.put(range(300, 400))
    counting.run()
    assert counting.counts() == once(range(400))


def fail_first_attempt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        raise RuntimeError("this attempt fails after it has sent its rows")


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Batches of 20 rows: those before a failure reach the sink, and it stages them."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.usefixtures("small_batches")
def test_failed_attempt_leaves_no_trace(counting: Job) -> None:
    counting.options["chunkRows"] = "10"
    counting.transform = lambda rows: rows.repartition(2).mapInArrow(
        fail_first_attempt, "id bigint, n bigint"
    )
    counting.put(range(200))
    counting.run()
    assert counting.counts() == once(range(200))
    assert counting.sink().staged == ()


def test_empty_epochs_are_consecutive_and_commit(counting: Job) -> None:
    counting.transform = lambda rows: rows.where("id % 2 = 0 and id >= 100")
    for ids in (range(10), range(100, 110), range(10, 20)):
        counting.put(ids)
    counting.run()
    sink = counting.sink()
    assert sink.ledger is not None
    assert (sink.ledger.decision.epoch, sink.ledger.totals.epochs, sink.ledger.totals.rows) == (
        2,
        3,
        5,
    )
    assert counting.counts() == once(range(100, 110, 2))


def test_stateful_query_survives_a_skipped_replay(counting: Job) -> None:
    """A task that skips its rows must still read them: the operator before it saves its state."""
    counting.transform = lambda rows: rows.dropDuplicates(["id"])
    counting.put(range(100))
    counting.put(range(50, 150))
    counting.run()
    counting.uncommit(1)
    counting.put(range(100, 200))
    counting.run()
    assert counting.counts() == once(range(200))


def test_large_epoch_is_applied_chunk_by_chunk(counting: Job) -> None:
    counting.options["chunkRows"] = "2000"
    counting.put(range(40_000))
    counting.run()
    counting.uncommit(0)
    counting.run()
    assert counting.counts() == once(range(40_000))
