"""`spark.read.format("mysql")`: types, ranges, conditions, one state or several, through Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, client, source, values
from integration.support.mysql_typed_values import CASES, PAIRS, as_arrow
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sparkonce.errors import OptionError, SparkonceError, ValueUnreadable
from sparkonce.reading import Compare, Null
from sparkonce.spark import features

Read = Callable[..., DataFrame]
MANY = 25_000


@pytest.mark.parametrize(("name", "column"), PAIRS, ids=[f"{a} in {b}" for a, b in PAIRS])
def test_types_come_back_as_they_went_in(table: Table, name: str, column: str) -> None:
    """As the type that was written, where the column can be read as it; and as the column's own."""
    case = CASES[name]
    table.create(f"id INT PRIMARY KEY, v {column}")
    schema = pa.schema([("id", pa.int32()), ("v", case.kind)])
    query = table.checked(schema, key="id")
    rows = as_arrow([{"id": at, "v": one} for at, one in enumerate([*case.values, None])], schema)
    query.run(0, rows)
    written = pa.Table.from_pylist(rows, schema)
    known, natural = source(table.url, None, dbtable=table)
    try:
        found = values(table.source(schema))
    except OptionError:
        assert known.field("v").type in (pa.float32(), pa.float64(), pa.timestamp("us"))
        found = values(natural).set_column(1, "v", values(natural)["v"].cast(case.kind))
    if name == "json text":
        texts = [one and json.loads(one) for one in found["v"].to_pylist()]
        assert texts == [*(case.expected or ()), None]
    elif pa.types.is_map(case.kind):  # the server orders keys
        assert [*map(dict, filter(None, found["v"].to_pylist()))] == case.values
    else:
        assert found.sort_by("id")["v"] == written["v"]
    assert len(values(natural)) == len(rows)


ZERO_TYPES = ("DATE", "DATETIME", "DATETIME(6)", "TIMESTAMP", "TIMESTAMP(3)")


@pytest.mark.parametrize("kind", ZERO_TYPES)
@pytest.mark.parametrize("indexed", ["", ", KEY (v)"])
def test_zero_dates_are_null_on_demand_and_conditions_agree(
    table: Table, kind: str, indexed: str
) -> None:
    null = "NULL DEFAULT NULL" if "STAMP" in kind else ""
    table.create(f"id INT PRIMARY KEY, v {kind} {null}{indexed}")
    table.run("SET SESSION sql_mode = ''")
    zero = "'0000-00-00'" if kind == "DATE" else "'0000-00-00 00:00:00'"
    values_ = (zero, "NULL", "'2026-01-31'", "'1999-12-31'") * 5
    rows = ", ".join(f"({at}, {one})" for at, one in enumerate(values_))
    table.run(f"INSERT INTO {table} VALUES {rows}")
    whole = values(table.source(zeroDates="null")).sort_by("id")
    assert whole["v"].is_null().to_pylist() == [at % 4 < 2 for at in range(20)]
    day = whole["v"][2].as_py()
    for condition in (Null("v"), Null("v", inverted=True), Compare("v", "=", day)):
        made = table.source(zeroDates="null")
        made.scan = replace(made.scan, filters=(condition,))
        read = values(made)
        found = read.filter(_matches(condition, read["v"], day))
        expected = whole.filter(_matches(condition, whole["v"], day))
        assert sorted(found["id"].to_pylist()) == sorted(expected["id"].to_pylist())
    with pytest.raises(ValueUnreadable):
        values(table.source())


def test_a_zero_date_is_null_in_a_column_without_nulls(spark: SparkSession, table: Table) -> None:
    table.create("id INT PRIMARY KEY, v DATE NOT NULL")
    table.run("SET SESSION sql_mode = ''", f"INSERT INTO {table} VALUES (1, 0), (2, '2026-01-31')")
    reader = spark.read.format("mysql").option("url", table.url).option("dbtable", table)
    found = reader.option("zeroDates", "null").load()
    assert found.schema["v"].nullable
    assert [row.id for row in found.where("v IS NULL").collect()] == [1]
    assert [row.id for row in found.where("v IS NOT NULL").collect()] == [2]


def _matches(condition: Any, column: Any, day: Any) -> Any:
    if isinstance(condition, Null):
        return pc.invert(column.is_null()) if condition.inverted else column.is_null()
    return pc.fill_null(pc.equal(column, pa.scalar(day, column.type)), False)


