"""Checkpoints in S3: Spark writes them by s3a, and Python on the driver reads them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.runs import Job, once
from integration.servers import spark as local_spark
from integration.servers.finder import or_skip
from integration.servers.s3 import BUCKET, S3Process, s3a_jars
from pyarrow.fs import FileSelector, FileSystem
from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Process]:
    with or_skip(S3Process) as server:
        yield server


@pytest.fixture(scope="module")
def files(s3: S3Process) -> FileSystem:
    return s3.files()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, s3: S3Process) -> Iterator[SparkSession]:
    jars = ",".join(map(str, or_skip(s3a_jars)))
    scratch = tmp_path_factory.mktemp("spark")
    with local_spark.session(scratch, {**s3.settings(), "spark.jars": jars}) as session:
        yield session


@pytest.fixture
def counting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    job = RemoteJob(spark, tmp_path / "job", redis_url, unique)
    job.options["writeMode"] = "increment"
    return job


class RemoteJob(Job):
    """A job whose checkpoint lies in the bucket."""

    def start(self, **given: object):  # type: ignore[no-untyped-def]
        return super().start(**{"checkpoint": f"s3a://{BUCKET}/{self.name}", **given})

    @property
    def key(self) -> str:
        return f"{BUCKET}/{self.name}"


def put_back(files: FileSystem, source: str, target: str) -> None:
    """Copy a checkpoint over another, in place of all that is there."""
    if files.get_file_info(target).is_file is not None:
        files.delete_dir_contents(target, missing_dir_ok=True)
    for info in files.get_file_info(FileSelector(source, recursive=True)):
        if info.is_file:
            files.copy_file(info.path, target + info.path.removeprefix(source))


def test_copied_checkpoint_with_other_offsets_under_the_same_epoch_is_refused(
    counting: RemoteJob, files: FileSystem
) -> None:
    counting.put(range(10))
    counting.run()
    put_back(files, counting.key, f"{counting.key}-twin")
    counting.put(range(10, 20))
    counting.run()
    counting.put(range(20, 30))
    message = counting.refused(checkpoint=f"s3a://{counting.key}-twin")
    assert "CheckpointDiverged" in message
    assert counting.counts() == once(range(20))
