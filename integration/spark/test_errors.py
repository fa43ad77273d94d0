"""What a user meets first of an error, wherever Spark shows it: what, why, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from integration.support.marks import slow_rows
from integration.support.runs import Job
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
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


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_modes_that_reach_no_python_source_are_refused_by_spark_by_name(
    spark: SparkSession, mode: str
) -> None:
    """The first one is its default (docs/batch.md)."""
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        spark.range(3).write.mode(mode).format("redis").save()


@pytest.fixture
def fields(redis_url: str, unique: str) -> dict[str, str]:
    """Of a hash that has been written."""
    return {"url": redis_url, "key": f"{unique}:{{id}}", "keyPrefix": unique}


def _sql(fields: dict[str, str]) -> str:
    told = ", ".join(f"{name} '{value}'" for name, value in fields.items())
    return f"USING redis OPTIONS ({told})"


def test_a_table_of_the_catalog_is_refused(
    spark: SparkSession, fields: dict[str, str], unique: str
) -> None:
    """At its creation, or where Spark asks nobody then, at its first use."""
    rows = spark.range(3).selectExpr("cast(id AS string) id", "id AS n")
    rows.write.format("redis").options(**fields).mode("append").save()
    made = f"{unique}_made"
    spark.sql(f"CREATE TABLE {made} (id STRING, n BIGINT) {_sql(fields)}")
    for statement in (
        f"CREATE TABLE {unique} {_sql(fields)}",
        f"CREATE TABLE {unique} {_sql(fields)} AS SELECT '9' id, 9 n",
        f"INSERT INTO {made} VALUES ('9', 9)",
        f"SELECT * FROM {made}",
    ):
        with pytest.raises(PySparkException, match="reach no Python data source"):
            spark.sql(statement).collect()
    spark.sql(f"DROP TABLE {made}")


def test_a_view_is_read_as_errors_advise(
    spark: SparkSession, fields: dict[str, str], unique: str
) -> None:
    rows = spark.range(3).selectExpr("cast(id AS string) id", "id AS n")
    rows.write.format("redis").options(**fields).mode("append").save()
    spark.sql(f"CREATE TEMPORARY VIEW {unique} (id STRING, n BIGINT) {_sql(fields)}")
    assert spark.sql(f"SELECT SUM(n) FROM {unique}").first() == (3,)


def test_a_table_that_save_as_table_made_says_what_to_do(
    spark: SparkSession, fields: dict[str, str], unique: str
) -> None:
    rows = spark.range(3).selectExpr("cast(id AS string) id", "id AS n")
    rows.write.format("redis").options(**fields).mode("append").saveAsTable(f"{unique}_d")
    with pytest.raises(PySparkException, match="reach no Python data source"):
        spark.table(f"{unique}_d").collect()
    spark.sql(f"DROP TABLE {unique}_d")


# SQL of the value, and its form in the hash.
FORMS = {
    "boolean": ("true", "true"),
    "byte": ("cast(-128 as tinyint)", "-128"),
    "short": ("cast(32767 as smallint)", "32767"),
    "int": ("-2147483648", "-2147483648"),
    "long": ("9223372036854775807", "9223372036854775807"),
    "float": ("cast(0.1 as float)", "0.1"),
    "double": ("double(0.1) + double(0.2)", "0.30000000000000004"),
    "nan": ("double('NaN')", "nan"),
    "infinity": ("double('-Infinity')", "-inf"),
    "decimal": (
        "cast('-12345678901234567890.000000000000000001' as decimal(38,18))",
        "-12345678901234567890.000000000000000001",
    ),
    "tiny": ("cast('0.000000000000000001' as decimal(38,18))", "0.000000000000000001"),
    "string": ("'naïve \U0001f600 \"quoted\"'", 'naïve \U0001f600 "quoted"'),
    "empty": ("''", ""),
    "date": ("date'0001-01-01'", "0001-01-01"),
    "timestamp": (
        "timestamp'2013-01-01 00:00:00.123456 America/New_York'",
        "2013-01-01T05:00:00.123456Z",
    ),
    "timestamp_ntz": (
        "timestamp_ntz'1969-12-31 23:59:59.999999'",
        "1969-12-31T23:59:59.999999",
    ),
    "interval": ("interval '1 02:03:04.5' day to second", "93784500000"),
    "array": ("array(1, null, 3)", "[1,null,3]"),
    "map": ("map('a', 1.5d, 'b', null)", '{"a":1.5,"b":null}'),
    "struct": (
        "named_struct('x', 1, 'y', array(named_struct('z', 'q\"')), 'w', null)",
        '{"x":1,"y":[{"z":"q\\""}],"w":null}',
    ),
    "nested_binary": ("array(X'00FF')", '["AP8="]'),
}


@pytest.fixture(scope="module")
def stored(
    spark: SparkSession, redis_server: Any, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """One row with a column of each type, as it lies in Redis."""
    name = tmp_path_factory.mktemp("types")
    job = Job(spark, Path(name) / "job", redis_server.url, f"types-{name.name}-{id(name)}")
    columns = [f"{sql} as `{column}`" for column, (sql, _) in FORMS.items()]
    extra = ["X'0001FEFF' as binary", "cast(null as bigint) as absent", "null as void"]
    job.transform = lambda rows: rows.selectExpr("id", *columns, *extra)
    job.put([1])
    job.run()
    with redis.Redis.from_url(job.url) as client:
        return {k.decode(): v for k, v in client.hgetall(f"{job.name}:1").items()}


@pytest.mark.parametrize("column", FORMS)
def test_type_has_its_documented_form(stored: dict[str, bytes], column: str) -> None:
    assert stored[column].decode() == FORMS[column][1]


def test_binary_is_stored_as_its_bytes(stored: dict[str, bytes]) -> None:
    assert stored["binary"] == b"\x00\x01\xfe\xff"


def test_null_is_an_absent_field(stored: dict[str, bytes]) -> None:
    assert "absent" not in stored
    assert "void" not in stored


@pytest.mark.parametrize(
    ("sql", "name"), [("parse_json('{}')", "variant"), ("interval '1' year", "interval year")]
)
def test_type_without_a_form_is_refused_by_name(
    spark: SparkSession, redis_url: str, unique: str, tmp_path: Path, sql: str, name: str
) -> None:
    job = Job(spark, tmp_path / "job", redis_url, unique)
    job.transform = lambda rows: rows.selectExpr("id", f"{sql} as odd")
    job.put([1])
    message = job.refused()
    assert f"Column 'odd' has type {name}" in message
    assert "cast it" in message
