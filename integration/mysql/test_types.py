"""Every type of Spark in every sensible column type, there and back; and what is refused."""

from __future__ import annotations

import datetime as dt
import re

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.support.epochs import MySqlQuery
from integration.support.mysql_typed_values import CASES, INSTANT, LAST, PAIRS, as_arrow
from pymysql.cursors import Cursor

from pyspark_mysql.server.literals import literals
from sparkonce.errors import OptionError


@pytest.mark.parametrize(("name", "column"), PAIRS, ids=[f"{a} in {b}" for a, b in PAIRS])
def test_type_reads_back_as_the_same_value(
    mysql: Cursor, mysql_url: str, table: str, name: str, column: str
) -> None:
    case = CASES[name]
    mysql.execute("SET SESSION time_zone = '+00:00', SESSION sql_mode = ''")
    mysql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {column})")
    schema = pa.schema([("id", pa.int32()), ("v", case.kind)])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id")
    query.sink.check()
    rows = [{"id": at, "v": value} for at, value in enumerate([*case.values, None])]
    query.run(0, as_arrow(rows, schema))
    mysql.execute(f"SELECT v FROM {table} ORDER BY id")
    *found, nothing = [value for (value,) in mysql.fetchall()]
    assert [case.read(value) for value in found] == (case.expected or case.values)
    assert nothing is None


def test_instant_is_the_same_whatever_the_zone_of_the_server(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    mysql.execute("SELECT @@global.time_zone")
    mysql.execute(f"CREATE TABLE {table} (a TIMESTAMP(6) NULL, b DATETIME(6))")
    schema = pa.schema([(name, pa.timestamp("us", "America/New_York")) for name in "ab"])
    MySqlQuery(schema, url=mysql_url, dbtable=table).run(0, [dict.fromkeys("ab", INSTANT)])
    mysql.execute("SET SESSION time_zone = '+03:00'")
    mysql.execute(f"SELECT a, b FROM {table}")
    assert mysql.fetchone() == (INSTANT + dt.timedelta(hours=3), INSTANT)


def test_fraction_that_a_column_cannot_keep_is_cut_not_rounded(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    mysql.execute(f"CREATE TABLE {table} (v DATETIME, w DATETIME(3))")
    schema = pa.schema([(name, pa.timestamp("us")) for name in "vw"])
    MySqlQuery(schema, url=mysql_url, dbtable=table).run(0, [dict.fromkeys("vw", LAST)])
    mysql.execute(f"SELECT v, w FROM {table}")
    assert mysql.fetchone() == (LAST.replace(microsecond=0), LAST.replace(microsecond=999000))


REFUSED = [
    (pa.float64(), "FLOAT", "double goes into double"),
    (pa.float64(), "INT", "double goes into"),
    (pa.float64(), "DECIMAL(10,2)", "double goes into"),
    (pa.decimal128(38, 18), "DECIMAL(38,2)", "round to 2 decimals"),
    (pa.decimal128(10, 2), "BIGINT", "round to 0 decimals"),
    (pa.int64(), "DOUBLE", "bigint goes into"),
    (pa.int64(), "VARCHAR(20)", "bigint goes into"),
    (pa.string(), "INT", "string goes into"),
    (pa.string(), "DATETIME", "string goes into"),
    (pa.string(), "BLOB", "string goes into"),
    (pa.binary(), "TEXT", "binary goes into"),
    (pa.bool_(), "VARCHAR(5)", "boolean goes into"),
    (pa.timestamp("us"), "TIMESTAMP(6) NULL", "timestamp_ntz goes into"),
    (pa.timestamp("us", "UTC"), "DATE", "timestamp goes into"),
    (pa.list_(pa.int32()), "INT", "json goes into"),
    (pa.float64(), "DOUBLE(10,2)", "would round"),
    (pa.float32(), "FLOAT(10,1)", "would round"),
    (pa.int64(), "INT AS (id + 1) STORED", "computes that column itself"),
]


@pytest.mark.parametrize(
    ("kind", "column", "why"), REFUSED, ids=[f"{r[0]}-{r[1]}" for r in REFUSED]
)
def test_type_that_does_not_fit_is_refused_before_any_row(
    mysql: Cursor, mysql_url: str, table: str, kind: pa.DataType, column: str, why: str
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id INT, v {column})")
    schema = pa.schema([("id", pa.int32()), ("v", kind)])
    with pytest.raises(OptionError, match=f"Column 'v' of type .* does not fit .*{why}") as refused:
        MySqlQuery(schema, url=mysql_url, dbtable=table).sink.check()
    assert re.match("[A-Z]+", column)[0].lower() in str(refused.value)


TRICKY = st.text(st.sampled_from("'\\\"`;-,()\0\n\x1a%_aé\U0001f600"))
MODES = ["", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,PIPES_AS_CONCAT", "ANSI"]


@pytest.mark.parametrize("mode", MODES)
@given(texts=st.lists(TRICKY | st.text(st.characters(codec="utf-8")), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_server_reads_every_text_as_it_is_whatever_its_sql_mode(
    mysql: Cursor, mode: str, texts: list[str]
) -> None:
    mysql.execute("SET SESSION sql_mode = %s", (mode,))
    for kind in (pa.string(), pa.binary()):
        column = pa.array(texts, pa.string()).cast(kind)
        mysql.execute(b"SELECT " + b", ".join(literals(column).to_pylist()))
        assert list(mysql.fetchone()) == column.to_pylist()
