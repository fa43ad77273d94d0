"""The adapter between Spark's calls and the protocol, called as Spark calls it, without Spark."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import LongType, StringType, StructField, StructType
from tests.kit import TARGET, World, batch, encode

from sparkonce.errors import (
    CheckpointReplaced,
    OptionError,
    StoreUnsafe,
    UnsupportedQuery,
)
from sparkonce.ledger import from_record, sink_name
from sparkonce.options import COMMON
from sparkonce.protocol import Plan
from sparkonce.sink import open_sink
from sparkonce.spark.shuffle import SETTINGS
from sparkonce.spark.source import SinkSource
from sparkonce.spark.writer import Message, StreamWriter
from sparkonce.store import Store

pytestmark = pytest.mark.usefixtures("world", "task")
SCHEMA = StructType([StructField("id", StringType()), StructField("n", LongType())])


class MemoryConnector:
    """A connector to the world of the running test."""

    name = "memory"
    options = COMMON
    world = World()

    def plan(self, _: Mapping[str, Any], schema: pa.Schema) -> Plan[None]:
        return Plan(TARGET, repeatable=False, columns=len(schema), detail=None, stored={})

    def encoder(self, _: Plan[None]) -> Any:
        return encode

    def connect(self, _: Mapping[str, Any], plan: Plan[None] | None = None) -> Store:  # noqa: ARG002
        return self.world.memory


class Source(SinkSource):
    connector = "tests.test_datasource:MemoryConnector"

    @classmethod
    def name(cls) -> str:
        return "memory"


class Context:
    """A task context that knows what Spark's does."""

    properties: Mapping[str, str | None] = {}

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.properties.get(name)

    def partitionId(self) -> int:  # noqa: N802
        return 3


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    found = World()
    monkeypatch.setattr(MemoryConnector, "world", found)
    monkeypatch.setattr(open_connector(), "world", found)
    yield found
    clear_cache()


def open_connector() -> type:
    """The class that `registry.load` finds, however pytest has imported this module."""
    import importlib

    found: type = importlib.import_module("tests.test_datasource").MemoryConnector
    return found


def clear_cache() -> None:
    from sparkonce import sink

    sink._open.cache_clear()


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Context:
    """Be in a task of epoch 0 of query a, run r1."""
    context = Context()
    context.properties = {
        "streaming.sql.batchId": "0",
        "sql.streaming.queryId": "a",
        "spark.jobGroup.id": "r1",
    }
    monkeypatch.setattr(TaskContext, "get", lambda: context)
    return context


def writer(**options: str) -> StreamWriter:
    """What Spark gets for each epoch, as it arrives in a task."""
    made = Source(options).streamWriter(schema=SCHEMA, overwrite=False)
    copy = pickle.loads(pickle.dumps(made))
    assert isinstance(copy, StreamWriter)
    return copy


def test_a_writer_stages_in_the_task_and_commits_on_the_driver(world: World) -> None:
    message = writer().write(iter([batch(["a", "b"]), batch(["c"])]))
    assert world.rows == []
    writer().commit([message], 0)
    assert world.rows == ["a", "b", "c"]


def test_a_receipt_says_who_staged_what() -> None:
    message = writer().write(iter([batch(["a", "b"]), batch(["c"])]))
    receipt = pickle.loads(pickle.dumps(message)).receipt
    assert receipt.rows == (2, 1)
    assert (receipt.task.query_id, receipt.task.run_id) == ("a", "r1")
    assert (receipt.task.epoch, receipt.task.partition) == (0, 3)
    assert receipt.task.sink == sink_name("a", TARGET)


def test_rows_of_other_columns_than_announced_are_refused(world: World) -> None:
    cut = batch(["a"]).rename_columns(["i", "n"])
    with pytest.raises(UnsupportedQuery, match="announced"):
        writer().write(iter([cut]))
    assert world.staged() == 0


def test_the_sink_id_names_the_ledger(world: World) -> None:
    writer(sinkid="orders").commit([writer(sinkid="orders").write(iter([batch(["a"])]))], 0)
    assert world.memory.read(sink_name("orders", TARGET)).revision > 0


def test_an_aborted_epoch_leaves_nothing_staged(world: World) -> None:
    message = writer().write(iter([batch(["a"])]))
    writer().abort([message, None], 0)
    assert world.staged() == 0
    assert world.rows == []


@pytest.mark.parametrize("messages", [[], [None], [None, None]])
def test_an_abort_without_messages_is_quiet(world: World, messages: list[None]) -> None:
    writer().abort(messages, 0)
    assert world.memory.records == {}


@pytest.mark.parametrize("good", [0, 1])
def test_a_missing_message_names_the_trigger(world: World, good: int) -> None:
    messages: list[Message | None] = [writer().write(iter([batch(["a"])])) for _ in range(good)]
    with pytest.raises(UnsupportedQuery, match="trigger"):
        writer().commit([*messages, None], 0)
    assert world.rows == []


def test_complete_mode_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="complete"):
        Source({}).streamWriter(schema=SCHEMA, overwrite=True)


def test_a_stream_takes_no_name_of_a_batch() -> None:
    with pytest.raises(OptionError, match="can't be set for a stream"):
        writer(txnappid="nightly", txnversion="1")


def test_options_are_checked_before_any_row_is_read() -> None:
    with pytest.raises(OptionError, match="sinkId"):
        writer(sinkidd="x")


def test_the_server_is_checked_before_any_row_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_plan: object) -> None:
        raise StoreUnsafe("evicts keys")

    monkeypatch.setattr(world.memory, "check", refuse)
    with pytest.raises(StoreUnsafe):
        writer()


