"""What the writer does with a checkpoint that it can read, and with one that it can't."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.scenarios import TARGET, MemoryWorld
from tests.spark.sources import Context, Source, into_memory, writer

from sparkonce.errors import CheckpointReplaced, CheckpointUnreadable, OptionError, UnsupportedQuery
from sparkonce.exactly_once.ledger import from_record, sink_name
from sparkonce.sink import open_sink
from sparkonce.spark import storage
from sparkonce.spark.storage import Settings, Unreadable
from sparkonce.tck.subject import batch

pytestmark = pytest.mark.usefixtures("world", "task")
KEY = "wJalrXUtnFEMI"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "offsets").mkdir()
    for epoch in range(3):
        (tmp_path / "offsets" / str(epoch)).write_text(f"v1\n{{}}\n{epoch}")
    (tmp_path / "metadata").write_text(json.dumps({"id": "a"}))
    return tmp_path


def once(world: MemoryWorld, epoch: int = 0, **options: str) -> None:
    """Write one row, as Spark would: what commit refuses is aborted."""
    message = writer(**options).write(iter([batch([f"row {epoch}"])]))
    try:
        writer(**options).commit([message], epoch)
    except Exception:
        writer(**options).abort([message], epoch)
        assert world.staged() == 0
        raise


def test_an_epoch_without_tasks_takes_its_query_from_the_checkpoint(
    world: MemoryWorld, checkpoint: Path
) -> None:
    writer(checkpointlocation=str(checkpoint)).commit([], 0)
    ledger = from_record(world.memory.read(sink_name("a", TARGET)), sink_name("a", TARGET))
    assert ledger is not None
    assert (ledger.owner.query_id, ledger.decision.epoch) == ("a", 0)


def test_an_epoch_without_tasks_and_without_checkpoint_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="repartition"):
        writer().commit([], 0)


def test_an_epoch_without_tasks_does_not_end_the_run(
    world: MemoryWorld, task: Context, checkpoint: Path
) -> None:
    where = {"checkpointlocation": str(checkpoint)}
    once(world, 0, **where)
    writer(**where).commit([], 1)
    task.properties = {**task.properties, "streaming.sql.batchId": "2"}
    once(world, 2, **where)
    assert world.rows == ["row 0", "row 2"]


def test_a_commit_notes_checkpoint_and_offsets(world: MemoryWorld, checkpoint: Path) -> None:
    once(world, checkpointlocation=str(checkpoint))
    ledger = from_record(world.memory.read(sink_name("a", TARGET)), sink_name("a", TARGET))
    assert ledger is not None
    assert ledger.decision.offsets is not None
    assert str(checkpoint) in (ledger.owner.checkpoint or "")


def test_an_epoch_whose_offsets_are_not_written_yet_is_refused(
    world: MemoryWorld, checkpoint: Path
) -> None:
    """As a real-time trigger commits it; after a crash it would be another epoch."""
    (checkpoint / "offsets" / "0").unlink()
    with pytest.raises(UnsupportedQuery, match="real-time trigger"):
        once(world, checkpointlocation=str(checkpoint))
    assert world.rows == []


def test_a_checkpoint_of_another_query_says_nothing_of_offsets(
    world: MemoryWorld, tmp_path: Path
) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "another"}))
    once(world, checkpointlocation=str(tmp_path))
    assert world.rows == ["row 0"]


def test_a_deleted_checkpoint_is_noticed_by_its_path(
    world: MemoryWorld, task: Context, checkpoint: Path
) -> None:
    once(world, checkpointlocation=str(checkpoint))
    task.properties = {**task.properties, "sql.streaming.queryId": "b"}
    with pytest.raises(CheckpointReplaced):
        once(world, checkpointlocation=str(checkpoint))
    assert world.rows == ["row 0"]


# -- what can't be read


def strict(checkpoint: object) -> dict[str, str]:
    """Options of a query that adds rows; the helpers here let it go on else."""
    return {"checkpointlocation": str(checkpoint), "onunreadablecheckpoint": "fail"}


@pytest.mark.parametrize(
    ("repeatable", "option", "warn"),
    [
        (False, {}, False),
        (False, {"onunreadablecheckpoint": "warn"}, True),
        (True, {}, True),
        (True, {"onunreadablecheckpoint": "fail"}, False),
    ],
)
def test_what_may_not_be_repeated_needs_a_checkpoint_that_can_be_read(
    monkeypatch: pytest.MonkeyPatch, *, repeatable: bool, option: dict[str, str], warn: bool
) -> None:
    into_memory(monkeypatch, repeatable=repeatable)
    schema = pa.schema([("id", pa.string())])
    assert open_sink(Source.connector, option, schema).may_be_unreadable is warn


def test_a_checkpoint_that_nobody_can_find_is_refused_before_anything_is_decided(
    world: MemoryWorld, tmp_path: Path
) -> None:
    for where in (tmp_path / "elsewhere", "oss://bucket/orders"):
        with pytest.raises(CheckpointUnreadable, match="can't read its checkpoint"):
            once(world, **strict(where))
    assert (world.rows, world.memory.records) == ([], {})


def test_a_folder_that_the_driver_does_not_see_is_refused_before_a_row_is_staged(
    tmp_path: Path,
) -> None:
    """As where a path without a scheme lies in the cluster's own file system."""
    with pytest.raises(CheckpointUnreadable, match="metadata is missing"):
        writer(**strict(tmp_path))
    (tmp_path / "metadata").mkdir()
    with pytest.raises(CheckpointUnreadable, match="Is a directory"):
        writer(**strict(tmp_path))


