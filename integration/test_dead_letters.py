"""A dead letter is the row: whoever refused it, Spark reads it back as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from click.testing import CliRunner
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import documents
from integration.support.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery
from integration.support.marks import slow_cases, slow_rows
from pymysql.cursors import Cursor
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from sparkonce import replay
from sparkonce.operate.cli import main
from sparkonce.spark.types import arrow_schema

PAGE = Path(__file__).parents[1] / "docs" / "dead-letters.md"
STORED = {
    "b boolean": ("true", "false", "null"),
    "i1 tinyint": ("-128", "127"),
    "i8 bigint": ("-9223372036854775808", "9223372036854775807"),
    "f4 float": ("3.4028235e38", "7.038531e-26", "'0.1'"),
    "f8 double": ("5e-324d", "double(0.1) + double(0.2)", "-0.0d", "1e22d"),
    "d decimal(38,18)": ("'-12345678901234567890.000000000000000001'", "0"),
    "s string": ("'None'", "null", "''", "'it''s \\\\ \"x\", \\n😀'", "'NULL'"),
    "bin binary": ("X'0001FEFF'", "X''", "null"),
    "day date": ("'0001-01-01'", "'9999-12-31'"),
    "at timestamp": ("'2013-01-01 00:00:00.123456 UTC'", "'9999-12-31 23:59:59.9 UTC'"),
    "ntz timestamp_ntz": ("'1000-12-31 23:59:59.999999'", "null"),
    "iv interval day to second": ("'1 02:03:04.5'", "'-0 00:00:00.000001'"),
    "sec interval second": ("'-0.5'", "'-1.5'", "'0.5'", "'0'", "'-9223372036854.775808'"),
    "ih interval hour to minute": ("'26:03'", "null"),
    "arr array<double>": ("array(1.5d, null, double('-Infinity'))", "array()", "null"),
    "st struct<a:string,b:array<struct<c:binary,d:date>>>": (
        "named_struct('a', null, 'b', array(named_struct('c', X'00ff', 'd', date'1999-01-01')))",
        "named_struct('a', 'x', 'b', null)",
        "null",
    ),
    "ms map<string,timestamp>": (
        "map('a', timestamp'2013-01-01 00:00:00', '', null)",
        "map()",
        "null",
    ),
    "mi map<int,interval hour to minute>": (
        "map(1, interval '26:03' hour to minute, 2, null)",
        "null",
    ),
    "ls array<map<interval second,interval second>>": (
        "array(map(interval '-0.000001' second, interval '-0.25' second))",
    ),
    "md map<decimal(5,2),map<date,boolean>>": (
        "map(1.50bd, map(date'1999-01-01', true), 2.25bd, null)",
        "null",
    ),
    "void void": ("null",),
}
"""Values that a store has, by column."""

UNSTORED = {
    "f8 double": ("'NaN'", "'-Infinity'"),
    "s string": ("X'ff61'",),
    "day date": ("'+12345-01-01'", "'-0044-03-15'"),
    "at timestamp": ("'+294247-01-10 04:00:54.775807 UTC'",),
    "ntz timestamp_ntz": ("'-0044-03-15 01:02:03.000004'",),
    "st struct<a:string,b:array<struct<c:binary,d:date>>>": (
        "named_struct('a', cast(X'80' as string), 'b', null)",
    ),
    "ms map<string,timestamp>": (
        'from_json(\'{"a": "2013-01-01T00:00:00Z", "a": null}\', \'map<string,timestamp>\')',
        "map(cast(X'80' as string), null)",
    ),
}
"""Values that only a task sees."""


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Rows with an id; of those from 100 on, each has a value that no store takes."""
    width = max(map(len, STORED.values()))
    kind = {column: column.partition(" ")[2] for column in STORED}
    plain = [
        {name: values[min(at, len(values) - 1)] for name, values in STORED.items()}
        for at in range(width)
    ]
    odd = [{**plain[0], name: value} for name, values in UNSTORED.items() for value in values]
    lines = []
    for at, row in [*enumerate(plain), *enumerate(odd, 100)]:
        values = [f"CAST({value} AS {kind[name]})" for name, value in row.items()]
        lines.append(f"({at}, 1000, {', '.join(values)})")
    names = ", ".join(["id", "n", *(column.partition(" ")[0] for column in STORED)])
    whole = spark.sql(f"SELECT * FROM VALUES {', '.join(lines)} AS ({names})")
    return whole.coalesce(1).localCheckpoint()


