"""Converts whole columns to JSON text for documents, without a Python object for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.change import RowOperations
from sparkonce.errors import BadRow
from sparkonce.values import from_json, json_text
from sparkonce.values.rows import Unfit, describe_row, null_key, percent_encoded
from sparkonce.values.text import to_json, to_text

LONGEST = 512  # bytes of an id that the server accepts

OBJECT = r"^\s*\{[^\x00-\x08\x0b\x0c\x0e-\x1f]*\}\s*$"
"""What may be a JSON object. The server rejects a whole request for other text, and the control
characters, which JSON escapes, mark places in a chunk."""


def ids(rows: pa.RecordBatch, key: Sequence[str]) -> Any:
    """The id of each row, as JSON text without quotes; its number if there is no key.

    Several columns are joined with ``:``, and a ``:`` or ``%`` inside a value is percent-encoded.
    A key that is null, empty or too long is a `BadRow`.
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
            f" the row: {describe_row(rows, row)}",
            why=f"an id has from 1 to {LONGEST} bytes",
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
    """One row for each id, and the positions of the rows kept; None if all were kept.

    It is the last row of the id. Columns in `added` have the sum of all rows instead. If `keeps`,
    each column has its last value that is not null. `ValueError` if a sum exceeds a long.
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


def listed(ids: Any, texts: Any) -> tuple[Any, Any]:
    """For each id the position of its last row, and the texts of its rows with commas between."""
    coded = ids.dictionary_encode()
    held = pa.table({"id": coded.indices, "row": _numbers(len(ids)), "text": texts})
    grouped = held.group_by("id", use_threads=False)  # threads would not keep the order
    done = grouped.aggregate([("row", "max"), ("text", "list")]).sort_by("row_max").combine_chunks()
    rows, lists = (done.column(name).combine_chunks() for name in ("row_max", "text_list"))
    return rows, pc.binary_join(lists, ",")


def _numbers(count: int) -> Any:
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _require_sum_fits(texts: Any, rows: pa.RecordBatch, name: str) -> None:
    column = rows.column(name)
    if not types.is_int64(column.type):
        return
    ends = pc.min_max(column)
    largest = max(abs(ends[end].as_py() or 0) for end in ("min", "max"))
    if largest * len(rows) < 2**63:
        return
    # Sums of halves do not overflow, and show whether the whole sum would.
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


Column = Any


def texts(rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, Column]:
    """Columns as JSON; a null stays null.

    A decimal becomes a string, which keeps all digits: JSON readers, and fields without an explicit
    mapping, would treat a number as a binary float. `ValueError` for NaN, an infinity, a string
    that is not UTF-8 and a date outside the years 0001 to 9999.
    """
    _require_storable([(name, rows.column(name)) for name in names])
    found: dict[str, Column] = {}
    for name in names:
        column = rows.column(name)
        try:
            if types.is_decimal(column.type):
                found[name] = json_text.quoted(to_text(column).cast(pa.string()))
            else:
                found[name] = to_json(column)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from None
    return found


def routing(rows: pa.RecordBatch, name: str, quoted: Column) -> Column:
    """A column as JSON strings, from its JSON values; `ValueError` for a null or empty one."""
    if quoted.null_count:
        raise ValueError(f"column {name!r} is null in a row, and option routing names it")
    if pc.any(pc.equal(quoted, '""')).as_py():
        raise ValueError(
            f"column {name!r} is empty in a row, and option routing names it: the cluster"
            " would use no routing"
        )
    kind = rows.column(name).type
    bare = types.is_boolean(kind) or types.is_duration(kind)
    bare = bare or types.is_integer(kind) or types.is_floating(kind)
    return pc.binary_join_element_wise('"', quoted, '"', "") if bare else quoted


def with_documents(rows: pa.RecordBatch, name: str, doing: RowOperations) -> pa.RecordBatch:
    """The rows, with each document of column `name` on one line.

    The server parses them again, and refuses, for example, text after the object.

    Raises:
        Unfit: a row that does not delete has no object.
        ValueError: it is not JSON: a server keeps comments, which then break readers.
    """
    texts = rows.column(name)
    _require_storable([(name, texts)])
    fits = pc.fill_null(pc.match_substring_regex(texts, OBJECT), False)
    if doing.deleted is not None:
        fits = pc.or_(fits, doing.deleted)
    places = pc.indices_nonzero(pc.invert(fits))
    if len(places):
        places = places if doing.places is None else doing.places.take(places)
        todo = "write a JSON object, for example to_json(struct(*))"
        raise Unfit(name, places, "option rowColumn names it, so it is a whole document", todo)
    written = texts if doing.deleted is None else texts.filter(pc.invert(doing.deleted))
    if len(written):
        from_json.require_json(written)
    lines = pc.replace_substring_regex(texts, "[\r\n]", " ")
    columns = [lines if one == name else rows.column(one) for one in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def versions(rows: pa.RecordBatch, name: str) -> Any:
    """The version of each row by option ``versionColumn``; `ValueError` if null or negative.

    For a date or timestamp it is the microseconds since 1970.
    """
    column = rows.column(name)
    numbers = column.cast(pa.timestamp("us")) if types.is_date(column.type) else column
    if types.is_timestamp(numbers.type):
        numbers = numbers.view(pa.int64())
    lowest = pc.min(numbers).as_py()
    if column.null_count or (lowest is not None and lowest < 0):
        timed = types.is_temporal(column.type)
        raise ValueError(
            f"column {name!r}, of option versionColumn, is null or"
            f" {'before 1970' if timed else 'negative'} in a row"
        )
    return numbers.cast(pa.string())


def of_version(version: int, kind: pa.DataType) -> str:
    """The text of a version's original value."""
    if not types.is_temporal(kind):
        return str(version)
    at = pa.array([version], pa.int64()).view(pa.timestamp("us"))
    text = to_text(at.cast(pa.date32()) if types.is_date(kind) else at.view(kind))
    return str(text.cast(pa.string())[0].as_py())


def joined(*pieces: Column | str) -> Column:
    """The concatenated pieces of each row; a null is the word `null`."""
    parts = [pa.scalar(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(
        *parts, pa.scalar(""), null_handling="replace", null_replacement="null"
    )


def _require_storable(within: list[tuple[str, Column]]) -> None:
    """Reject values that JSON cannot express, at any depth of these columns."""
    for name, column in within:
        kind = column.type
        if types.is_floating(kind):
            finite = pc.is_finite(column)
            if pc.all(finite).as_py() is False:
                wrong = column.filter(pc.invert(pc.fill_null(finite, True)))[0]
                raise ValueError(f"column {name!r}: {wrong} has no place in a JSON document")
        elif types.is_string(kind) or types.is_large_string(kind):
            try:  # Arrow does not check this; the server would reject the whole request.
                column.cast(pa.binary()).cast(pa.string())
            except pa.ArrowInvalid:
                raise ValueError(f"column {name!r}: a string is not valid UTF-8") from None
        elif types.is_map(kind) and len(column):
            # Only the keys and items of its slice.
            first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
            both = column.keys, column.items
            within += [(name, each.slice(first, last - first)) for each in both]
        elif types.is_struct(kind):
            within += [(name, child) for child in column.flatten()]
        elif types.is_nested(kind) and not types.is_map(kind):
            within.append((name, column.flatten()))
