"""Types of columns by a sample of their texts, where no schema says them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sparkonce.values import from_text
from sparkonce.values.text import to_text

KINDS = (
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
)
"""The first whose values have just these texts; else it is a string, or binary."""


def of_keys(texts: Sequence[bytes | None]) -> pa.DataType:
    """The same of texts in keys, which are no floats: two of their texts may be one value."""
    kind = guessed(texts)
    return pa.string() if pa.types.is_floating(kind) else kind


def guessed(texts: Sequence[bytes | None]) -> pa.DataType:
    """A type by which none of these texts loses anything: `07` and `1.10` are no numbers."""
    there = pa.array([one for one in texts if one is not None], pa.binary())
    if not len(there):
        return pa.string()
    return next((kind for kind in (*KINDS, pa.string()) if _is(there, kind)), pa.binary())


def _is(texts: pa.Array, kind: pa.DataType) -> bool:
    try:
        made = to_text(from_text.column(texts, kind))
    except ValueError:
        return False
    shown = _without_zero(texts) if pa.types.is_floating(kind) else texts
    return bool(pc.all(pc.equal(made, shown)).as_py())


def _without_zero(texts: pa.Array) -> pa.Array:
    """Whole numbers without the `.0` that other clients write."""
    return pc.replace_substring_regex(texts, r"\.0$", "")
