"""The forms in which Spark can write a checkpoint: a replay is still told from new rows.

Spark 4.3 by default writes version 1 of offsets and commits; each of these settings changes a file
by which it goes on, and stays with the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from integration.support.runs import Job, once
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamReader

STREAMING = "spark.sql.streaming"
EVOLUTION = f"{STREAMING}.queryEvolution"
STATE = f"{STREAMING}.stateStore"
ROCKSDB = {
    f"{STATE}.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    f"{STATE}.rocksdb.changelogCheckpointing.enabled": "true",
}
FORMS: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "offsets by number": ({f"{STREAMING}.offsetLog.formatVersion": "2"}, "v2", "v1"),
    "offsets by name": ({f"{EVOLUTION}.enableSourceEvolution": "true"}, "v2", "v1"),
    "named sinks": ({f"{EVOLUTION}.enableSinkEvolution": "true"}, "v1", "v3"),
    "changelog": (ROCKSDB, "v1", "v1"),
    "changelog by ids": ({**ROCKSDB, f"{STATE}.checkpointFormatVersion": "2"}, "v1", "v2"),
}
NAMED = {"offsets by name": "source", "named sinks": "sink"}


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in conf:
            spark.conf.unset(name)


def version(job: Job, log: str, epoch: int) -> str:
    return (job.checkpoint / log / str(epoch)).read_text().partition("\n")[0]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_replay_is_told_from_new_rows_in_every_form_of_a_checkpoint(
    counting: Job, form: str
) -> None:
    """Each epoch repeats a row, so that a stateful query must have kept its state, too."""
    conf, offsets, commits = FORMS[form]
    counting.named = NAMED.get(form, "")
    if counting.named and not hasattr(DataStreamReader, "name"):
        pytest.skip("this Spark names no sources and sinks")
    counting.transform = lambda rows: rows.dropDuplicates(["id"])
    with settings(counting.spark, conf):
        for start in (0, 10):
            counting.put(range(start, start + 11))
            counting.run()
        assert (version(counting, "offsets", 1), version(counting, "commits", 1)) == (
            offsets,
            commits,
        )
        counting.uncommit(1)
        counting.put(range(20, 31))
        query = counting.run()
        assert [progress.batchId for progress in query.recentProgress][:2] == [1, 2]
        twin = counting.copy_checkpoint("twin")
        counting.put(range(31, 40))
        counting.run()
        (counting.input / f"{counting.files - 1:05d}.json").unlink()
        counting.put(range(40, 50))
        assert "CheckpointDiverged" in counting.refused(checkpoint=twin)
    assert counting.counts() == once(range(40))
