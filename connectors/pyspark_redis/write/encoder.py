"""Rows as chunks: each value as the text that Redis gets, if the server takes it as it is.

Numbers travel as decimal texts, since Lua's numbers lose integers above 2^53. No Python object
is made for a row: headers and values are joined by Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyspark_redis.target.keys import begins, make_keys, require_free, utf8
from pyspark_redis.write import chunks
from pyspark_redis.write.detail import JOINED, PlanDetail
from sparkonce.change import Increment, split_operations
from sparkonce.errors import BadRow
from sparkonce.exactly_once.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.values import letters
from sparkonce.values.letters import Letter
from sparkonce.values.rows import describe_row, describe_value, null_key, separate_bad_rows

WHOLE = 2**53  # up to it a double, which a score is, holds every whole number
LATEST = 10**15  # milliseconds beyond which the server may refuse an expiry


class ChunkEncoder:
    """Encodes rows for one plan."""

    def __init__(self, detail: PlanDetail) -> None:
        self.detail, self.key, self.controls = detail, detail.key, detail.controls
        self.adds = isinstance(detail.change, Increment)
        self.added = detail.fields if self.adds and not self.controls.score else ()
        self.reserved = begins(detail.prefix)[: 1 + detail.lanes]
        self.identity = {*self.key.columns, self.controls.op, self.controls.order}
        if detail.collects:
            self.identity |= {*detail.fields}

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows; BadRow if one is unfit, ValueError if a value has no text."""
        return self._packed(self._texts(rows), [])

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        fit, bad = separate_bad_rows(rows, self._texts)
        named, schema = self.key.columns, self.detail.arrow
        aside = [letters.of_row(one.reason, one.row, schema, named) for one in bad]
        texts = [pa.concat_arrays(parts) for parts in zip(*fit, strict=True)]
        return self._packed(texts or self._texts(rows.slice(0, 0)), aside), reasons(bad)

    def _packed(self, texts: Sequence[pa.BinaryArray], aside: Sequence[Letter]) -> bytes:
        letters = [chunks.letter_texts(one) for one in aside]
        if self.detail.lanes:
            return chunks.join_segments(list(chunks.segments_of(texts)), letters)
        return chunks.pack_rows(texts, letters)

    def _texts(self, rows: pa.RecordBatch) -> list[pa.BinaryArray]:
        """Keys and columns of the rows that do something, as a chunk has them."""
        doing = split_operations(rows, self.controls.op)
        rows, deleted = doing.keyed(self.identity), doing.deleted
        texts = [make_keys(self.key, rows)]
        require_free(texts[0], self.reserved)
        self._require_fit(rows, deleted)
        found = self._columns(rows)
        texts += [found[name] for name in self.detail.columns]
        if self.controls.op:
            none = pa.nulls(len(rows), pa.binary())
            texts.append(none if deleted is None else pc.if_else(deleted, b"1", none))
        if self.controls.expiry:
            texts.append(utf8(_expiries(self.controls.expiry, rows)))
        return texts

    def _columns(self, rows: pa.RecordBatch) -> dict[str, pa.BinaryArray]:
        """The text of each column of a chunk; those of one type are written together."""
        found: dict[str, pa.BinaryArray] = {}
        if self.detail.joined:
            members = rows.select(list(self.detail.fields))
            found[JOINED] = utf8(members.to_struct_array())
        alike: dict[pa.DataType, list[str]] = {}
        for name in self.detail.columns:
            if name != JOINED:
                alike.setdefault(rows.column(name).type, []).append(name)
        for names in alike.values():
            found |= _written(rows, names)
        return found

    def _require_fit(self, rows: pa.RecordBatch, deleted: Any | None) -> None:
        """See that the server takes each value as it is."""
        if order := self.controls.order:
            _require_no_null(
                order, rows, "sequenceColumn", "a row without it has no place in the order"
            )
        if score := self.controls.score:
            if self.adds:
                _require_finite(score, rows)  # a null adds nothing
            else:
                scored = rows if deleted is None else rows.filter(pc.invert(deleted))
                why = "a member has a place by its score alone"
                _require_no_null(score, scored, "scoreColumn", why)
            _require_exact(score, rows)
        for name in self.added:
            _require_finite(name, rows)
        for name in self.detail.fields if self.detail.collects and not self.detail.joined else ():
            _require_no_null(name, rows, self.detail.model, "a null is no element")


def _written(rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.BinaryArray]:
    """The texts of columns of one type; the ValueError of one that has none names it."""
    try:
        texts = utf8(pa.concat_arrays([rows.column(name) for name in names]))
    except ValueError as error:
        if len(names) > 1:
            return {name: text for one in names for name, text in _written(rows, [one]).items()}
        raise ValueError(f"column {names[0]!r}: {error}") from None
    count = len(rows)
    return {name: texts.slice(at * count, count) for at, name in enumerate(names)}


def _require_no_null(name: str, rows: pa.RecordBatch, option: str, why: str) -> None:
    if rows.column(name).null_count:
        raise null_key(name, rows, option, why)


def _require_exact(name: str, rows: pa.RecordBatch) -> None:
    """See that the server takes each score as it is."""
    column = rows.column(name)
    if types.is_integer(column.type):
        numbers = column.cast(pa.int64())
        exact = pc.and_(pc.less_equal(numbers, WHOLE), pc.greater_equal(numbers, -WHOLE))
    else:
        exact = pc.invert(pc.is_nan(column))
    _require_all(
        exact,
        name,
        rows,
        "a score is a double, which holds no such number",
        "cast it to double where that does not matter, or filter such rows out",
    )


def _require_finite(name: str, rows: pa.RecordBatch) -> None:
    """See that each number can be added; a null adds nothing."""
    column = rows.column(name)
    if types.is_floating(column.type):
        _require_all(
            pc.is_finite(column),
            name,
            rows,
            "a counter that once took it would stay it for ever",
            f"filter such rows out, or replace the value, for example nanvl({name}, 0)",
            said=", which can't be added",
        )


def _expiries(name: str, rows: pa.RecordBatch) -> pa.Array:
    """When each key expires, in milliseconds; null where `ttl` says so, or nothing does."""
    column = rows.column(name)
    at = types.is_timestamp(column.type)
    if types.is_integer(column.type):
        seconds = column.cast(pa.int64())
        capped = pc.min_element_wise(seconds, LATEST, skip_nulls=False)
        millis = pc.multiply(pc.max_element_wise(capped, -LATEST, skip_nulls=False), 1000)
    else:
        millis = pc.divide(column.cast(pa.int64()), 1000)
    good = pc.and_(pc.less_equal(millis, LATEST), pc.greater(millis, -LATEST if at else 0))
    _require_all(
        good,
        name,
        rows,
        "a key expires after a millisecond or more, and 31,000 years at most",
        "filter such rows out, or delete their keys by opColumn",
    )
    return millis


def _require_all(
    good: pa.Array, name: str, rows: pa.RecordBatch, why: str, todo: str, said: str = ""
) -> None:
    good = pc.fill_null(good, True)
    if pc.all(good).as_py() is False:  # of no rows it is null
        row = pc.index(good, False).as_py()
        raise BadRow(
            f"Column {name!r} holds {describe_value(rows.column(name)[row])}{said}; the row:"
            f" {describe_row(rows, row)}",
            why=why,
            todo=todo,
        )