BAD = {
    "DATE NULL": ("'0000-01-02'", "date"),
    "DATETIME(3)": ("'0000-12-31 10:00:00'", "timestamp_ntz"),
    "DATE": ("'0000-00-00'", "date"),
    "DATETIME": ("'2026-00-10 00:00:00'", "timestamp_ntz"),
    "TINYINT(1)": ("7", "boolean"),
    "BIGINT": ("9223372036854775807", "int"),
    "DECIMAL(30,5)": ("1.5", "decimal(10,0)"),
    "TIME": ("'200:00:00'", "time(6)"),
    "JSON": ("'[1]'", "array<date>"),
}


@pytest.mark.parametrize("column", BAD)
def test_a_value_that_is_none_of_its_type_is_told(table: Table, column: str) -> None:
    value, kind = BAD[column]
    table.run("SET SESSION sql_mode=''")
    table.create(f"id INT, v {column}")
    table.run(f"INSERT INTO {table} VALUES (1, {value})")
    schema = pa.schema([("v", KINDS[kind])])
    with pytest.raises(ValueUnreadable, match="column 'v' can't be read"):
        values(table.source(schema))
    text = values(source(table.url, pa.schema([("v", pa.string())]), dbtable=table)[1])
    assert text["v"].to_pylist()[0].replace('"', "").startswith(value.strip("'")[:4])


KINDS = {
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "decimal(10,0)": pa.decimal128(10, 0),
    "time(6)": pa.time64("ns"),
    "array<date>": pa.list_(pa.date32()),
}


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("BIGINT", pa.float64()),
        ("DECIMAL(20,2)", pa.float64()),
        ("DOUBLE", pa.float32()),
        ("DATETIME", pa.date32()),
        ("BLOB", pa.string()),
        ("VARCHAR(10)", pa.int32()),
        ("FLOAT", pa.binary()),
        ("BIT(8)", pa.binary()),
    ],
    ids=str,
)
def test_a_type_that_would_change_values_is_refused(
    table: Table, column: str, kind: pa.DataType
) -> None:
    table.create(f"v {column}")
    with pytest.raises(OptionError, match="would lose or change values"):
        table.source(pa.schema([("v", kind)])).splits()


def test_a_sum_of_doubles_has_all_its_bits(table: Table) -> None:
    table.create("a DOUBLE(10,2), b DOUBLE(10,2)")
    table.run(f"INSERT INTO {table} VALUES (0.1, 0.2)")
    query = f"SELECT a, b, a + b AS v FROM {table}"
    (row,) = values(source(table.url, None, query=query)[1]).to_pylist()
    assert row == {"a": 0.1, "b": 0.2, "v": 0.1 + 0.2}


def test_a_row_that_is_longer_than_the_server_sends_is_told(table: Table) -> None:
    """The server makes null of such a text, which is no null of the table's."""
    (most,) = table.run("SELECT @@GLOBAL.max_allowed_packet")[0]
    table.create("a LONGBLOB, b LONGBLOB")
    table.run(f"INSERT INTO {table} SELECT REPEAT('x', {most} * 0.4), REPEAT('y', {most} * 0.4)")
    with pytest.raises(ValueUnreadable, match="longer than the server can send"):
        values(table.source())


@pytest.mark.slow
def test_rows_of_more_than_one_packet_come_whole(private_mysql: Any) -> None:
    server = private_mysql("--max-allowed-packet=64M")
    lengths = (*range(2**24 - 9, 2**24 - 4), 2**24 + 1, 3, 0)
    with client(server.url) as writer:
        writer.execute("CREATE TABLE t (v LONGTEXT)")
        for length in lengths:
            writer.execute(f"INSERT INTO t VALUES (REPEAT('x', {length}))")
    found = values(source(server.url, None, dbtable="t")[1])["v"].to_pylist()
    assert [len(one) for one in found] == [*lengths]


# -- splits


@pytest.fixture
def many(table: Table) -> str:
    table.run(
        f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, day DATE, at DATETIME(6), odd INT, v TEXT)"
    )
    rows = [
        (
            at * at,
            f"2026-01-{at % 28 + 1:02}",
            f"2026-01-01 10:00:{at % 60:02}.5",
            at % 7 or None,
            "x",
        )
        for at in range(MANY)
    ]
    table.client.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s, %s)", rows)
    table.run(f"ANALYZE TABLE {table}")
    return table