def refused_rows(query: DirectQuery, rows: DataFrame) -> pa.Table:
    """The rows as Spark has them, after all of them were refused."""
    table = rows.toArrow()
    query.sink.check()
    arriving = table.cast(arrow_schema(rows.schema))
    query.commit(0, query.stage_batches(0, arriving.to_batches()))
    return table


def require_same(letters: DataFrame, rows: DataFrame, was: pa.Table) -> None:
    back = replay.rows(letters, rows.schema).select("restored.*").toArrow().sort_by("id")
    was = was.sort_by("id")
    assert back.column("id").to_pylist() == was.column("id").to_pylist()
    for name in was.column_names:
        given = was.column(name).combine_chunks()
        found = back.column(name).combine_chunks()
        for at, id_ in enumerate(was.column("id").to_pylist()):
            one, other = given.slice(at, 1), found.slice(at, 1).cast(given.type)
            is_nan = name == "f8" and f"{one}" == f"{other}"
            assert one.equals(other) or is_nan, (name, id_, one, other)


@pytest.fixture
def narrow(mysql: Cursor, table: str) -> Iterator[str]:
    """A table that is made by the query, and then has no room for its numbers."""
    yield table
    mysql.execute(f"DROP TABLE IF EXISTS {table}, {table}_bad")


def into_mysql(url: str, table: str, mysql: Cursor, rows: DataFrame, **options: str) -> MySqlQuery:
    given = {
        "onBadRow": "deadLetter",
        "deadLetter": f"{table}_bad",
        "createTable": "true",
        "maxBadRows": "100%",
    }
    schema = arrow_schema(rows.drop("void").schema)
    query = MySqlQuery(schema, url=url, dbtable=table, key="id", **given, **options)
    query.sink.check()
    mysql.execute(f"ALTER TABLE {table} MODIFY n TINYINT")
    query.restart(createTable="false")
    return query


@pytest.mark.parametrize("folded", [False, *slow_cases(True)])
def test_row_of_every_type_comes_back_from_mysql(
    mysql_url: str, mysql: Cursor, narrow: str, spark: SparkSession, rows: DataFrame, folded: bool
) -> None:
    rows = rows.drop("void")
    options = {"sequenceColumn": "id"} if folded else {}
    query = into_mysql(mysql_url, narrow, mysql, rows, **options)
    was = refused_rows(query, rows)
    mysql.execute(f"SELECT row_data, base64 FROM {narrow}_bad")
    found = spark.createDataFrame(list(mysql.fetchall()), "row string, base64 string")
    require_same(found, rows, was)
    mysql.execute(f"SELECT DISTINCT epoch, partition_id FROM {narrow}_bad")
    assert mysql.fetchall() == ((0, 0),)
    mysql.execute(f"SELECT COUNT(*) FROM {narrow}_bad WHERE row_key = '{{\"id\": 2}}'")
    assert mysql.fetchall() == ((1,),)


