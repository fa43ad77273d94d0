"""Checkpoints in S3: Spark writes them by s3a, and Python on the driver reads them there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration.support.runs import Job, once
from integration.support.servers.finder import or_skip
from integration.support.servers.process import HOST, Port
from integration.support.servers.s3 import ACCESS, BUCKET, REGION, SECRET, S3Process, moto, s3a_jars
from integration.support.servers.spark import OneSession
from pyarrow.fs import FileSelector, FileSystem
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from sparkonce.spark.session import CHECKPOINTS


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Process]:
    with or_skip(moto) as server:
        yield server


@pytest.fixture(scope="module")
def files(s3: S3Process) -> FileSystem:
    return s3.files()


@pytest.fixture(scope="module")
def conf(s3: S3Process) -> dict[str, str]:
    """What Spark needs to reach the server."""
    return {**s3.settings(), "spark.jars": ",".join(map(str, or_skip(s3a_jars)))}


@pytest.fixture(scope="module")
def spark(one_session: OneSession, files: FileSystem, conf: dict[str, str]) -> SparkSession:
    assert files.get_file_info(BUCKET).type.name == "Directory"
    return one_session.having(conf)


class RemoteJob(Job):
    """A job whose checkpoint lies in the bucket."""

    @property
    def folder(self) -> str:
        return f"{BUCKET}/{self.name}"

    def start(self, *, checkpoint: Path | str | None = None, **given: str) -> StreamingQuery:
        return super().start(checkpoint=checkpoint or f"s3a://{self.folder}", **given)


@pytest.fixture
def counting(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> RemoteJob:
    job = RemoteJob(spark, tmp_path / "job", redis_url, unique)
    job.options["writeMode"] = "increment"
    return job


def copy(files: FileSystem, source: str, target: str) -> None:
    """Copy a checkpoint, in place of what is there."""
    files.create_dir(target)
    files.delete_dir_contents(target)
    for info in files.get_file_info(FileSelector(source, recursive=True)):
        if info.is_file:
            files.copy_file(info.path, target + info.path.removeprefix(source))


@pytest.mark.slow
def test_deleted_checkpoint_is_refused_however_its_place_is_spelled(
    counting: RemoteJob, files: FileSystem
) -> None:
    counting.put(range(10))
    counting.run()
    files.delete_dir(counting.folder)
    for spelled in (f"s3a://{counting.folder}", f"s3a://{BUCKET}//{counting.name}/"):
        assert "CheckpointReplaced" in counting.refused(checkpoint=spelled)
        files.delete_dir(counting.folder)
    assert counting.counts() == once(range(10))


@pytest.mark.slow
def test_copied_checkpoint_with_other_rows_under_the_epoch_of_the_sink_is_refused(
    counting: RemoteJob, files: FileSystem
) -> None:
    """Its numbers are those of the sink; only the offsets tell that it has read other rows."""
    counting.put(range(10))
    counting.run()
    copy(files, counting.folder, f"{counting.folder}-twin")
    counting.put(range(10, 20))
    counting.run()
    (counting.input / "00001.json").unlink()
    counting.put(range(20, 30))
    message = counting.refused(checkpoint=f"s3a://{counting.folder}-twin")
    assert "CheckpointDiverged" in message
    counting.run()
    assert counting.counts() == once(range(30))


@pytest.mark.slow
def test_epoch_is_replayed_once_the_checkpoint_can_be_read(
    counting: RemoteJob, tmp_path: Path
) -> None:
    """Spark reaches the server all the time, Python on the driver only where the file says so."""
    file = tmp_path / "storage.json"
    counting.options["checkpointStorageOptions"] = str(file)
    port = Port()
    file.write_text(json.dumps({"endpoint_override": f"{HOST}:{port.number}"}))
    port.release()
    counting.put(range(10))
    message = counting.refused()
    assert "CheckpointUnreadable" in message
    assert "onUnreadableCheckpoint=warn" in message
    assert SECRET not in message
    assert counting.counts() == once([])

    file.write_text(json.dumps({"connect_timeout": 5}))
    counting.put(range(10, 20))
    counting.run()
    assert counting.counts() == once(range(20))


@pytest.mark.slow
def test_checkpoint_that_the_session_places_is_read_with_options_alone(
    counting: RemoteJob, files: FileSystem, s3: S3Process
) -> None:
    keys = {"access_key": ACCESS, "secret_key": SECRET, "region": REGION}
    where = {"endpoint_override": f"{HOST}:{s3.port}", "scheme": "http"}
    counting.options["checkpointStorageOptions"] = json.dumps({**keys, **where})
    counting.query_name = counting.name
    counting.spark.conf.set(CHECKPOINTS, f"s3a://{BUCKET}//")
    try:
        counting.put(range(10))
        counting.run()
        ledger = counting.sink(query_of(files, counting.folder)).ledger
        assert ledger is not None
        assert ledger.owner.checkpoint == f"s3://{counting.folder}"
        assert ledger.decision.offsets is not None
        files.delete_dir(counting.folder)
        assert "CheckpointReplaced" in counting.refused()
    finally:
        counting.spark.conf.unset(CHECKPOINTS)


def query_of(files: FileSystem, folder: str) -> str:
    with files.open_input_stream(f"{folder}/metadata") as file:
        return json.loads(file.read())["id"]
