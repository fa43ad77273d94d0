"""A batch of a stream that goes into all three stores: each row counts once in each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from integration.support import counted, counters
from integration.support.runs import Job, once
from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from elasticsearch import Elasticsearch
    from pymysql.cursors import Cursor


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
    mysql: Cursor,
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
        Target("mysql", into_mysql, lambda: counters.counts(mysql, counters_table)),
        Target("elasticsearch", into_index, lambda: counted.counts(elastic, counter_index)),
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


def test_batch_without_a_name_counts_once_and_leaves_no_record(
    counting: Job, targets: list[Target]
) -> None:
    for target in targets:
        target.add(counting.spark.range(50).selectExpr("id", "bigint(1) as n"))
    assert [target.counts() for target in targets] == [once(range(50))] * len(targets)