@pytest.mark.parametrize("missing", ["streaming.sql.batchId", "sql.streaming.queryId"])
def test_a_task_of_no_streaming_query_is_refused(task: Context, missing: str) -> None:
    task.properties = {**task.properties, missing: None}
    with pytest.raises(UnsupportedQuery, match="no epoch"):
        writer().write(iter([batch(["a"])]))


# -- what the checkpoint tells


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    (tmp_path / "offsets").mkdir()
    for epoch in range(3):
        (tmp_path / "offsets" / str(epoch)).write_text(f"v1\n{{}}\n{epoch}")
    (tmp_path / "metadata").write_text(json.dumps({"id": "a"}))
    return tmp_path


def test_an_epoch_without_tasks_takes_its_query_from_the_checkpoint(
    world: World, checkpoint: Path
) -> None:
    writer(checkpointlocation=str(checkpoint)).commit([], 0)
    ledger = from_record(world.memory.read(sink_name("a", TARGET)))
    assert ledger is not None
    assert (ledger.query_id, ledger.epoch) == ("a", 0)


def test_an_epoch_without_tasks_and_without_checkpoint_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="repartition"):
        writer().commit([], 0)


def test_an_epoch_without_tasks_does_not_end_the_run(
    world: World, task: Context, checkpoint: Path
) -> None:
    where = {"checkpointlocation": str(checkpoint)}
    writer(**where).commit([writer(**where).write(iter([batch(["a"])]))], 0)
    writer(**where).commit([], 1)
    task.properties = {**task.properties, "streaming.sql.batchId": "2"}
    writer(**where).commit([writer(**where).write(iter([batch(["b"])]))], 2)
    assert world.rows == ["a", "b"]


def test_a_commit_notes_checkpoint_and_offsets(world: World, checkpoint: Path) -> None:
    where = {"checkpointlocation": str(checkpoint)}
    writer(**where).commit([writer(**where).write(iter([batch(["a"])]))], 0)
    ledger = from_record(world.memory.read(sink_name("a", TARGET)))
    assert ledger is not None
    assert ledger.offsets is not None
    assert str(checkpoint) in (ledger.checkpoint or "")


def test_an_epoch_whose_offsets_are_not_written_yet_is_refused(
    world: World, checkpoint: Path
) -> None:
    """As a real-time trigger commits it; after a crash it would be another epoch."""
    (checkpoint / "offsets" / "0").unlink()
    where = {"checkpointlocation": str(checkpoint)}
    message = writer(**where).write(iter([batch(["a"])]))
    with pytest.raises(UnsupportedQuery, match="real-time trigger"):
        writer(**where).commit([message], 0)
    writer(**where).abort([message], 0)
    assert (world.rows, world.staged()) == ([], 0)


def test_a_checkpoint_of_another_query_says_nothing_of_offsets(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "another"}))
    where = {"checkpointlocation": str(tmp_path)}
    writer(**where).commit([writer(**where).write(iter([batch(["a"])]))], 0)
    assert world.rows == ["a"]


@pytest.mark.parametrize("value", [None, "false"])
def test_a_run_in_which_spark_may_mix_computations_is_told(
    task: Context, caplog: pytest.LogCaptureFixture, value: str | None
) -> None:
    task.properties = {
        **task.properties,
        "spark.jobGroup.id": f"run that may mix: {value}",
        **({SETTINGS[1]: value} if value else {}),
    }
    writer().commit([writer().write(iter([batch(["a"])]))], 0)
    assert ("may mix" in caplog.text) is (value is not None)


def test_a_deleted_checkpoint_is_noticed_by_its_path(
    world: World, task: Context, checkpoint: Path
) -> None:
    where = {"checkpointlocation": str(checkpoint)}
    writer(**where).commit([writer(**where).write(iter([batch(["a"])]))], 0)
    task.properties = {**task.properties, "sql.streaming.queryId": "b"}
    message = writer(**where).write(iter([batch(["a"])]))
    with pytest.raises(CheckpointReplaced):
        writer(**where).commit([message], 0)
    assert world.rows == ["a"]


# -- the sink that options describe


def test_a_process_keeps_the_sink_for_the_next_epoch() -> None:
    schema = pa.schema([("id", pa.string())])
    path = Source.connector
    assert open_sink(path, {"sinkid": "x"}, schema) is open_sink(path, {"sinkid": "x"}, schema)
    assert open_sink(path, {"sinkid": "x"}, schema) is not open_sink(path, {"sinkid": "y"}, schema)


@pytest.mark.parametrize(
    ("columns", "rows"), [(1, 10_000), (4, 6_000), (24, 1_000), (480, 50), (5_000, 50)]
)
def test_wide_rows_make_small_chunks(columns: int, rows: int) -> None:
    schema = pa.schema([(f"c{number}", pa.string()) for number in range(columns)])
    assert open_sink(Source.connector, {}, schema).size.rows == rows
    assert open_sink(Source.connector, {"chunkrows": "7"}, schema).size.rows == 7


def test_reading_is_refused_with_what_can_be_done_instead() -> None:
    source = Source({})
    for read in (source.schema, lambda: source.reader(SCHEMA), lambda: source.streamReader(SCHEMA)):
        with pytest.raises(UnsupportedQuery) as refused:
            read()
        assert refused.value.what == 'format("memory") writes streams only'
        assert refused.value.why
        assert "writeStream" in refused.value.todo