def test_a_file_of_options_that_is_not_there_is_refused_before_a_row_is_staged() -> None:
    with pytest.raises(OptionError, match="checkpointStorageOptions"):
        writer(checkpointstorageoptions="/no/file")


def test_an_outage_in_mid_query_is_no_absent_file(
    world: MemoryWorld, task: Context, checkpoint: Path
) -> None:
    """Taken for absent, the offsets of the epoch before would not be compared."""
    once(world, **strict(checkpoint))
    task.properties = {**task.properties, "streaming.sql.batchId": "1"}
    file = checkpoint / "offsets" / "0"
    file.rename(checkpoint / "kept")
    file.mkdir()
    with pytest.raises(CheckpointUnreadable, match="Is a directory"):
        once(world, 1, **strict(checkpoint))
    file.rmdir()
    (checkpoint / "kept").rename(file)
    once(world, 1, **strict(checkpoint))
    assert world.rows == ["row 0", "row 1"]


def test_an_abort_reads_no_checkpoint(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark waits for it, and a server that is dead answers late."""
    file = tmp_path / "storage.json"
    file.write_text("{}")
    where = {"checkpointlocation": "s3a://bucket/orders", "checkpointstorageoptions": str(file)}
    message, last = writer(**where).write(iter([batch(["a"])])), writer(**where)
    file.unlink()
    monkeypatch.setattr("sparkonce.spark.checkpoint.Checkpoint._read", None)
    last.abort([message], 0)
    assert world.staged() == 0


def test_keys_of_the_session_reach_the_driver_and_stay_there(
    world: MemoryWorld,
    task: Context,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = []

    def read(location: str, name: str, settings: Settings) -> bytes:
        seen.append((location, name, dict(settings.s3a), settings.given))
        raise Unreadable(settings.hiding(f"refused {KEY}"))

    monkeypatch.setattr(storage, "read", read)
    task.properties = {**task.properties, "spark.hadoop.fs.s3a.secret.key": KEY}
    more = {"checkpointstorageoptions": '{"region": "eu-west-3"}'}
    once(world, checkpointlocation="s3a://bucket/orders", **more)
    expected = ({"secret.key": KEY}, more["checkpointstorageoptions"])
    assert seen == [("s3a://bucket/orders", "metadata", *expected)]
    stored = repr(world.memory.records)
    assert "s3://bucket/orders" in stored
    assert "refused ***" in caplog.text
    assert KEY not in stored + caplog.text
