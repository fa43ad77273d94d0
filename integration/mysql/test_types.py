"""Every type of Spark in every sensible column type, there and back; and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.epochs import MySqlQuery
from pymysql.cursors import Cursor

from pyspark_mysql.server.literals import literals
from sparkonce.errors import OptionError

UTC = dt.timezone.utc
MICRO = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1)
INSTANT = dt.datetime(2013, 1, 1, 5, 0, 0, 123456)
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
STRUCT = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
TINY = Decimal("0.000000000000000001")
HUGE = Decimal("-12345678901234567890.000000000000000001")


class Case(NamedTuple):
    """Values of one type, the columns they go to, and what is read back where that differs."""

    kind: pa.DataType
    values: list[Any]
    columns: list[str]
    read: Callable[[Any], Any] = lambda value: value
    expected: list[Any] | None = None


def micros(value: dt.datetime) -> int:
    return (value - EPOCH) // MICRO


def bits(value: Any) -> int:
    return int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)


INTEGERS = ["TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL(38,0)"]
CASES = {
    "boolean": Case(pa.bool_(), [True, False], ["BOOLEAN", "BIT(1)", "INT"], bits),
    "tinyint": Case(pa.int8(), [-128, 127], [*INTEGERS, "FLOAT", "DOUBLE"]),
    "smallint": Case(pa.int16(), [-(2**15), 2**15 - 1], [*INTEGERS[1:], "FLOAT", "DOUBLE"]),
    "int": Case(pa.int32(), [-(2**31), 2**31 - 1], [*INTEGERS[3:], "DOUBLE"]),
    "year": Case(pa.int32(), [1901, 2155], ["YEAR"]),
    "bigint": Case(pa.int64(), [-(2**63), 2**63 - 1], INTEGERS[4:]),
    "unsigned": Case(pa.int64(), [0, 2**63 - 1], ["BIGINT UNSIGNED", "BIT(64)"], bits),
    "above bigint": Case(
        pa.decimal128(20, 0), [Decimal(2**64 - 1), Decimal(0)], ["BIGINT UNSIGNED"]
    ),
    "float": Case(
        pa.float32(),
        [0.1, -3.4028234663852886e38, 1e-45],
        ["DOUBLE"],
    ),
    "single": Case(pa.float32(), [0.5, -65536.0], ["FLOAT"]),
    "double": Case(
        pa.float64(),
        [0.1 + 0.2, 5e-324, -1.7976931348623157e308, 2.2250738585072014e-308, 1e22, 123456789.0],
        ["DOUBLE"],
    ),
    "decimal": Case(pa.decimal128(38, 18), [HUGE, TINY, -TINY], ["DECIMAL(38,18)"]),
    "money": Case(pa.decimal128(10, 2), [Decimal("-99999999.99")], ["DECIMAL(10,2)"]),
    "string": Case(
        pa.string(),
        ["", "naïve \U0001f600", "it's \"q\" `b` \\ \\' \0 \n \x1a %s -- ; /* */", " x "],
        ["VARCHAR(99)", "TINYTEXT", "TEXT", "LONGTEXT"],
    ),
    "latin1": Case(pa.string(), ["naïve \\ é"], ["VARCHAR(99) CHARACTER SET latin1"]),
    "enum": Case(pa.string(), ["a'b"], ["ENUM('x', 'a''b')", "SET('x', 'a''b')"]),
    "json text": Case(
        pa.string(), ['{"a": "\\u00e9\\\\"}', "[]"], ["JSON"], json.loads, [{"a": "é\\"}, []]
    ),
    "binary": Case(
        pa.binary(),
        [b"", b"\x00\xff'\\", bytes(range(256))],
        ["VARBINARY(256)", "BLOB", "LONGBLOB"],
    ),
    "fixed": Case(pa.binary(), [b"\x00\xff'\\"], ["BINARY(4)"]),
    "date": Case(pa.date32(), [FIRST.date(), LAST.date()], ["DATE"]),
    "midnight": Case(pa.date32(), [LAST.date()], ["DATETIME"], lambda v: v and v.date()),
    "timestamp": Case(pa.timestamp("us", "UTC"), [INSTANT, FIRST, LAST], ["DATETIME(6)"]),
    "instant": Case(
        pa.timestamp("us", "UTC"),
        [INSTANT, EPOCH + dt.timedelta(seconds=1), dt.datetime(2038, 1, 19, 3, 14, 7, 999999)],
        ["TIMESTAMP(6) NULL"],
    ),
    "timestamp_ntz": Case(pa.timestamp("us"), [INSTANT, FIRST, LAST], ["DATETIME(6)"]),
    "time": Case(
        pa.time64("ns"),
        [dt.time(23, 59, 59, 999999), dt.time(0)],
        ["TIME(6)"],
        lambda v: v if v is None else (dt.datetime.min + v).time(),
    ),
    "interval": Case(
        pa.duration("us"),
        [dt.timedelta(days=1, seconds=7384, microseconds=500000)],
        ["BIGINT"],
        lambda v: v if v is None else dt.timedelta(microseconds=v),
    ),
    "array": Case(
        pa.list_(pa.string()), [["q\"\\'", None, "\U0001f600"], []], ["JSON"], json.loads
    ),
    "map": Case(
        pa.map_(pa.string(), pa.float64()),
        [{"a'": 1.5, "b": None}],
        ["JSON", "LONGTEXT"],
        json.loads,
    ),
    "struct": Case(STRUCT, [{"x": 1, "y": ["a"]}, {"x": None, "y": None}], ["JSON"], json.loads),
}
PAIRS = [(name, column) for name, case in CASES.items() for column in case.columns]


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


def as_arrow(rows: list[dict[str, Any]], schema: pa.Schema) -> list[dict[str, Any]]:
    """Datetimes as counts, which Arrow takes for every year."""
    if not pa.types.is_timestamp(schema.field("v").type):
        return rows
    return [{**row, "v": row["v"] and micros(row["v"])} for row in rows]


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
