"""What all connectors have in common: their options, key columns, plans, and how they are found."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.write.documents import Documents
from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.write.plan import TableRows
from pyspark_redis.connector import RedisConnector
from sparkonce import checks, codec, options
from sparkonce.errors import BadRow, OptionError
from sparkonce.options import parse
from sparkonce.spark.types import arrow_schema
from sparkonce.store import for_url
from sparkonce.urls import spelled
from sparkonce.values import spark_types
from sparkonce.values.rows import describe_row, naming_rows

REDIS, MYSQL, ELASTICSEARCH = RedisConnector(), MySqlConnector(), ElasticsearchConnector()
NEEDED: dict[str, dict[str, str]] = {
    "redis": {"url": "redis://localhost", "key": "u:{name}"},
    "mysql": {"url": "mysql://localhost/d", "dbtable": "d.t"},
    "elasticsearch": {"url": "http://localhost", "index": "i"},
}
CONNECTORS = REDIS, MYSQL, ELASTICSEARCH


def named(value: Any) -> str:
    return str(getattr(value, "name", value))


def plan(connector: Any, schema: pa.Schema, **given: str) -> Any:
    parsed = options.parse(connector.options, {**NEEDED[connector.name], **given})
    return connector.plan(parsed, schema)


# -- key columns


@pytest.mark.parametrize(
    ("connector", "key"),
    [(REDIS, "u:{name}"), (REDIS, "id,name"), (MYSQL, "name"), (ELASTICSEARCH, "id,name")],
    ids=named,
)
@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI_AI"])
def test_column_whose_equal_texts_differ_is_no_key(
    connector: Any, key: str, collation: str
) -> None:
    def schema(kind: spark.DataType) -> pa.Schema:
        fields = [spark.StructField("id", spark.LongType()), spark.StructField("name", kind)]
        return arrow_schema(spark.StructType(fields))

    with pytest.raises(OptionError) as refused:
        plan(connector, schema(spark.StringType(collation)), key=key)
    assert f"'name' of type string collate {collation}" in refused.value.what
    assert "lower(name)" in refused.value.todo
    assert "name" in plan(connector, schema(spark.StringType()), key=key).key


def test_columns_that_differ_by_case_alone_are_not_guessed_among() -> None:
    with pytest.raises(OptionError) as refused:
        checks.column("key", "id", spark_types.parse("ID int, Id int"))
    assert "'ID', 'Id', which differ only in case" in refused.value.why
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


# -- options that people bring from other connectors are answered by the name that is meant here


@pytest.mark.parametrize(
    ("connector", "given", "todo"),
    [
        (REDIS, "spark.redis.host", "here it is option 'url'"),
        (REDIS, "key.column", "here it is option 'key'"),
        (REDIS, "table", "here it is option 'key'"),
        (MYSQL, "table", "here it is option 'dbtable'"),
        (MYSQL, "batchsize", "here it is option 'chunkRows'"),
        (MYSQL, "driver", "leave it out: the client is a Python package"),
        (MYSQL, "createIndex", "did you mean 'createTable'"),
        (ELASTICSEARCH, "es.resource", "here it is option 'index'"),
        (ELASTICSEARCH, "ES.Mapping.Id", "here it is option 'key'"),
    ],
)
def test_a_name_of_another_connector_is_answered(connector: Any, given: str, todo: str) -> None:
    with pytest.raises(OptionError, match=f"Option '{given}' is unknown") as refused:
        parse(connector.options, {given: "x"}, complete=False)
    assert todo in refused.value.todo


def test_what_is_meant_is_an_option_of_some_connector_and_what_is_brought_of_none() -> None:
    names = {option.name for connector in CONNECTORS for option in connector.options}
    followed = {option.name for connector in CONNECTORS for option in connector.follows}
    assert set(options.MEANT) <= names | followed
    brought = [one for some in options.MEANT.values() for one in some]
    assert {name.casefold() for name in names}.isdisjoint({*brought, *options.NOTHING})
    assert all(name == name.casefold() for name in (*brought, *options.NOTHING))


# -- plans


@pytest.mark.parametrize("connector", CONNECTORS, ids=named)
def test_increment_of_nothing_is_refused(connector: Any) -> None:
    with pytest.raises(OptionError, match="nothing to add"):
        plan(connector, pa.schema([("id", pa.int64())]), key="id", writeMode="increment")


TABLE = spark_types.parse("id bigint, name string, price decimal(10,2), v bigint")


@pytest.mark.parametrize(
    ("connector", "given"),
    [
        (MYSQL, {}),
        (MYSQL, {"key": "id", "nulls": "keep", "onBadRow": "deadLetter", "deadLetter": "bad"}),
        (MYSQL, {"key": "id", "opColumn": "name", "sequenceColumn": "price"}),
        (MYSQL, {"key": "id", "writeMode": "delete"}),
        (MYSQL, {"key": "id", "writeMode": "append"}),
        (ELASTICSEARCH, {"createIndex": "true"}),
        (ELASTICSEARCH, {"key": "id", "opColumn": "name", "versionColumn": "v", "routing": "name"}),
        (ELASTICSEARCH, {"key": "id", "writeMode": "update", "nulls": "keep"}),
        (ELASTICSEARCH, {"index": "x-{name}", "key": "id", "writeMode": "delete"}),
    ],
    ids=named,
)
def test_plan_that_is_read_from_a_manifest_is_the_one_that_was_decided(
    connector: Any, given: dict[str, str]
) -> None:
    """What was found fit for the one is fit for the other."""
    kind = TableRows if connector is MYSQL else Documents
    made = plan(connector, TABLE, **given)
    assert codec.load(kind, json.loads(json.dumps(made.stored))) == made.detail


# -- how they are found


@pytest.mark.parametrize(
    ("url", "name"),
    [
        *(("redis://localhost:6379/0", "redis"), ("rediss://db", "redis"), ("redis://h", "redis")),
        *(("Rediss://h", "redis"), ("REDIS+CLUSTER://h", "redis"), ("mysql://h/d", "mysql")),
        *(("mariadb://h", "mysql"), ("jdbc:mysql://h", "mysql"), ("JDBC:MariaDB://h", "mysql")),
        *(("http://a", "elasticsearch"), ("HTTPS://a:9200", "elasticsearch")),
    ],
)
def test_a_connector_is_found_by_the_scheme_of_a_url_in_any_case(url: str, name: str) -> None:
    connector = for_url(url)
    assert connector.name == name
    parsed = options.parse(connector.options, {"url": url}, complete=False)
    assert parsed["url"] == spelled(url)
    assert for_url("elasticsearch://").name == "elasticsearch"


@pytest.mark.parametrize(
    ("name", "client"),
    [("redis", "redis"), ("mysql", "pymysql"), ("elasticsearch", "elasticsearch")],
)
def test_looking_a_format_up_imports_no_driver_and_no_arrow(name: str, client: str) -> None:
    code = (
        f"import sys, pyspark_{name};"
        f" print([m for m in ({client!r}, 'pyarrow') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
