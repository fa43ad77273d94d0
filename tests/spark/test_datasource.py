"""The adapter between Spark's calls and the protocol, called as Spark calls it, without Spark."""

from __future__ import annotations

import pickle
import platform
import sys
from unittest.mock import Mock

import pyarrow as pa
import pytest
from tests.scenarios import TARGET, MemoryWorld
from tests.spark.sources import RUN, SCHEMA, Context, Source, pickled, writer

from sparkonce import __version__
from sparkonce.errors import OptionError, StoreUnsafe, UnsupportedQuery
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.protocol import Follows, Origin
from sparkonce.sink import open_sink
from sparkonce.spark import session
from sparkonce.spark.session import NONE_HERE, SETTINGS
from sparkonce.spark.writer import origin
from sparkonce.tck.subject import batch

pytestmark = pytest.mark.usefixtures("world", "task")


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
    assert f"the wheel of sparkonce {__version__} with extra [tests]" in str(missing.value)


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
    monkeypatch.setattr(world.memory, "check", Mock(side_effect=StoreUnsafe("evicts keys")))
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
        assert refused.value.what == 'format("memory") only writes'
        assert refused.value.why
        assert "writeStream" in refused.value.todo
    with pytest.raises(UnsupportedQuery, match="is not a streaming source"):
        source.streamReader(SCHEMA).initialOffset()


def test_a_batch_of_which_a_message_is_missing_is_refused(world: MemoryWorld) -> None:
    made = Source({}).writer(schema=SCHEMA, overwrite=False)
    message = made.write(iter([batch(["a"])]))
    with pytest.raises(UnsupportedQuery, match="without the messages"):
        made.commit([message, None])
    assert world.rows == []
    made.commit([message])
    assert world.rows == ["a"]


# -- who writes a batch, as the properties of its job tell


SESSION = "spark-session-9356267c-8055-4200-8c29-148f18c7ad26"
ROWS = pa.schema([("id", pa.int64())])
NAME = {"txnAppId": "job", "txnVersion": "7"}


def outside(task: Context, **more: str) -> Context:
    """The same of a task of ``df.write`` alone."""
    known = {
        "spark.app.id": "app",
        "spark.app.startTime": "17",
        "spark.job.tags": f"nightly,{SESSION}",
    }
    task.properties = {**known, **more}
    return task


def seen(task: Context, **options: str) -> Origin:
    return origin(open_sink(Source.connector, options, ROWS), task, "token")


def test_a_batch_inside_a_stream_is_told_by_the_execution_of_its_epoch(task: Context) -> None:
    """The job group, which has the run, is the user's to set; a driver counts executions anew."""
    first = seen(task)
    assert (first.query_id, first.epoch, first.follows) == ("a", 0, Follows.GROWS)
    task.properties["spark.jobGroup.id"] = "mine"
    assert seen(task) == first
    for name in ("spark.app.id", "spark.app.startTime", "spark.sql.execution.root.id"):
        other = Context()
        other.properties = {**task.properties, name: "other"}
        assert seen(other).run_id != first.run_id
    assert seen(task, **NAME).run_id == first.run_id
    assert seen(task, **NAME).stream == "a"


def test_an_execution_that_is_not_told_is_refused(task: Context) -> None:
    del task.properties["spark.sql.execution.root.id"]
    for options in ({}, NAME):
        with pytest.raises(UnsupportedQuery, match=r"spark\.sql\.execution\.root\.id"):
            seen(task, **options)


def test_a_named_batch_is_told_by_its_session(task: Context) -> None:
    first = seen(outside(task), **NAME)
    assert (first.query_id, first.epoch, first.named, first.stream) == ("job", 7, True, "")
    root = {"spark.job.tags": f"{SESSION}-execution-root-id-3,{SESSION}"}
    assert seen(outside(task, **root), **NAME) == first
    others = {"spark.app.startTime": "18"}, {"spark.job.tags": SESSION.replace("9", "8")}
    assert first.run_id not in {seen(outside(task, **other), **NAME).run_id for other in others}


CONNECT = {"spark.job.tags": f"{SESSION},SparkConnect_OperationTag_User_a_Session_b_Operation_c"}


@pytest.mark.parametrize("known", [{"spark.app.id": ""}, {"spark.job.tags": "nightly"}, CONNECT])
def test_a_session_that_is_not_told_is_none(task: Context, known: dict[str, str]) -> None:
    """Nor is that of Spark Connect, in which a query that restarts has the same one."""
    outside(task, **known)
    assert seen(task, **NAME).run_id == ""


def test_a_batch_without_a_name_has_a_random_one(task: Context) -> None:
    assert seen(outside(task)) == Origin("token", "", 0, follows=Follows.ONCE)
