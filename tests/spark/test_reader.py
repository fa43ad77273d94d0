"""Batches as Spark expects them: no null where a schema allows none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sparkonce.errors import ValueUnreadable
from sparkonce.spark.reader import _as_announced

NEVER = pa.field("a", pa.int64(), nullable=False)
STRUCT = pa.struct([NEVER])
CASES: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (STRUCT, [{"a": 1}, None], [{"a": None}]),
    (pa.list_(STRUCT), [[{"a": 1}, None], [], None], [[{"a": 1}], [{"a": None}]]),
    (pa.list_(pa.field("element", pa.int64(), nullable=False)), [[1], [], None], [[1, None]]),
    (pa.map_(pa.string(), NEVER), [[("k", 1)], None], [[("k", 1)], [("k", None)]]),
    (pa.struct([("s", STRUCT)]), [{"s": None}, {"s": {"a": 1}}, None], [{"s": {"a": None}}]),
]


@pytest.mark.parametrize(("kind", "right", "wrong"), CASES, ids=[str(one) for one, *_ in CASES])
def test_a_null_where_none_may_be_is_told(
    kind: pa.DataType, right: list[Any], wrong: list[Any]
) -> None:
    """Also inside others; what lies in a null is nothing."""
    schema = pa.schema([("v", kind)])
    batch = pa.record_batch([pa.array([*wrong, *right], kind)], schema=schema)
    shown = batch.slice(len(wrong))  # which has the others still, out of sight
    assert _as_announced(shown, schema).num_rows == len(right)
    with pytest.raises(ValueUnreadable, match="'v' is null"):
        _as_announced(batch, schema)


def test_a_column_that_is_never_null_is_not() -> None:
    schema = pa.schema([NEVER])
    with pytest.raises(ValueUnreadable, match=r"'a' is null.*not null"):
        _as_announced(pa.record_batch([pa.array([1, None])], names=["a"]), schema)
