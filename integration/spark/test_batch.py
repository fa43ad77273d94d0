"""Batch writes, plain, named and inside foreachBatch, through real Spark into a real Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from uuid import uuid4

import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import counts as index_counts
from integration.support.mysql import counts as mysql_counts
from integration.support.runs import Job, counts, once
from integration.support.servers.redis import RedisProcess
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from sparkonce.operate.arguments import admin_of


def adding(frame: DataFrame, url: str, name: str, **options: str) -> None:
    """Add 1 for each row: a counter is a witness that a repetition can't hide from."""
    writer = frame.write.format("redis").mode("append").option("url", url)
    writer.options(key=f"{name}:{{id}}", writeMode="increment", **options).save()


def ones(spark: SparkSession, ids: range) -> DataFrame:
    return spark.range(ids.start, ids.stop).selectExpr("id", "bigint(1) as n").repartition(3)


# -- alone


def test_plain_batch_counts_once_and_leaves_no_record(
    spark: SparkSession, private_redis: Callable[..., RedisProcess], unique: str
) -> None:
    """On a server of its own: tasks of jobs that failed before it may stage rows still."""
    url = private_redis().url
    adding(ones(spark, range(500)), url, unique)
    assert counts(url, unique) == once(range(500))
    assert admin_of(url, ()).sinks() == []


def test_version_that_comes_again_is_skipped_and_a_lower_one_refused(
    spark: SparkSession, redis_url: str, unique: str
) -> None:
    def write(ids: range, version: int) -> None:
        adding(ones(spark, ids), redis_url, unique, txnAppId=unique, txnVersion=str(version))

    write(range(100), 20261123)
    write(range(100, 150), 20261124)
    with pytest.raises(Exception, match=r"(?s)WrittenTwice.*in one session"):
        write(range(100), 20261124)
    spark = spark.newSession()  # that of a job which is run again
    write(range(100), 20261124)
    assert counts(redis_url, unique) == once(range(150))
    with pytest.raises(Exception, match=r"(?s)VersionBehindSink.*txnVersion above 20261124"):
        write(range(100), 20261123)
    assert counts(redis_url, unique) == once(range(150))


# -- inside foreachBatch


def test_two_writes_with_names_count_once_each(counting: Job) -> None:
    died: list[bool] = []

    def write(frame: DataFrame, _: int) -> None:
        adding(frame, counting.url, counting.name, sinkId=f"{counting.name}-a")
        if not died:
            died.append(True)
            raise RuntimeError("between the two")
        adding(frame, counting.url, counting.name, sinkId=f"{counting.name}-b")

    counting.put(range(100))
    with pytest.raises(Exception, match="between the two"):
        counting.run_batches(write)
    counting.run_batches(write)
    assert counting.counts() == once([*range(100), *range(100)])


@pytest.mark.parametrize("named", [{}, {"txnAppId": "job", "txnVersion": "7"}], ids=["", "named"])
def test_a_job_group_of_the_user_hides_no_second_write(
    counting: Job, named: dict[str, str]
) -> None:
    """Spark keeps the run of a stream there, in which nothing proves that it is one."""

    def write(frame: DataFrame, _: int) -> None:
        for _ in range(2):
            frame.sparkSession.sparkContext.setJobGroup(str(uuid4()), "a group of my own")
            adding(frame, counting.url, counting.name, **named)

    counting.put(range(10))
    for _ in ("first", "replay"):
        with pytest.raises(Exception, match=r"(?s)WrittenTwice.*sinkId"):
            counting.run_batches(write)
    assert counting.counts() == once(range(10))


def test_options_of_a_checkpoint_are_refused_for_a_batch(
    spark: SparkSession, redis_url: str, unique: str
) -> None:
    with pytest.raises(Exception, match="Option checkpointLocation can't be set for a batch"):
        adding(ones(spark, range(3)), redis_url, unique, checkpointLocation="/anywhere")


@pytest.mark.parametrize(("thread", "times"), [(Thread, 2), (InheritableThread, 1)])
def test_a_thread_has_the_identity_of_the_batch_only_if_it_inherits(
    counting: Job, thread: type[Thread], times: int
) -> None:
    def add(frame: DataFrame) -> None:
        frame.sparkSession.createDataFrame([], "id int")  # makes the session this thread's
        adding(frame, counting.url, counting.name)

    def write(frame: DataFrame, _: int) -> None:
        other = thread(target=add, args=(frame,))
        other.start()
        other.join()

    counting.put(range(50))
    try:
        counting.run_batches(write)
        counting.uncommit(0)
        counting.run_batches(write)
    finally:  # PySpark has one active session for all threads
        counting.spark.createDataFrame([], "id int")
    assert counting.counts() == once([*range(50)] * times)


@dataclass
class Target:
    """A store, what a write into it needs, and what its counters then say."""

    form: str
    options: dict[str, str]
    counts: Callable[[], Counter[int]]

    def add(self, rows: DataFrame) -> None:
        options = {"writeMode": "increment", **self.options}
        rows.write.format(self.form).mode("append").options(**options).save()


@pytest.fixture
def targets(
    counting: Job,
    mysql_url: str,
    counters_table: str,
    elastic: Elasticsearch,
    elasticsearch_url: str,
    counter_index: str,
) -> list[Target]:
    into_mysql = {"url": mysql_url, "dbtable": counters_table, "key": "id"}
    into_index = {"url": elasticsearch_url, "index": counter_index, "key": "id"}
    return [
        Target("redis", counting.options, counting.counts),
        Target("mysql", into_mysql, lambda: mysql_counts(mysql_url, counters_table)),
        Target("elasticsearch", into_index, lambda: index_counts(elastic, counter_index)),
    ]


@pytest.fixture
def counters_table(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("counters"))


def test_each_of_three_targets_counts_once_wherever_the_batch_dies(
    counting: Job, targets: list[Target]
) -> None:
    lives = iter(range(1, len(targets) + 1))  # each run gets one target further

    def write(frame: DataFrame, _: int) -> None:
        further = next(lives, len(targets))
        for target in targets[:further]:
            target.add(frame)
        if further < len(targets):
            raise RuntimeError("the batch dies here")

    counting.put(range(60))
    for _ in targets[:-1]:
        with pytest.raises(Exception, match="the batch dies here"):
            counting.run_batches(write)
    counting.run_batches(write)
    counting.uncommit(0)
    counting.put(range(60, 90))
    counting.run_batches(write)
    assert [target.counts() for target in targets] == [once(range(90))] * len(targets)
