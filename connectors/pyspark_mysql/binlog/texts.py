"""Values that have a length of their own, as Arrow has them: bytes, texts, JSON."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from pyspark_mysql.binlog import json_text
from pyspark_mysql.binlog.images import Buffer, Numbers, Place
from pyspark_mysql.binlog.types import GEOMETRY, JSON


def varying(place: Place, buffer: Buffer) -> pa.Array:
    """The values of a column whose values have lengths.

    Raises:
        ValueError: one is no text of its character set.
    """
    found, column = gathered(place, buffer), place.column
    if column.type.code == JSON:
        return _each(found, json_text.of, pa.string())
    if column.padding:
        return _each(found, lambda one: one.ljust(column.padding, b"\0"), pa.binary())
    if column.type.code == GEOMETRY or column.charset is None:
        return found
    name = codec(column.charset)
    if name == "utf-8":
        return found.cast(pa.string())  # looks whether it is
    table = _of_one_byte(name)
    return (
        _each(found, lambda one: one.decode(name), pa.string())
        if table is None
        else _by(table, found)
    )


CODECS = {
    "ascii": "utf-8",
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "latin1": "cp1252",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "macroman": "mac-roman",
    "macce": "mac-latin2",
}
"""Python's names of character sets that have another one there."""


def codec(charset: str) -> str:
    """Python's name of a character set.

    Raises:
        ValueError: it has none.
    """
    name = CODECS.get(charset, charset)
    try:
        codecs.lookup(name)
    except LookupError:
        raise ValueError(f"Python does not know the character set {charset}") from None
    return name


def gathered(place: Place, buffer: Buffer) -> pa.Array:
    """The bytes of values, which Arrow itself gathers.

    Its offsets stand for values and for what is between them in turn; the values are taken.
    """
    many, size = len(place.at), 0 if place.size is None else place.size
    offsets = np.zeros(2 * many + 1, np.int32)
    offsets[:-1:2], offsets[1::2] = place.at, place.at + size
    offsets[-1] = offsets[-2] if many else 0
    both = pa.Array.from_buffers(
        pa.binary(), 2 * many, [None, pa.py_buffer(offsets), pa.py_buffer(buffer.data)]
    )
    _, ends, data = both.take(pa.array(np.arange(0, 2 * many, 2))).buffers()
    valid = place.valid
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), many, [bitmap, ends, data])


def _each(found: pa.Array, make: Callable[[bytes], object], kind: pa.DataType) -> pa.Array:
    return pa.array([None if one is None else make(one) for one in found.to_pylist()], kind)


def _by(table: tuple[Numbers, Numbers], found: pa.Array) -> pa.Array:
    """Texts of a character set of one byte, by the UTF-8 of each."""
    forms, sizes = table
    bitmap, ends, data = found.buffers()
    offsets = np.frombuffer(ends, np.int32)[: len(found) + 1]
    old = np.frombuffer(data, np.uint8)[: offsets[-1]] if data else np.zeros(0, np.uint8)
    new = forms[old][np.arange(forms.shape[1]) < sizes[old][:, None]]
    to = np.concatenate([[0], np.cumsum(sizes[old])]).astype(np.int32)[offsets]
    buffers = [bitmap, pa.py_buffer(to), pa.py_buffer(np.ascontiguousarray(new))]
    return pa.Array.from_buffers(pa.string(), len(found), buffers)


@lru_cache
def _of_one_byte(name: str) -> tuple[Numbers, Numbers] | None:
    """The UTF-8 of each byte, and its length; None of a character set of several bytes."""
    forms, sizes = np.zeros((256, 4), np.uint8), np.zeros(256, np.int64)
    for byte in range(256):
        try:
            text = bytes([byte]).decode(name)
        except UnicodeDecodeError:
            if name != "cp1252":
                return None
            text = chr(byte)  # MySQL's latin1 has five more than it
        form = text.encode()
        forms[byte, : len(form)], sizes[byte] = [*form], len(form)
    return forms, sizes
