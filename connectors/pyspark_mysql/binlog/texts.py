"""Values that have a length of their own, as Arrow has them: bytes, texts, JSON."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    return column.charset.texts(found)


def differ(one: Place, other: Place, buffer: Buffer) -> Numbers:
    """Which values of a column that is never null are stored as other bytes."""
    if one.size is None:
        was, became = (buffer.bytes_at(each.at, each.column.type.size) for each in (one, other))
        found: Numbers = (was != became).any(axis=1)
        return found
    unlike: pa.Array = pc.not_equal(gathered(one, buffer), gathered(other, buffer))
    return np.asarray(unlike)


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
