"""Whole columns from the texts of their values: the inverse of `text.to_text`.

Texts of other clients are accepted, too, if they have one meaning. No value changes: a text of
another type, or one that needs rounding, is an error; but a float or double is the nearest one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkonce.values.spark_types import type_name

_DAY = r"^(\d{4}-\d\d-\d\d)$"
_CLOCK = r"([T ][0-9:.]+)$"
"""A day without a clock, and a clock without a zone: both are in UTC."""

_EPOCH = "1970-01-01T"

_FIRST, _BEHIND = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 and 10000 in microseconds."""

_NO_NUMBER = r"[xX]|^[+]|^-?0[0-9]"
"""Texts that are not whole numbers: 07 is a name."""


def column(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of a type; null stays null.

    Raises:
        ValueError: a text is not of the type.
    """
    try:
        if types.is_binary(kind) or types.is_large_binary(kind):
            return texts.cast(kind)
        strings = texts.cast(pa.string())
        read = next((read for accepts, read in _READERS if accepts(kind)), None)
        return read(strings, kind) if read else strings.cast(kind)
    except pa.ArrowException as error:
        raise ValueError(f"{type_name(kind)}: {error}") from None


def _whole(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    _refuse(texts, pc.match_substring_regex(texts, _NO_NUMBER), kind)  # Arrow accepts 0x10 and 07
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:  # 5.0, or 5e3
        return texts.cast(pa.decimal128(38, 18)).cast(kind)


def _decimal(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    found = texts.cast(kind)
    found.validate(full=True)  # else a number may have more digits than its type
    return found


def _floating(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    found = texts.cast(kind)
    said = pc.match_substring(texts, "inf", ignore_case=True)
    _refuse(texts, pc.and_not(pc.is_inf(found), said), kind)  # Arrow reads 1e400 as infinity
    return found


def _duration(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    return _whole(texts, pa.int64()).view(pa.duration("us")).cast(kind)


def _moment(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Instants, or wall clocks in UTC."""
    zoned = pa.timestamp("us", "UTC")
    try:
        found = texts.cast(zoned)
    except pa.ArrowInvalid:
        whole = pc.replace_substring_regex(texts, _DAY, r"\1T00:00")
        found = pc.replace_substring_regex(whole, _CLOCK, r"\1Z").cast(zoned)
    _refuse(texts, outside_years(found), kind)
    return found.cast(pa.timestamp("us")).cast(kind) if kind.tz is None else found.cast(kind)


def _date(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        days = texts.cast(kind)
        _refuse(texts, outside_years(days.cast(pa.timestamp("us"))), kind)
        return days
    except pa.ArrowInvalid:
        moments = _moment(texts, pa.timestamp("us"))
        days = moments.cast(kind)
        _refuse(texts, pc.not_equal(days.cast(moments.type), moments), kind)
        return days


def _time(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    days = pc.binary_join_element_wise(_EPOCH, texts, "")
    return days.cast(pa.timestamp("ns")).cast(kind)


_READERS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array]], ...
] = (
    (types.is_integer, _whole),
    (types.is_decimal, _decimal),
    (types.is_floating, _floating),
    (types.is_duration, _duration),
    (types.is_timestamp, _moment),
    (types.is_date, _date),
    (types.is_time, _time),
)
"""Types whose texts Arrow rejects or reads as another value."""


def outside_years(moments: pa.Array) -> pa.Array:
    """Which microseconds are outside of the years 1 to 9999, the range of Spark and Python."""
    found = moments.cast(pa.int64())
    return pc.or_(pc.less(found, _FIRST), pc.greater_equal(found, _BEHIND))


def from_base64(texts: pa.Array) -> pa.Array:
    """The decoded bytes of base64 texts.

    Raises:
        ValueError: a text is not base64.
    """
    return pa.array(
        [one if one is None else base64.b64decode(one, validate=True) for one in texts.to_pylist()],
        pa.binary(),
    )


def _refuse(texts: pa.Array, wrong: pa.Array, kind: pa.DataType) -> None:
    """Reject texts of which one is wrong."""
    if pc.any(wrong).as_py():
        raise ValueError(f"{texts.filter(wrong)[0].as_py()!r} is not of type {type_name(kind)}")
