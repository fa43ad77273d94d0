"""What a user meets first of an error, wherever Spark shows it: what, why, what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from integration.support.marks import slow_rows
from integration.support.runs import Job
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

LATE = "timestamp'9999-12-31 23:00:00' + interval 10 days"


@pytest.fixture
def job(spark: SparkSession, redis_url: str, unique: str, tmp_path: Path) -> Job:
    job = Job(spark, tmp_path / "job", redis_url, unique)
    job.put([1])
    return job


def require_first(message: str, error: str) -> None:
    """The name of the error and what happened in the first line, then why, then what to do."""
    assert 'File "' not in message, message
    what, why, todo, *_ = message.splitlines()
    assert f"sparkonce.errors.{error}: " in what, message
    assert why.startswith("Why: "), message
    assert todo.startswith("What to do: "), message


def failure(job: Job) -> tuple[str, str]:
    """What `awaitTermination` raises and what `exception` gives."""
    query = job.start()
    with pytest.raises(StreamingQueryException) as raised:
        query.awaitTermination()
    return str(raised.value), str(query.exception())


def test_a_wrong_option_is_met_first(job: Job) -> None:
    job.options["tiemout"] = "30s"
    for message in failure(job):
        require_first(message, "OptionError")


def test_several_wrong_options_are_a_line_each(job: Job) -> None:
    job.options |= {"tiemout": "30s", "chunkRows": "0"}
    for message in failure(job):
        head, first, second, *_ = message.splitlines()
        assert head.endswith("sparkonce.errors.OptionError: 2 options are wrong.")
        assert first.startswith("(1) Option 'tiemout' is unknown. Why: "), message
        assert second.startswith("(2) Option chunkRows='0' can't be read. Why: "), message


def test_a_bad_row_is_met_first(job: Job) -> None:
    job.transform = lambda rows: rows.withColumn("at", F.expr(LATE))
    for message in failure(job):
        require_first(message, "BadRow")


@pytest.mark.slow
def test_a_refused_commit_is_met_first(job: Job, redis_url: str, unique: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set(f"{unique}:1", "no hash")
    for message in failure(job):
        require_first(message, "RowRefused")


@pytest.mark.parametrize(
    ("given", "error"), [({"key": "idd"}, "OptionError"), *slow_rows(({}, "BadRow"))]
)
def test_an_error_of_a_batch_is_met_first(
    spark: SparkSession, redis_url: str, unique: str, given: dict[str, str], error: str
) -> None:
    rows = spark.range(1).withColumn("at", F.expr(LATE))
    key = {} if given else {"key": f"{unique}:{{id}}"}
    options = {"url": redis_url, **key, **given}
    with pytest.raises(PySparkException) as raised:
        rows.write.format("redis").options(**options).mode("append").save()
    message = str(raised.value)
    require_first(message[message.index("sparkonce.errors.") :], error)


def test_an_error_that_is_not_of_the_sink_keeps_its_traceback(job: Job) -> None:
    @F.udf("bigint")
    def broken(_):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError

    job.transform = lambda rows: rows.withColumn("n", broken("n"))
    for message in failure(job):
        assert 'File "' in message
        assert "ZeroDivisionError" in message
