"""Values of every type of Spark, and their form in documents."""

from __future__ import annotations

import base64
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = timezone.utc
ROUND_TRIPS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.bool_(), [True, False], [True, False]),
    (pa.int8(), [-128, 127], [-128, 127]),
    (pa.int16(), [-32768, 32767], [-32768, 32767]),
    (pa.int32(), [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1], [-(2**63), 2**63 - 1, 2**53 + 1]),
    (pa.float32(), [0.5, -3.0, 1e30], [0.5, -3.0, 1e30]),
    (pa.float64(), [0.1, -0.0, 1e308, 5e-324], [0.1, -0.0, 1e308, 5e-324]),
    (
        pa.decimal128(38, 18),
        [Decimal("0.000000000000000001"), Decimal("-12345678901234567890.123456789012345678")],
        ["0.000000000000000001", "-12345678901234567890.123456789012345678"],
    ),
    (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-0.05")], ["1.50", "-0.05"]),
    (
        pa.string(),
        ["", "a\\b\"c'\n\r\t\x00\x01\x02\x03\x1f", "\N{PARTY POPPER} ä \u2028"],
        ["", "a\\b\"c'\n\r\t\x00\x01\x02\x03\x1f", "\N{PARTY POPPER} ä \u2028"],
    ),
    (pa.binary(), [b"", b"\x00\xff\x01"], ["", base64.b64encode(b"\x00\xff\x01").decode()]),
    (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], ["0001-01-01", "9999-12-31"]),
    (
        pa.timestamp("us", "UTC"),
        [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(9999, 12, 31, tzinfo=UTC)],
        ["1969-12-31T23:59:59.999999Z", "9999-12-31T00:00:00.000000Z"],
    ),
    (pa.timestamp("us"), [datetime(2020, 2, 29, 1, 2, 3)], ["2020-02-29T01:02:03.000000"]),
    (pa.time64("ns"), [time(10, 11, 12, 123000)], ["10:11:12.123000"]),
    (pa.duration("us"), [timedelta(days=1, microseconds=5)], [86_400_000_005]),
    (pa.list_(pa.int64()), [[1, 2], []], [[1, 2], []]),
    (
        pa.struct([("lat", pa.float64()), ("lon", pa.float64())]),
        [{"lat": 40.5, "lon": -73.25}],
        [{"lat": 40.5, "lon": -73.25}],
    ),
    (
        pa.struct([("a", pa.string()), ("b", pa.list_(pa.struct([("c", pa.int32())])))]),
        [{"a": 'x"', "b": [{"c": 1}, {"c": None}]}],
        [{"a": 'x"', "b": [{"c": 1}, {"c": None}]}],
    ),
    (pa.map_(pa.string(), pa.string()), [[("k.1", "v"), ("k 2", "w")]], [{"k.1": "v", "k 2": "w"}]),
]