@pytest.mark.parametrize("model", ["hash", "string", "stream"])
def test_row_of_every_type_comes_back_from_redis(
    redis_url: str, unique: str, spark: SparkSession, rows: DataFrame, model: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        for id_ in range(200):
            client.zadd(f"{unique}:{id_}", {"of another type": 1})
    given = {"url": redis_url, "key": f"{unique}:{{id}}", "model": model}
    aside = {"onBadRow": "deadLetter", "deadLetter": unique, "maxBadRows": "100%"}
    query = DirectQuery(arrow_schema(rows.schema), **given, **aside)
    was = refused_rows(query, rows)
    (box,) = query.sink.store.letterboxes()
    found = [(one.row, list(one.base64)) for one in box.read(None, 1000)]
    require_same(spark.createDataFrame(found, "row string, base64 array<string>"), rows, was)


@pytest.mark.parametrize("mode", ["append", "upsert", *slow_cases("update")])
def test_row_of_every_type_comes_back_from_elasticsearch(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    index: str,
    bad_index: str,
    spark: SparkSession,
    rows: DataFrame,
    mode: str,
) -> None:
    if mode == "update":
        rows = rows.drop("md")  # its script would round decimals
    elastic.indices.create(index=index, mappings={"properties": {"n": {"type": "byte"}}})
    query = ElasticsearchQuery(
        arrow_schema(rows.schema),
        url=elasticsearch_url,
        index=index,
        onBadRow="deadLetter",
        maxBadRows="100%",
        deadLetter=bad_index,
        writeMode=mode,
        **({} if mode == "append" else {"key": "id"}),
    )
    was = refused_rows(query, rows)
    letters = documents(elastic, bad_index).values()
    assert {(one["epoch"], one["partition"]) for one in letters} == {(0, 0)}
    if mode != "append":
        assert '{"id": 2}' in {one["key"] for one in letters}
    texts = [(one["row"], one["base64"]) for one in letters]
    require_same(spark.createDataFrame(texts, "row string, base64 array<string>"), rows, was)


def test_the_way_back_is_the_one_of_the_page(
    own_url: str, mysql: Cursor, unique: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Letters that come later, and a command and a program that run again, double nothing."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = code.replace("mysql://app@db:3306/shop", own_url).replace("/data", str(tmp_path))
    orders = spark.sql(
        "SELECT bigint(id) AS id, int(id * 100) AS n, map(int(id), 'x') AS tags FROM range(3)"
    )
    narrow = "orders"
    mysql.execute(f"USE {unique}")
    query = into_mysql(own_url, narrow, mysql, orders, writeMode="append")
    move = ["letters", own_url, f"{narrow}_bad", "--move", f"{tmp_path}/letters/orders", "--yes"]
    code = code.replace('.option("key", "id")', '.option("writeMode", "append")')
    for epoch in (0, 1):
        rows = orders.selectExpr(f"id + {epoch * 10} AS id", f"n + {epoch * 1000} AS n", "tags")
        query.run(epoch, rows.toArrow().to_pylist())
        for _ in range(2):
            assert CliRunner().invoke(main, move, catch_exceptions=False).exit_code == 0
            exec(code, {"spark": spark})
    mysql.execute(f"SELECT id, n FROM {narrow} ORDER BY id")
    assert mysql.fetchall() == ((0, 0), (1, 100), (2, 127), (10, 127), (11, 127), (12, 127))


LETTER = '{"id": 1, "st": {"a": "x"}, "l": [{"k": 1}], "m": {"any": {"v": 1}}, "e": []}'
FITS = "id bigint, st struct<a:string>, l array<struct<k:int>>, m map<string,struct<v:int>>"


def replayed(spark: SparkSession, row: str, schema: str, **names: list[str]) -> pa.Table:
    letters = spark.createDataFrame([(row, "[]")], "row string, base64 string")
    return replay.rows(letters, schema, **names).select("restored.*").toArrow()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (f"{FITS}, e array<int>, nosuch int", "lacks 'nosuch'"),
        (f"{FITS.replace('v:', 'w:')}, e array<int>", "has 'm.v'"),
        *slow_rows(
            (FITS, "has 'e'"),
            (f"{FITS}, E array<int>", "has 'e'"),
            (f"{FITS.replace('a:', 'b:')}, e array<int>", "has 'st.a'"),
            (f"{FITS.replace('k:', 'other:int,k:')}, e array<int>", "lacks 'l.other'"),
        ),
    ],
)
def test_a_name_that_the_row_or_the_schema_lacks_is_an_error(
    spark: SparkSession, schema: str, said: str
) -> None:
    with pytest.raises(PythonException, match=f"OptionError: A dead letter {said}"):
        replayed(spark, LETTER, schema)


def test_columns_that_are_lacking_or_left_out_are_so_when_asked_for(spark: SparkSession) -> None:
    (row,) = replayed(
        spark, LETTER, f"{FITS}, note string", lacking=["note", "id"], without=["e"]
    ).to_pylist()
    assert (row["id"], row["note"], row["st"]) == (1, None, {"a": "x"})
    assert "e" not in row


@pytest.mark.parametrize("text", ["0.5 or so", *slow_cases("INTERVAL '1:30' SECOND")])
@pytest.mark.parametrize("ansi", [*slow_cases("true"), "false"])
def test_seconds_that_are_none_are_an_error(spark: SparkSession, text: str, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(Exception, match="INTERVAL"):
            replayed(spark, f'{{"s": "{text}"}}', "s interval second")
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_a_key_that_is_there_twice_comes_back_as_the_page_says(spark: SparkSession) -> None:
    row = '{"m": {"a": 1, "a": 2}, "k": [{"key": 1, "value": 2}, {"key": 1, "value": 3}]}'
    kept = replayed(spark, row, "m map<string,int>", without=["k"])
    assert kept.column("m").to_pylist() == [[("a", 1), ("a", 2)]]
    with pytest.raises(Exception, match="DUPLICATED_MAP_KEY"):
        replayed(spark, row, "k map<int,int>", without=["m"])
