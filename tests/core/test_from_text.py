"""Columns from their texts and from JSON: back as they were, or an error; never another value."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkonce.values import from_json, from_text
from sparkonce.values.spark_types import type_name
from sparkonce.values.text import to_json, to_text

UTC = dt.timezone.utc
WIDE = Decimal("-12345678901234567890.123456789012345678")
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int64(), [-(2**63), 2**63 - 1, 2**53 + 1]),
    (pa.float32(), [0.1, -0.0, 3.4028234663852886e38, 1e-45]),
    (pa.float64(), [0.1, -0.0, 1e22, 5e-324, -1.7976931348623157e308]),
    (pa.decimal128(38, 18), [WIDE, Decimal("1E-18")]),
    (pa.string(), ["", "null", '"', "\\", "\n", "ü 😀", "0", "[1]"]),
    (pa.binary(), [b"", b"\x00\xff", b"ab"]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    (
        pa.timestamp("us", "UTC"),
        [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(2026, 3, 29, 1, 30, 0, 1, UTC)],
    ),
    (pa.timestamp("us"), [dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    (pa.time64("ns"), [dt.time(0), dt.time(23, 59, 59, 999999)]),
    (pa.duration("us"), [dt.timedelta(days=-1, microseconds=5)]),
    (pa.list_(pa.string()), [[], ["", None, "a"]]),
    (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))]), [{"a": None, "b": [0.5]}]),
    (
        pa.struct([("d", pa.date32()), ("b", pa.binary())]),
        [{"d": dt.date(2026, 1, 1), "b": b"\xff"}],
    ),
    (pa.map_(pa.string(), pa.decimal128(10, 2)), [[("k.1", Decimal("1.50"))], []]),
    (pa.list_(pa.map_(pa.string(), pa.int64())), [[[("k", 1)], None]]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_values_come_back_from_their_texts(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, None], kind)
    assert same(from_json.column(to_text(column), kind), column)


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=str)
def test_values_inside_others_come_back_from_json(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([values, None, [*values, None]], pa.list_(kind))
    assert same(from_json.column(to_json(column), column.type), column)


def same(found: pa.Array, column: pa.Array) -> bool:
    """Whether all values are, so that -0.0 is not 0.0."""
    return found.type == column.type and repr(found.to_pylist()) == repr(column.to_pylist())


@given(st.lists(st.floats(allow_nan=False), max_size=5))
def test_doubles_come_back_to_the_bit(values: list[float]) -> None:
    column = pa.array(values, pa.float64())
    assert same(from_text.column(to_text(column), column.type), column)


OTHERS: list[tuple[pa.DataType, str, Any]] = [
    (pa.int64(), "5.0", 5),
    (pa.int64(), "5e3", 5000),
    (pa.bool_(), "1", True),
    (pa.decimal128(10, 2), "1.5000", Decimal("1.50")),
    (pa.date32(), "2026-01-02 00:00:00", dt.date(2026, 1, 2)),
    (pa.timestamp("us", "UTC"), "2026-01-02", dt.datetime(2026, 1, 2, tzinfo=UTC)),
    (pa.timestamp("us", "UTC"), "2026-01-02 03:04", dt.datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
    (
        pa.timestamp("us", "UTC"),
        "2026-01-02T03:04:05+01:00",
        dt.datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
    ),
    (pa.timestamp("us"), "2026-01-02T03:04:05+01:00", dt.datetime(2026, 1, 2, 2, 4, 5)),
]
"""What others write for the same value."""


@pytest.mark.parametrize(("kind", "text", "value"), OTHERS, ids=str)
def test_what_a_plain_client_wrote_is_read(kind: pa.DataType, text: str, value: Any) -> None:
    assert from_text.column(pa.array([text, None]), kind).to_pylist() == [value, None]


WRONG = [
    *(
        (pa.int64(), text)
        for text in (
            "",
            " 5",
            "5 ",
            "1_000",
            "0x10",
            "07",
            "-07",
            "+5",
            "5.5",
            "9223372036854775808",
            "\u0665",
            "x",
        )
    ),
    *((pa.float64(), text) for text in ("", "1e400", "-1e400", "0x1p3", "1,5", "x")),
    *((pa.float32(), text) for text in ("1e39",)),
    *((pa.bool_(), text) for text in ("", "yes", "2", "t")),
    *((pa.decimal128(10, 2), text) for text in ("", "1.555", "123456789.00", "x", "NaN")),
    *(
        (pa.date32(), text)
        for text in ("", "2026-02-30", "2026-01-02T03:04:05", "02.01.2026", "0000-00-00")
    ),
    *(
        (pa.timestamp("us", "UTC"), text)
        for text in ("", "x", "2026-01-02T25:00:00Z", "2026-01-02T03:04:05.1234567Z")
    ),
    *((pa.time64("ns"), text) for text in ("", "24:00:00", "-01:00:00", "x")),
    *((pa.duration("us"), text) for text in ("", "1.5", "x")),
    *(
        (pa.list_(pa.int64()), text)
        for text in (
            "",
            "[1",
            "1",
            "{}",
            '["x"]',
            "[1.5]",
            "[1] [2]",
            "[99999999999999999999]",
            '[1],"w":2',
            '[1],"v":[2]',
        )
    ),
    *((pa.list_(pa.bool_()), text) for text in ('["yes"]', "[2]")),
    *((pa.list_(pa.decimal128(10, 2)), text) for text in ("[1.555]",)),
    *((pa.list_(pa.binary()), text) for text in ('["a"]', '["YQ==!"]', "[1234]")),
    *((pa.list_(pa.float64()), text) for text in ("[1e400]",)),
    *((pa.list_(pa.string()), text) for text in ('"abc"', "123", '{"a":1}')),
    *((pa.map_(pa.string(), pa.int64()), text) for text in ("[]", '""', "5")),
    *((pa.map_(pa.int64(), pa.int64()), text) for text in ('{"1":1,"01":2}',)),
    *((pa.struct([("a", pa.int64())]), text) for text in ("[]", '"x"', "5")),
]


@pytest.mark.parametrize(("kind", "text"), WRONG, ids=str)
def test_a_text_that_is_none_of_the_type_is_an_error(kind: pa.DataType, text: str) -> None:
    named = "bigint|interval" if pa.types.is_duration(kind) else re.escape(type_name(kind))
    with pytest.raises(ValueError, match=named):
        from_json.column(pa.array([text]), kind)


def test_bytes_that_are_no_text_are_no_string() -> None:
    with pytest.raises(ValueError, match="UTF8"):
        from_text.column(pa.array([b"\xff"]), pa.string())
    assert from_text.column(pa.array([b"\xff"]), pa.binary()).to_pylist() == [b"\xff"]
