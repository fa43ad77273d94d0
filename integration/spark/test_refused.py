"""What these formats do not do is refused through Spark with what to use instead."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession


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
