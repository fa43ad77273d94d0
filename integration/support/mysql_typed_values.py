"""Values of every type of Spark, and the column types of MySQL that hold them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

MICRO = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1970, 1, 1)
INSTANT = dt.datetime(2013, 1, 1, 5, 0, 0, 123456)
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
STRUCT = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
TINY = Decimal("0.000000000000000001")
HUGE = Decimal("-12345678901234567890.000000000000000001")


class Case(NamedTuple):
    """Values of one type, their columns, and the values that are read if they differ."""

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
    "float": Case(pa.float32(), [0.1, -3.4028234663852886e38, 1e-45], ["DOUBLE"]),
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


def as_arrow(rows: list[dict[str, Any]], schema: pa.Schema) -> list[dict[str, Any]]:
    """Datetimes as counts, which Arrow accepts for every year."""
    if not pa.types.is_timestamp(schema.field("v").type):
        return rows
    return [{**row, "v": row["v"] and micros(row["v"])} for row in rows]
