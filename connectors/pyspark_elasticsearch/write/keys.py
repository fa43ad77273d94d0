"""The id of a document: key columns, joined so that no two keys are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.errors import BadRow
from sparkonce.values import json_text
from sparkonce.values.rows import null_key, percent_encoded, shown
from sparkonce.values.text import to_text

LONGEST = 512
"""Bytes that the server takes for an id."""


def ids(rows: pa.RecordBatch, key: Sequence[str]) -> Any:
    """The id of each row, as JSON text without quotes; its number where there is no key.

    Several columns are joined with ``:``, and a ``:`` or ``%`` inside a value is percent-encoded.

    Raises:
        BadRow: a key is null, empty or too long.
    """
    if not key:
        return _numbers(len(rows)).cast(pa.string())
    for name in key:
        if rows.column(name).null_count:
            raise null_key(name, rows, ",".join(key), "a row without a key has no id")
    texts = [to_text(rows.column(name)) for name in key]
    if len(key) == 1:
        joined = texts[0]
    else:
        escaped = [percent_encoded(text) for text in texts]
        joined = pc.binary_join_element_wise(*escaped, pa.scalar(b":", pa.binary()))
    lengths = pc.binary_length(joined)
    wrong = pc.or_(pc.equal(lengths, 0), pc.greater(lengths, LONGEST))
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise BadRow(
            f"The key {','.join(key)!r} of a row has {lengths[row].as_py()} bytes;"
            f" the row: {shown(rows, row)}",
            why=f"an id in Elasticsearch has from 1 to {LONGEST}",
            todo="use a digest as the key, for example sha2(name, 256)",
        )
    kinds = [rows.schema.field(name).type for name in key]
    if not any(types.is_string(kind) or types.is_large_string(kind) for kind in kinds):
        return joined.cast(pa.string())  # such texts need no escapes
    try:
        quoted = json_text.escaped(joined.cast(pa.string()))
    except pa.ArrowInvalid:
        raise ValueError("a key is not valid UTF-8") from None
    return pc.binary_replace_slice(pc.binary_replace_slice(quoted, 0, 1, ""), -1, 2**31 - 1, "")


def folded(
    rows: pa.RecordBatch, ids: Any, added: Sequence[str] = (), *, keeps: bool = False
) -> tuple[pa.RecordBatch, Any | None]:
    """One row for each id, and which of the rows gave the id its place; None if all did.

    It is the last one, but for the sums of columns, or the last values that are not null.

    Args:
        rows: of a chunk.
        ids: theirs.
        added: the columns that are summed.
        keeps: whether a null leaves what is there.

    Raises:
        ValueError: a sum would leave the range of a long, and wrap around unseen.
    """
    coded = ids.dictionary_encode()
    if len(coded.dictionary) == len(ids):
        return rows, None
    at = _numbers(len(ids))
    held, how = {"id": coded.indices, "row": at}, {"row": "max"}
    for n, (name, column) in enumerate(zip(rows.schema.names, rows.columns, strict=True)):
        if name in added:
            _require_sum_fits(ids, rows, name)
            held[str(n)], how[str(n)] = column, "sum"
        elif keeps:
            held[str(n)], how[str(n)] = pc.if_else(column.is_valid(), at, None), "max"
    done = pa.table(held).group_by("id").aggregate([*how.items()])
    done = done.sort_by("row_max").combine_chunks()
    found = {n: done.column(f"{n}_{by}").combine_chunks() for n, by in how.items()}
    kept = found.pop("row")
    columns = [
        found[str(n)] if how.get(str(n)) == "sum" else column.take(found.get(str(n), kept))
        for n, column in enumerate(rows.columns)
    ]
    return pa.record_batch(columns, rows.schema.names), kept


def _numbers(count: int) -> Any:
    """Whole numbers from 0 on."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _require_sum_fits(texts: Any, rows: pa.RecordBatch, name: str) -> None:
    """Refuse sums that would wrap around unseen."""
    column = rows.column(name)
    if not types.is_int64(column.type):
        return
    ends = pc.min_max(column)
    largest = max(abs(ends[end].as_py() or 0) for end in ("min", "max"))
    if largest * len(rows) < 2**63:
        return
    # Sums of halves don't wrap around, and tell whether that of the whole would.
    halves = {"high": pc.shift_right(column, 32), "low": pc.bit_wise_and(column, 0xFFFFFFFF)}
    table = pa.table({"id": texts, **halves}).group_by("id")
    sums = table.aggregate([("high", "sum"), ("low", "sum")])
    high = pc.add(sums.column("high_sum"), pc.shift_right(sums.column("low_sum"), 32))
    wrong = pc.or_(pc.less(high, -(2**31)), pc.greater_equal(high, 2**31))
    if pc.any(wrong).as_py():
        id_ = sums.column("id").filter(wrong)[0].as_py()
        raise ValueError(
            f"column {name!r}: the sum of a chunk's rows with id {id_!r} leaves the range of a long"
        )
