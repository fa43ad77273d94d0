"""What happens when checkpoint and sink disagree, through real Spark into a real Redis."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner
from integration.support.runs import Job, once
from integration.support.servers.process import wait_until
from integration.support.servers.redis import RedisProcess
from integration.support.servers.spark import LOG
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamReader

from sparkonce.operate.cli import main
from sparkonce.spark.session import CHECKPOINTS


def test_deleted_checkpoint_is_refused_where_rows_would_count_twice(counting: Job) -> None:
    counting.put(range(50))
    counting.run()
    old = counting.query_id()
    shutil.rmtree(counting.checkpoint)
    message = counting.refused()
    assert "CheckpointReplaced" in message
    assert f"onNewCheckpoint=continue:{old}" in message
    assert counting.counts() == once(range(50))


def test_deleted_checkpoint_is_noticed_where_the_session_places_it(
    counting: Job, spark: SparkSession
) -> None:
    counting.query_name = counting.checkpoint.name
    spark.conf.set(CHECKPOINTS, str(counting.home))
    try:
        counting.put(range(50))
        counting.run()
        shutil.rmtree(counting.checkpoint)
        assert "CheckpointReplaced" in counting.refused()
    finally:
        spark.conf.unset(CHECKPOINTS)
    assert counting.counts() == once(range(50))


def test_deleted_checkpoint_starts_a_new_generation_of_an_upsert(upserting: Job) -> None:
    upserting.options["sinkId"] = f"{upserting.name}-sink"
    upserting.put(range(50))
    upserting.run()
    old = upserting.query_id()
    shutil.rmtree(upserting.checkpoint)
    upserting.put(range(50, 60))
    upserting.run()
    ledger = upserting.sink(upserting.options["sinkId"]).ledger
    assert ledger is not None
    assert (ledger.owner.generation, ledger.decision.epoch, ledger.owner.retired) == (2, 1, (old,))
    assert len(upserting.rows()) == 60


@pytest.mark.slow
def test_offsets_that_a_crash_of_the_host_has_lost_are_put_back(counting: Job) -> None:
    counting.put(range(10))
    counting.put(range(10, 20))
    counting.run()
    for log in ("offsets", "commits"):
        (counting.checkpoint / log / "1").unlink()
        (counting.checkpoint / log / ".1.crc").unlink()
    counting.put(range(20, 30))
    message = counting.refused()
    sink = counting.sink().name
    assert "CheckpointDiverged" in message
    assert f"sparkonce offsets URL {sink}" in message

    shown = CliRunner().invoke(main, ["offsets", counting.url, sink])
    assert '{"logOffset":1}' in shown.output
    where = ["--restore", str(counting.checkpoint)]
    restored = CliRunner().invoke(main, ["offsets", counting.url, sink, *where])
    assert restored.exit_code == 0, restored.output
    assert (counting.checkpoint / "offsets" / "1").read_text() == shown.output
    counting.run()
    assert counting.counts() == once(range(30))


@pytest.mark.slow
@pytest.mark.parametrize("torn", [("offsets", "commits"), ("commits",), ("offsets",)])
def test_files_that_a_crash_of_the_host_has_torn_are_put_back_or_aside(
    counting: Job, torn: tuple[str, ...]
) -> None:
    counting.put(range(10))
    counting.put(range(10, 20))
    counting.run()
    for log in torn:
        file = counting.checkpoint / log / "1"
        file.write_bytes(bytes(file.stat().st_size))
        (counting.checkpoint / log / ".1.crc").unlink()
    counting.put(range(20, 30))
    assert "sparkonce" not in counting.refused(), "Spark does not even start"
    where = ["--restore", str(counting.checkpoint)]
    restored = CliRunner().invoke(main, ["offsets", counting.url, counting.sink().name, *where])
    assert restored.exit_code == 0, restored.output
    counting.run()
    assert counting.counts() == once(range(30))


def test_store_that_lost_its_commits_is_refused_until_told_to_go_on(counting: Job) -> None:
    counting.put(range(10))
    counting.put(range(10, 20))
    counting.run()
    with redis.Redis.from_url(counting.url) as client:
        client.delete(f"{{sparkonce}}:record:{counting.sink().name}")
    counting.put(range(20, 30))
    message = counting.refused()
    assert "SinkBehindCheckpoint" in message
    assert "onLostCommit=continue@0-1" in message
    counting.options["onLostCommit"] = "continue@0-1"
    counting.run()
    assert counting.counts() == once(range(30))


def test_continuous_trigger_commits_nothing_and_says_why(upserting: Job) -> None:
    """Spark itself only logs what commit raises there, so the query can't be made to fail."""
    rows = upserting.spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    writer = rows.writeStream.format("redis").option("url", upserting.url)
    writer = writer.option("key", f"{upserting.name}:{{value}}")
    writer = writer.option("checkpointLocation", str(upserting.checkpoint))
    query = writer.trigger(continuous="200 milliseconds").start()
    log, deadline = Path(upserting.spark.conf.get(LOG)), time.monotonic() + 60
    while "a continuous trigger does" not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.2)
    query.stop()
    assert "a continuous trigger does that" in log.read_text()
    assert list((upserting.checkpoint / "commits").glob("[0-9]*")) == []
    assert upserting.rows() == {}


def test_complete_mode_is_refused(upserting: Job) -> None:
    upserting.put(range(10))
    upserting.transform = lambda rows: rows.groupBy("id").count()
    message = upserting.refused(mode="complete")
    assert "Output mode complete can't be written" in message
    assert upserting.rows() == {}


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


def test_both_names_of_the_format_go_on_with_one_checkpoint(counting: Job) -> None:
    counting.put(range(100))
    counting.run()
    counting.uncommit(0)
    counting.format = "sparkonce_redis"
    counting.put(range(100, 200))
    counting.run()
    assert counting.counts() == once(range(200))


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


PATIENCE = 300.0


def test_server_lost_in_mid_query_fails_the_query_and_a_restart_goes_on(
    counting: Job, private_redis: Callable[..., RedisProcess]
) -> None:
    server = private_redis("appendonly yes", "appendfsync always")
    counting.url = server.url
    counting.options |= {"url": server.url, "maxRetries": "1"}
    for start in range(0, 50, 10):
        counting.put(range(start, start + 10))
    query = counting.start()
    wait_until(lambda: query.lastProgress is not None, PATIENCE, "no epoch was committed")
    server.kill()
    with pytest.raises(StreamingQueryException, match="check option url and the server"):
        query.awaitTermination(PATIENCE)
    server.start()
    counting.run()
    assert counting.counts() == once(range(50))
