"""The id of a document: key columns, joined so that no two keys are alike."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce import json_text
from sparkonce.errors import BadRow
from sparkonce.rows import null_key, percent_encoded, shown
from sparkonce.text import to_text

LONGEST = 512
"""Bytes that the server takes for an id."""


def ids(rows: pa.RecordBatch, key: list[str]) -> Any:
    """The id of each row, as JSON text without quotes.

    Several columns are joined with ``:``, and a ``:`` or ``%`` inside a value is percent-encoded.

    Raises:
        BadRow: a key is null, empty or too long.
    """
    for name in key:
        if rows.column(name).null_count:
            raise null_key(name, rows, ",".join(key), "a row without a key has no id")
    texts = [to_text(rows.column(name)) for name in key]
    if len(key) == 1:
        joined = texts[0]
    else:
        escaped = [percent_encoded(text) for text in texts]
        joined = pc.binary_join_element_wise(*escaped, pa.scalar(b":", pa.binary()))
    _require_length(joined, rows, key)
    if all(_is_plain(rows.schema.field(name).type) for name in key):
        return joined.cast(pa.string())
    quoted = json_text.escaped(_utf8(joined))
    return pc.binary_replace_slice(pc.binary_replace_slice(quoted, 0, 1, ""), -1, 2**31 - 1, "")


def last_of_each(texts: Any) -> Any | None:
    """The place of the last row of each id; None if no id comes twice."""
    coded = texts.dictionary_encode()
    if len(coded.dictionary) == len(texts):
        return None
    table = pa.table({"id": coded.indices, "row": numbers(len(texts))})
    kept = table.group_by("id").aggregate([("row", "max")]).column("row_max").combine_chunks()
    return kept.take(pc.sort_indices(kept))


def folded(texts: Any, columns: list[Any]) -> tuple[Any | None, list[Any]]:
    """The last value of each id that is not null, column by column, and the place of its last row.

    Returns:
        The places are None if no id is there twice.
    """
    coded = texts.dictionary_encode()
    if len(coded.dictionary) == len(texts):
        return None, columns
    at = numbers(len(texts))
    held = {str(n): pc.if_else(one.is_valid(), at, None) for n, one in enumerate(columns)}
    table = pa.table({"id": coded.indices, "row": at, **held})
    last = [(name, "max") for name in ("row", *held)]
    done = table.group_by("id").aggregate(last).sort_by("row_max").combine_chunks()
    places = {name: done.column(f"{name}_max").combine_chunks() for name in ("row", *held)}
    return places["row"], [one.take(places[str(n)]) for n, one in enumerate(columns)]


def sums_of_each(texts: Any, columns: list[Any]) -> tuple[Any | None, list[Any]]:
    """The sums of the rows of each id, and the place of one of those; None if no id is twice."""
    coded = texts.dictionary_encode()
    if len(coded.dictionary) == len(texts):
        return None, columns
    named = {str(place): column for place, column in enumerate(columns)}
    table = pa.table({"id": coded.indices, "row": numbers(len(texts)), **named})
    sums = [(name, "sum") for name in named]
    done = table.group_by("id").aggregate([("row", "max"), *sums]).combine_chunks()
    return done.column("row_max").combine_chunks(), [
        done.column(f"{name}_sum").combine_chunks() for name in named
    ]


def require_sums_fit(texts: Any, rows: pa.RecordBatch, name: str) -> None:
    """Refuse sums that would wrap around unseen.

    Raises:
        ValueError: the sum of a column over the rows of one id leaves the range of a long.
    """
    column = rows.column(name)
    if not types.is_int64(column.type):
        return
    ends = pc.min_max(column)
    largest = max(abs(ends[end].as_py() or 0) for end in ("min", "max"))
    if largest * len(rows) < 2**63:
        return
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


def numbers(count: int) -> Any:
    """Whole numbers from 0 on."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _is_plain(kind: pa.DataType) -> bool:
    """Whether the text of such values needs no escapes."""
    return not (types.is_string(kind) or types.is_large_string(kind))


def _utf8(text: Any) -> Any:
    try:
        return text.cast(pa.string())
    except pa.ArrowInvalid:
        raise ValueError("a key is not valid UTF-8") from None


def _require_length(texts: Any, rows: pa.RecordBatch, key: list[str]) -> None:
    lengths = pc.binary_length(texts)
    ends = pc.min_max(lengths)
    if len(texts) and not 0 < ends["min"].as_py() <= ends["max"].as_py() <= LONGEST:
        wrong = pc.or_(pc.equal(lengths, 0), pc.greater(lengths, LONGEST))
        row = pc.index(wrong, True).as_py()
        raise BadRow(
            f"The key {','.join(key)!r} of a row has {lengths[row].as_py()} bytes;"
            f" the row: {shown(rows, row)}",
            why=f"an id in Elasticsearch has from 1 to {LONGEST}",
            todo="use a digest as the key, for example sha2(name, 256)",
        )
