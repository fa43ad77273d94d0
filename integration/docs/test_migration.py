"""A job by hand moves to sparkonce with its checkpoint, as docs/migration.md shows."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import redis
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession


class Job:
    """A stream of files with three ids each; every id adds 1 to a key."""

    def __init__(self, spark: SparkSession, home: Path, url: str, prefix: str) -> None:
        self.spark, self.home, self.url, self.prefix = spark, home, url, prefix
        self.files = 0
        (home / "in").mkdir()

    def write(self, files: int) -> None:
        for _ in range(files):
            ids = range(3 * self.files, 3 * self.files + 3)
            lines = "".join(f'{{"id": {one}, "n": 1}}\n' for one in ids)
            (self.home / "in" / f"{self.files}.json").write_text(lines)
            self.files += 1

    @property
    def rows(self) -> DataFrame:
        stream = self.spark.readStream.schema("id INT, n INT").option("maxFilesPerTrigger", "1")
        return stream.json(str(self.home / "in"))

    def options(self) -> dict[str, str]:
        key = f"{self.prefix}:{{id}}"
        return {"url": self.url, "key": key, "writeMode": "increment"}

    def by_hand(self, batch: DataFrame, _: int) -> None:
        with redis.Redis.from_url(self.url) as client:
            for row in batch.collect():
                client.hincrby(f"{self.prefix}:{row.id}", "n", row.n)

    def by_batch(self, batch: DataFrame, _: int) -> None:
        batch.write.format("redis").mode("append").options(**self.options()).save()

    def run(self, how: str, **more: str) -> None:
        place = {"checkpointLocation": str(self.home / "checkpoint"), **more}
        writer = self.rows.writeStream.trigger(availableNow=True).options(**place)
        if how == "sink":
            writer = writer.format("redis").options(**self.options())
        else:
            writer = writer.foreachBatch(getattr(self, how))
        writer.start().awaitTermination()

    @property
    def counts(self) -> Counter[str]:
        with redis.Redis.from_url(self.url, decode_responses=True) as client:
            keys = client.scan_iter(f"{self.prefix}:*", count=1000)
            return Counter({key: int(client.hget(key, "n") or 0) for key in keys})

    def require_once(self) -> None:
        assert self.counts == Counter(f"{self.prefix}:{one}" for one in range(3 * self.files))


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path, redis_url: str, unique: str) -> Job:
    job = Job(spark, tmp_path, redis_url, unique)
    job.write(3)
    job.run("by_hand")
    job.write(2)
    return job


def test_a_batch_write_keeps_the_checkpoint_and_the_sink_may_follow(job: Job) -> None:
    job.run("by_batch")
    job.require_once()
    job.write(2)
    job.run("sink")
    job.require_once()


def test_the_sink_keeps_the_checkpoint_once_the_operator_confirms(job: Job) -> None:
    with pytest.raises(StreamingQueryException, match="SinkBehindCheckpoint") as refused:
        job.run("sink")
    (advice,) = re.findall(r"onLostCommit=(continue@\d+-\d+)", str(refused.value))
    assert advice == "continue@0-2"
    job.run("sink", onLostCommit=advice)
    job.require_once()
