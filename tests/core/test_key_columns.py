"""What every connector asks of key columns; and how a row is named whose value can't be written."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_mysql.connector import MySqlConnector
from pyspark_redis.connector import RedisConnector
from sparkonce import checks, options
from sparkonce.errors import BadRow, OptionError
from sparkonce.spark.types import arrow_schema
from sparkonce.values import spark_types
from sparkonce.values.rows import describe_row, naming_rows

CONNECTORS: dict[str, tuple[Any, dict[str, str]]] = {
    "redis": (RedisConnector(), {"key": "u:{name}"}),
    "redis, columns": (RedisConnector(), {"key": "id,name"}),
    "mysql": (MySqlConnector(), {"key": "name", "dbtable": "d.t"}),
    "elasticsearch": (ElasticsearchConnector(), {"key": "id,name", "index": "i"}),
}

URLS = {
    "redis": "redis://localhost",
    "mysql": "mysql://localhost",
    "elasticsearch": "http://localhost",
}


@pytest.mark.parametrize("connector", CONNECTORS)
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI_AI"])
def test_column_whose_equal_texts_differ_is_no_key(connector: str, collation: str) -> None:
    made, given = CONNECTORS[connector]
    parsed = options.parse(made.options, {"url": URLS[made.name], **given})
    fields = [
        spark.StructField("id", spark.LongType()),
        spark.StructField("name", spark.StringType(collation)),
    ]
    with pytest.raises(OptionError) as refused:
        made.plan(parsed, arrow_schema(spark.StructType(fields)))
    assert f"'name' of type string collate {collation}" in refused.value.what
    assert "lower(name)" in refused.value.todo
    plain = spark.StructType([fields[0], spark.StructField("name", spark.StringType())])
    assert "name" in made.plan(parsed, arrow_schema(plain)).key


def test_columns_that_differ_by_case_alone_are_not_guessed_among() -> None:
    with pytest.raises(OptionError) as refused:
        checks.column("key", "id", spark_types.parse("ID int, Id int"))
    assert "'ID', 'Id', which differ by case alone" in refused.value.why
    assert "did you mean" not in str(refused.value)


def test_value_that_cannot_be_written_is_named_with_the_key_of_its_row() -> None:
    calls = []

    def encode(rows: pa.RecordBatch) -> bytes:
        calls.append(len(rows))
        if 777 in rows.column("n").to_pylist():
            raise ValueError("column 'n': no 777")
        return b""

    rows = pa.RecordBatch.from_pydict(
        {"a": list(range(1000)), "n": list(range(1000)), "k": ["x"] * 1000}
    )
    with pytest.raises(BadRow) as refused:
        naming_rows(encode, ["a", "k"])(rows)
    assert refused.value.what == (
        "A value can't be written: column 'n': no 777; the row: a=777, k='x'"
    )
    assert len(calls) < 25
    naming_rows(encode, ["a"])(rows.slice(0, 10))
    assert calls[-1] == 10


def test_a_row_is_shown_with_texts_quoted_and_null_told_from_its_name() -> None:
    rows = pa.RecordBatch.from_pydict(
        {
            "a": ["None", None, "it's\n\x1b[31m"],
            "n": [None, 1, 2],
            "l": [[None, "None"], None, []],
            "long": ["x" * 50] * 3,
        }
    )
    cut = f"long='{'x' * 40}...'"
    assert describe_row(rows, 0) == f"a='None', n=null, l=[None, 'None'], {cut}"
    assert describe_row(rows, 1) == f"a=null, n=1, l=null, {cut}"
    assert describe_row(rows, 2) == rf"""a="it's\n\x1b[31m", n=2, l=[], {cut}"""
