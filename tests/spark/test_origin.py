"""Who writes a batch, as the properties of its job tell."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.spark.sources import Context, Source, in_a_task

from sparkonce.errors import UnsupportedQuery
from sparkonce.protocol import Follows, Origin
from sparkonce.sink import open_sink
from sparkonce.spark.writer import origin

SESSION = "spark-session-9356267c-8055-4200-8c29-148f18c7ad26"
ROWS = pa.schema([("id", pa.int64())])
NAME = {"txnAppId": "job", "txnVersion": "7"}


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    """Of a task inside ``foreachBatch``."""
    return in_a_task(monkeypatch)


def outside(context: Context, **more: str) -> Context:
    """The same of a task of ``df.write`` alone."""
    known = {
        "spark.app.id": "app",
        "spark.app.startTime": "17",
        "spark.job.tags": f"nightly,{SESSION}",
    }
    context.properties = {**known, **more}
    return context


def seen(context: Context, **options: str) -> Origin:
    return origin(open_sink(Source.connector, options, ROWS), context, "token")


def test_a_batch_inside_a_stream_is_told_by_the_execution_of_its_epoch(context: Context) -> None:
    """The job group, which has the run, is the user's to set; a driver counts executions anew."""
    first = seen(context)
    assert (first.query_id, first.epoch, first.follows) == ("a", 0, Follows.GROWS)
    context.properties["spark.jobGroup.id"] = "mine"
    assert seen(context) == first
    for name in ("spark.app.id", "spark.app.startTime", "spark.sql.execution.root.id"):
        other = Context()
        other.properties = {**context.properties, name: "other"}
        assert seen(other).run_id != first.run_id
    assert seen(context, **NAME).run_id == first.run_id
    assert seen(context, **NAME).stream == "a"


def test_an_execution_that_is_not_told_is_refused(context: Context) -> None:
    del context.properties["spark.sql.execution.root.id"]
    for options in ({}, NAME):
        with pytest.raises(UnsupportedQuery, match=r"spark\.sql\.execution\.root\.id"):
            seen(context, **options)


def test_a_named_batch_is_told_by_its_session(context: Context) -> None:
    first = seen(outside(context), **NAME)
    assert (first.query_id, first.epoch, first.named, first.stream) == ("job", 7, True, "")
    root = {"spark.job.tags": f"{SESSION}-execution-root-id-3,{SESSION}"}
    assert seen(outside(context, **root), **NAME) == first
    others = {"spark.app.startTime": "18"}, {"spark.job.tags": SESSION.replace("9", "8")}
    assert first.run_id not in {seen(outside(context, **other), **NAME).run_id for other in others}


CONNECT = {"spark.job.tags": f"{SESSION},SparkConnect_OperationTag_User_a_Session_b_Operation_c"}


@pytest.mark.parametrize("known", [{"spark.app.id": ""}, {"spark.job.tags": "nightly"}, CONNECT])
def test_a_session_that_is_not_told_is_none(context: Context, known: dict[str, str]) -> None:
    """Nor is that of Spark Connect, in which a query that restarts has the same one."""
    outside(context, **known)
    assert seen(context, **NAME).run_id == ""


def test_a_batch_without_a_name_has_a_random_one(context: Context) -> None:
    assert seen(outside(context)) == Origin("token", "", 0, follows=Follows.ONCE)