RANGES = {
    "by the primary key": {},
    "by numbers": {"partitionColumn": "odd", "lowerBound": "1", "upperBound": "6"},
    "by days": {"partitionColumn": "day", "lowerBound": "2026-01-05", "upperBound": "2026-01-20"},
    "by moments": {
        "partitionColumn": "at",
        "lowerBound": "2026-01-01 10:00:10",
        "upperBound": "2026-01-01 10:00:40",
    },
    "by far numbers": {
        "partitionColumn": "odd",
        "lowerBound": f"-{10**90}",
        "upperBound": str(10**80),
    },
    "by far moments": {
        "partitionColumn": "at",
        "lowerBound": "0000-01-01 00:00:00",
        "upperBound": "0000-12-31 00:00:00",
    },
    "by one value": {"partitionColumn": "odd", "lowerBound": "3", "upperBound": "3"},
}


@pytest.mark.parametrize("how", RANGES)
@pytest.mark.parametrize("parts", ["3", *slow_cases("1", "50")])
def test_each_row_lies_in_one_range(many: Table, how: str, parts: str) -> None:
    made = many.source(numPartitions=parts, **RANGES[how])
    found = values(made)["id"].to_pylist()
    assert sorted(found) == [at * at for at in range(MANY)]
    assert len(made.splits()) <= int(parts)


def test_ranges_of_a_skewed_key_have_about_as_many_rows_each(many: Table) -> None:
    made = many.source(numPartitions="2")
    sizes = [sum(batch.num_rows for batch in made.read(split)) for split in made.splits()]
    assert len(sizes) == 2
    assert min(sizes) > MANY / 4


def test_a_query_is_read_in_one_split_or_by_ranges(many: Table) -> None:
    query = f"SELECT id, odd AS o FROM {many} WHERE odd > 2;"
    _, made = source(many.url, None, query=query)
    assert len(made.splits()) == 1
    ranged = RANGES["by numbers"] | {"partitionColumn": "o"}
    _, other = source(many.url, None, query=query, numPartitions="3", **ranged)
    assert len(other.splits()) == 3
    assert sorted(values(made)["id"].to_pylist()) == sorted(values(other)["id"].to_pylist())


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({}, "exactly one of them must be set"),
        ({"dbtable": "t", "query": "SELECT 1"}, "exactly one of them must be set"),
        ({"query": "SELECT 1 AS a", "partitionColumn": "a"}, "belong together"),
        (
            {"query": "SELECT 'x' AS a", **RANGES["by numbers"], "partitionColumn": "a"},
            "has no ranges",
        ),
        (
            {"query": "SELECT 1 AS a", **RANGES["by days"], "partitionColumn": "a"},
            "A bound of option",
        ),
        ({"query": "SELECT 1 AS a", **RANGES["by numbers"]}, "names column 'odd'"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    mysql_url: str, raw: dict[str, str], said: str
) -> None:
    with pytest.raises(SparkonceError, match=said):
        source(mysql_url, None, **raw)[1].splits()


# -- through Spark


@pytest.fixture
def read(spark: SparkSession, many: Table) -> Read:
    def read(schema: str | None = None, **more: str) -> DataFrame:
        reader = spark.read.format("mysql").options(url=many.url, dbtable=many, **more)
        return (reader.schema(schema) if schema else reader).load()

    return read


def test_a_table_is_read_by_its_own_types_by_given_ones_and_by_some_columns(read: Read) -> None:
    frame = read()
    assert frame.schema.simpleString() == (
        "struct<id:bigint,day:date,at:timestamp_ntz,odd:int,v:string>"
    )
    assert frame.count() == MANY
    sums = frame.agg(f.sum("id"), f.count("odd"), f.min("day"), f.max("at")).first()
    assert sums[0] == sum(at * at for at in range(MANY))
    assert read("odd bigint, id decimal(30,0)").select(f.max("id")).first()[0] == Decimal(
        (MANY - 1) ** 2
    )
    assert read(columns="v,id").columns == ["v", "id"]


@pytest.mark.skipif(not features.keeps_filters_apart, reason="this Spark is asked for all rows")
def test_spark_says_what_to_set_where_conditions_can_not_be_pushed(read: Read) -> None:
    with pytest.raises(PySparkException, match=r"spark\.sql\.python\.filterPushdown\.enabled"):
        read(pushFilters="true").count()


def test_a_schema_that_is_never_null_is_held_to_that(read: Read) -> None:
    with pytest.raises(PySparkException, match="is null, or contains a null, in a row"):
        read("odd int not null").write.format("noop").mode("append").save()
