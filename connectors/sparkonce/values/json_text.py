"""Builds JSON text from Arrow columns by compute kernels.

Nothing here depends on Spark types: `sparkonce.values.text` defines the form of each column. Every
function takes whole columns and returns a column of the same length, null where its input is null.
"""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

# Backslash first: the other escapes add backslashes.
_ESCAPES = {ord(char): json.dumps(char)[1:-1] for char in ["\\", '"', *map(chr, range(0x20))]}
_ORDINARY = bytes(set(range(256)) - set(_ESCAPES))
_END = 2**31 - 1
_NOT_FINITE = pa.array(["nan", "inf", "-inf"])
_NOT_FINITE_JSON = pa.array(['"NaN"', '"Infinity"', '"-Infinity"'])
# By the length modulo 3: the padding of the last group of three bytes.
_FILLING = pa.array([b"", b"\0\0", b"\0"])


def wrapped(text: pa.Array, opening: str, closing: str) -> pa.StringArray:
    """Return each text between `opening` and `closing`."""
    # Two slice replacements take half the time of one binary_join_element_wise.
    opened = pc.binary_replace_slice(text, 0, 0, opening)
    return pc.binary_replace_slice(opened, _END, _END, closing)


def quoted(text: pa.Array) -> pa.StringArray:
    """Return each text as a JSON string; the texts must need no escapes."""
    return wrapped(text, '"', '"')


def escaped(text: pa.Array) -> pa.StringArray:
    """Return each UTF-8 text as a JSON string, with only the escapes that JSON requires.

    Bytes that are not valid UTF-8 stay unchanged.
    """
    text = text.cast(pa.string())
    special = set(bytes(all_bytes(text)).translate(None, _ORDINARY))
    if special:
        # Past 2 GiB, replace_substring returns wrong 32-bit offsets without an error.
        text = text.cast(pa.large_string())
        for byte in filter(special.__contains__, _ESCAPES):
            text = pc.replace_substring(text, pattern=chr(byte), replacement=_ESCAPES[byte])
    return quoted(text.cast(pa.string()))


def number(column: pa.Array) -> pa.StringArray:
    """Return each float as a JSON number that reads back as the same float of that width.

    A whole number keeps a fraction (`1.0`), so that a reader who distinguishes the two sees a
    float. JSON has no number for NaN and the infinities: they are strings, as in Spark's `to_json`.
    """
    text = column.cast(pa.string())
    whole = pc.and_(pc.equal(column, pc.trunc(column)), pc.is_finite(column))
    if pc.any(whole).as_py():
        plain = pc.and_not(whole, pc.match_substring(text, "e"))
        text = pc.if_else(plain, pc.binary_replace_slice(text, _END, _END, ".0"), text)
    if pc.all(pc.is_finite(column)).as_py() is False:
        names = _NOT_FINITE_JSON.take(pc.index_in(text, value_set=_NOT_FINITE))
        text = pc.coalesce(names, text)
    return text


def base64(column: pa.Array) -> pa.StringArray:
    """Return each binary value as a JSON string of its standard base64 text, with padding.

    Each value is padded to whole groups of three bytes, so no group belongs to two values. One call
    then encodes all bytes, and `=` replaces the encoded padding.
    """
    column = column.cast(pa.binary())
    lengths = pc.binary_length(column)
    rest = pc.subtract(lengths, pc.multiply(pc.divide(lengths, 3), 3))
    filled = pc.binary_join_element_wise(column, _FILLING.take(rest), b"")
    ends = offsets(pc.multiply(pc.divide(_wide(pc.binary_length(filled)), 3), 4))
    data = pa.py_buffer(binascii.b2a_base64(all_bytes(filled), newline=False))
    text = pa.StringArray.from_buffers(len(column), ends.buffers()[1], data)
    one_byte = pc.binary_replace_slice(text, -2, _END, "==")
    two_bytes = pc.binary_replace_slice(text, -1, _END, "=")
    return quoted(pc.choose(rest, text, one_byte, two_bytes))


