"""The adapter between Spark's calls and the protocol, called as Spark calls it, without Spark."""

from __future__ import annotations

import pickle
import platform
import sys

import pyarrow as pa
import pytest
from tests.spark.sources import (
    RUN,
    SCHEMA,
    Context,
    Source,
    in_a_task,
    into_memory,
    pickled,
    writer,
)
from tests.worlds import TARGET, MemoryWorld, batch

from sparkonce import __version__
from sparkonce.errors import OptionError, StoreUnsafe, UnsupportedQuery
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.sink import open_sink
from sparkonce.spark import session
from sparkonce.spark.session import NONE_HERE, SETTINGS
from sparkonce.spark.writer import Message

pytestmark = pytest.mark.usefixtures("world", "task")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MemoryWorld:
    return into_memory(monkeypatch)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Context:
    return in_a_task(monkeypatch)


def test_a_writer_stages_in_the_task_and_commits_on_the_driver(world: MemoryWorld) -> None:
    message = writer().write(iter([batch(["a", "b"]), batch(["c"])]))
    assert world.rows == []
    writer().commit([message], 0)
    assert world.rows == ["a", "b", "c"]


def test_an_executor_without_sparkonce_says_what_to_install_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = pickled(writer())
    with monkeypatch.context() as executor:
        executor.setitem(sys.modules, "sparkonce", None)
        with pytest.raises(ModuleNotFoundError) as missing:
            pickle.loads(sent)
    assert f"no package 'sparkonce': {sys.executable} on {platform.node()}." in str(missing.value)
    assert f"pip install 'sparkonce[tests]=={__version__}'" in str(missing.value)


def test_an_executor_with_another_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = pickled(writer())
    monkeypatch.setattr("sparkonce.__version__", "0.0.9")
    with pytest.raises(ImportError, match=rf"has sparkonce 0\.0\.9, and the driver {__version__}"):
        pickle.loads(sent)


def test_a_receipt_says_who_staged_what() -> None:
    message = writer().write(iter([batch(["a", "b"]), batch(["c"])]))
    receipt = pickle.loads(pickle.dumps(message)).receipt
    assert receipt.rows == (3,)
    assert (receipt.task.query_id, receipt.task.run_id) == ("a", RUN)
    assert (receipt.task.epoch, receipt.task.partition) == (0, 3)
    assert receipt.task.sink == sink_name("a", TARGET)


def test_rows_of_other_columns_than_announced_are_refused(world: MemoryWorld) -> None:
    cut = pa.RecordBatch.from_arrays(batch(["a"]).columns, ["i", "n"])
    with pytest.raises(UnsupportedQuery, match="announced"):
        writer().write(iter([cut]))
    assert world.staged() == 0


def test_the_sink_id_names_the_ledger(world: MemoryWorld) -> None:
    writer(sinkid="orders").commit([writer(sinkid="orders").write(iter([batch(["a"])]))], 0)
    assert world.memory.read(sink_name("orders", TARGET)).revision > 0


def test_an_aborted_epoch_leaves_nothing_staged(world: MemoryWorld) -> None:
    message = writer().write(iter([batch(["a"])]))
    writer().abort([message, None], 0)
    assert world.staged() == 0
    assert world.rows == []


@pytest.mark.parametrize("messages", [[], [None], [None, None]])
def test_an_abort_without_messages_is_quiet(world: MemoryWorld, messages: list[None]) -> None:
    writer().abort(messages, 0)
    assert world.memory.records == {}


@pytest.mark.parametrize("good", [0, 1])
def test_a_missing_message_names_the_trigger(world: MemoryWorld, good: int) -> None:
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
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
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


@pytest.mark.parametrize(
    ("value", "compares", "told"),
    [("true", True, ""), ("false", True, f"{SETTINGS[1]}=false"), ("true", False, NONE_HERE)],
)
def test_a_run_in_which_spark_may_mix_computations_is_told(
    task: Context,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    compares: bool,
    told: str,
) -> None:
    """Spark 4.0 takes the settings, as it takes any name, and has no checksums."""
    monkeypatch.setattr(session, "compares", lambda _: compares)
    task.properties = {**task.properties, SETTINGS[0]: "true", SETTINGS[1]: value}
    writer().commit([writer().write(iter([batch(["a"])]))], 0)
    assert (f"may mix two computations of an epoch, with {told}." in caplog.text) is bool(told)
    assert told or "may mix" not in caplog.text


# -- the sink that options describe


def test_a_process_keeps_the_sink_for_the_next_epoch() -> None:
    schema = pa.schema([("id", pa.string())])
    path = Source.connector
    assert open_sink(path, {"sinkid": "x"}, schema) is open_sink(path, {"sinkid": "x"}, schema)
    assert open_sink(path, {"sinkid": "x"}, schema) is not open_sink(path, {"sinkid": "y"}, schema)


@pytest.mark.parametrize(
    ("columns", "rows"), [(1, 10_000), (4, 6_000), (24, 1_000), (480, 50), (5_000, 20)]
)
def test_wide_rows_make_small_chunks(columns: int, rows: int) -> None:
    schema = pa.schema([(f"c{number}", pa.string()) for number in range(columns)])
    assert open_sink(Source.connector, {}, schema).size.rows == rows
    assert open_sink(Source.connector, {"chunkrows": "7"}, schema).size.rows == 7


def test_reading_is_refused_with_what_can_be_done_instead() -> None:
    source = Source({})
    for read in (source.schema, lambda: source.reader(SCHEMA)):
        with pytest.raises(UnsupportedQuery) as refused:
            read()
        assert refused.value.what == 'format("memory") writes only'
        assert refused.value.why
        assert "writeStream" in refused.value.todo
    with pytest.raises(UnsupportedQuery, match="is no source of streams"):
        source.streamReader(SCHEMA).initialOffset()


def test_a_batch_of_which_a_message_is_missing_is_refused(world: MemoryWorld) -> None:
    made = Source({}).writer(schema=SCHEMA, overwrite=False)
    message = made.write(iter([batch(["a"])]))
    with pytest.raises(UnsupportedQuery, match="without the messages"):
        made.commit([message, None])
    assert world.rows == []
    made.commit([message])
    assert world.rows == ["a"]