def objects(column: pa.StructArray, names: Sequence[str], values: Sequence[pa.Array]) -> pa.Array:
    """Return one JSON object for each struct of `column`.

    Only a null of `column` becomes a null; a null among `values` becomes `null`.
    """
    pieces = [_where_valid(column, "{")]
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        key = json.dumps(name, ensure_ascii=False)
        pieces += [f",{key}:" if place else f"{key}:", _or_null(value)]
    return pc.binary_join_element_wise(*pieces, "}", "")


def arrays(column: pa.Array, elements: pa.Array) -> pa.StringArray:
    """Return one JSON array for each list of `column`; `elements` as `column.flatten()` counts."""
    return _joined(column, "[", _or_null(elements), "]")


def mappings(column: pa.Array, keys: pa.Array, values: pa.Array) -> pa.StringArray:
    """Return one JSON object for each list of entries of `column`.

    Keys are JSON strings; a null among `values` is written as `null`.

    Raises:
        ValueError: A key is twice in one object; readers of JSON differ in what they make of that.
    """
    _require_distinct(column, keys)
    return _joined(column, "{", pc.binary_join_element_wise(keys, _or_null(values), ":"), "}")


def _require_distinct(column: pa.Array, keys: pa.Array) -> None:
    """Reject a map with two values of one key, as Spark's own functions on maps do.

    Spark creates these maps when it parses JSON.
    """
    lengths = pc.list_value_length(column)
    if (pc.max(lengths).as_py() or 0) < 2:
        return
    parents = pc.list_parent_indices(pa.ListArray.from_arrays(offsets(_wide(lengths)), keys))
    known = keys.dictionary_encode()
    # One number for each map and key: a duplicate number is a duplicate key.
    entries = pc.add(pc.multiply(_wide(parents), len(known.dictionary)), known.indices)
    if pc.count_distinct(entries).as_py() < len(entries):
        counted = pc.value_counts(entries)
        twice = counted.filter(pc.greater(counted.field("counts"), 1))[0]["values"].as_py()
        raise ValueError(
            f"a map has the key {known.dictionary[twice % len(known.dictionary)]} twice"
        )


def _joined(column: pa.Array, opening: str, texts: pa.Array, closing: str) -> pa.StringArray:
    """Return the texts of each list of `column` between brackets, with commas between them."""
    at = offsets(_wide(pc.list_value_length(column)))
    joined = pc.binary_join(pa.ListArray.from_arrays(at, texts), ",")
    return _where_valid(column, wrapped(joined, opening, closing))


def _where_valid(column: pa.Array, text: pa.Array | str) -> pa.StringArray:
    """Return the text, but null where the column is null."""
    return pc.if_else(column.is_valid(), text, pa.nulls(len(column), pa.string()))


def _or_null(text: pa.Array) -> pa.StringArray:
    return pc.fill_null(text, "null")


def _wide(lengths: pa.Array) -> pa.Int64Array:
    """Return the lengths in 64 bits, so that their sum does not overflow."""
    return lengths.cast(pa.int64())


def offsets(lengths: pa.Int64Array) -> pa.Int32Array:
    """Return where each value starts, and the last one ends, if null values are empty."""
    ends = pc.cumulative_sum(pc.fill_null(lengths, 0))
    if len(ends) and ends[-1].as_py() > _END:
        raise ValueError("a column cannot have more than 2 GiB of text")
    return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])


def all_bytes(texts: pa.Array) -> memoryview:
    """The concatenated values of an array of strings or binary, without a copy.

    Null values may contribute bytes, too.
    """
    _, starts, data = texts.buffers()
    if not len(texts) or data is None:
        return memoryview(b"")
    at = memoryview(starts).cast("i")
    return memoryview(data)[at[texts.offset] : at[texts.offset + len(texts)]]
