"""The bytes of a chunk: columnar MessagePack, in segments for a cluster; letters of refused rows.

A chunk is ``[keys, has_nulls, column, ..., flags, expiries, letters]``. Keys and columns are arrays
of texts or nils; `has_nulls` has a boolean for each column. Flags (of rows that delete), expiries
and letters are present if the plan or the rows have them; see `PlanDetail.places`. A letter is an
array of reason, key, row, and JSON of its base64.

Numbers are decimal texts, because Lua loses integers above 2^53. The encoder creates no Python
object for a row: Arrow joins headers and values.

A chunk for a cluster begins with a line of JSON that describes the segments after it. Each segment
has the lanes of one range of slots. A node receives whole segments if it serves any of their slots,
and applies only its own lanes.
"""

from __future__ import annotations

import json
import struct
from array import array
from binascii import crc_hqx
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyspark_redis.server.nodes import SLOTS, slot_of, tags
from pyspark_redis.target.keys import begins, make_keys, require_free, utf8
from pyspark_redis.write.detail import JOINED, PlanDetail
from sparkonce.change import Increment, behind_emptying, split_operations
from sparkonce.errors import BadRow
from sparkonce.exactly_once.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.values import from_json, letters
from sparkonce.values.json_text import all_bytes
from sparkonce.values.letters import Letter
from sparkonce.values.rows import describe_row, describe_value, null_key, separate_bad_rows

SEGMENTS = 24  # segments of a chunk: 24 divides evenly among 1, 2, 3, 4, 6, 8 or 12 primaries

LONGEST = 64 * 1024 * 1024
"""The most bytes of a row that a dead letter keeps, if the server accepts them."""

TRUE, FALSE, NIL = b"\xc3", b"\xc2", b"\xc0"
"""Codes of MessagePack, https://github.com/msgpack/msgpack/blob/master/spec.md."""

LetterTexts = tuple[str, str, str, str]  # reason, key, row and base64 of a letter


def pack_rows(texts: Sequence[pa.BinaryArray], aside: Sequence[LetterTexts] = ()) -> bytes:
    """The MessagePack of keys and columns, and of letters for rows that a task rejected."""
    row_keys, *columns = texts
    # Lua has a faster path for a column without nulls.
    nulls = [TRUE if column.null_count else FALSE for column in columns]
    packed = _pack_texts([row_keys, *columns])
    parts = [packed[0], _pack_array(nulls), *packed[1:]]
    if aside:
        each = (pa.array(one, pa.string()).cast(pa.binary()) for one in aside)
        parts.append(_pack_array([_pack_texts([one])[0] for one in each]))
    return _pack_array(parts)


def _pack_array(packed: Sequence[bytes]) -> bytes:
    return b"".join([_array_header(len(packed)), *packed])


def _pack_texts(columns: Sequence[pa.BinaryArray]) -> list[bytes]:
    """Columns of equal length, each packed as an array; a null becomes nil."""
    # All columns together: with hundreds of columns, a kernel call costs more than the values.
    whole = pa.concat_arrays(columns)
    # One header for each length, not for each value.
    lengths = pc.dictionary_encode(pc.binary_length(whole))
    known = [_text_header(length) for length in lengths.dictionary.to_pylist()]
    headers = pa.array([*known, NIL], pa.binary()).take(pc.fill_null(lengths.indices, len(known)))
    values = pc.fill_null(whole, b"") if whole.null_count else whole
    joined = pc.binary_join_element_wise(headers, values, pa.scalar(b"", pa.binary()))
    rows = len(columns[0])
    header = _array_header(rows)
    return [
        b"".join((header, all_bytes(joined.slice(at * rows, rows)))) for at in range(len(columns))
    ]


def _array_header(length: int) -> bytes:
    if length < 16:
        return bytes([0x90 | length])
    return struct.pack(">BH", 0xDC, length) if length < 65536 else struct.pack(">BI", 0xDD, length)


def _text_header(length: int) -> bytes:
    if length < 32:
        return bytes([0xA0 | length])
    if length < 256:
        return bytes([0xD9, length])
    return struct.pack(">BH", 0xDA, length) if length < 65536 else struct.pack(">BI", 0xDB, length)


@dataclass(frozen=True)
class Segment:
    """Lanes of adjacent slots; a lane is one slot's share of the rows."""

    slots: array[int]  # the slots of the lanes, in ascending order
    payload: bytes  # MessagePack of a chunk, the tags of its lanes, and the last row of each


def segments_of(texts: Sequence[pa.BinaryArray]) -> Iterator[Segment]:
    """Keys and columns by lane; each lane keeps the order of its rows."""
    slots = _slots_of(texts[0])
    order = pc.sort_indices(slots)  # a stable sort
    slots, texts = slots.take(order), [column.take(order) for column in texts]
    in_order = slots.to_pylist()
    borders = [bisect_left(in_order, SLOTS * at // SEGMENTS) for at in range(SEGMENTS + 1)]
    for first, end in pairwise(borders):
        if first < end:
            rows = [column.slice(first, end - first) for column in texts]
            yield _segment(slots.slice(first, end - first), pack_rows(rows))


def _slots_of(keys: pa.BinaryArray) -> pa.Array:
    # Python's CRC16 is as fast as Arrow kernels: 100 ns a row.
    texts = keys.to_pylist()
    if pc.any(pc.match_substring(keys, "{")).as_py():
        return pa.array(map(slot_of, texts), pa.uint16())
    return pa.array([crc_hqx(text, 0) % SLOTS for text in texts], pa.uint16())


def _segment(slots: pa.Array, chunk: bytes) -> Segment:
    runs = pc.run_end_encode(slots)
    ends = runs.run_ends.cast(pa.string()).cast(pa.binary())
    payload = _pack_array([chunk, *_pack_texts([_all_tags().take(runs.values), ends])])
    return Segment(array("H", runs.values.to_pylist()), payload)


@lru_cache(1)
def _all_tags() -> pa.BinaryArray:
    return pa.array(tags(), pa.string()).cast(pa.binary())


def join_segments(segments: Sequence[Segment], aside: Sequence[LetterTexts]) -> bytes:
    """A chunk as staged for a cluster: its rows, and letters of the rejected rows."""
    sizes = [[len(one.slots), len(one.payload)] for one in segments]
    head = json.dumps({"segments": sizes, "letters": aside}).encode()
    return b"".join([head, b"\n", *(one.slots.tobytes() + one.payload for one in segments)])


def split_segments(chunk: bytes) -> tuple[list[Segment], list[LetterTexts]]:
    """The arguments of `join_segments`."""
    head, _, body = chunk.partition(b"\n")
    about, at, found = json.loads(head), 0, []
    for lanes, size in about["segments"]:
        middle = at + 2 * lanes
        found.append(Segment(array("H", body[at:middle]), body[middle : middle + size]))
        at = middle + size
    return found, [(reason, key, row, armored) for reason, key, row, armored in about["letters"]]


def letter_texts(letter: Letter, longest: Callable[[int], int] = lambda _: LONGEST) -> LetterTexts:
    """The fields of a dead letter; `longest` maps the bytes of a row to the most bytes kept."""
    reason, row, key, armored = letter
    size = len(row.encode())
    most = longest(size)
    if size > most:
        row, key = (text.encode()[:most].decode(errors="ignore") for text in (row, key))
        reason = f"larger than the limit of a dead letter, and cut: {reason}"
    return reason, key, row, json.dumps(armored)


def refused_letter(reason: str, texts: Sequence[bytes | None], detail: PlanDetail) -> Letter:
    """The letter of a row that the server refused, from the row's texts in a chunk."""
    named = dict(zip(detail.columns, texts, strict=True))
    joined = named.pop(JOINED, None)
    schema = detail.arrow
    trees = {name: _tree(text, schema.field(name).type) for name, text in named.items()}
    if joined is not None:
        trees = {**from_json.parse_tree(joined), **trees}
    return letters.of_trees(reason, trees, schema, detail.key.columns)


def _tree(text: bytes | None, kind: pa.DataType) -> Any:
    if text is None or pa.types.is_binary(kind):
        return text
    return from_json.parse_tree(text) if pa.types.is_nested(kind) else text.decode()


WHOLE = 2**53  # a double, such as a score, holds every whole number up to this one
ENTRY_ID = r"^\d{1,20}(-\d{1,20})?$"
LATEST = 10**15  # the latest expiry, in milliseconds, that every server accepts


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
        """The chunk of these rows; BadRow if a row is bad, ValueError if a value has no text."""
        return self._packed(self._texts(rows), [])

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        fit, bad = separate_bad_rows(rows, self._texts)
        named, schema = self.key.columns, self.detail.arrow
        aside = [letters.of_row(one.reason, one.row, schema, named) for one in bad]
        texts = [pa.concat_arrays(parts) for parts in zip(*fit, strict=True)]
        return self._packed(texts or self._texts(rows.slice(0, 0)), aside), reasons(bad)

    def _packed(self, texts: Sequence[pa.BinaryArray], aside: Sequence[Letter]) -> bytes:
        letters = [letter_texts(one) for one in aside]
        if self.detail.lanes:
            return join_segments(list(segments_of(texts)), letters)
        return pack_rows(texts, letters)

    def _texts(self, rows: pa.RecordBatch) -> list[pa.BinaryArray]:
        """Keys and columns of a chunk, from the rows that change the target."""
        behind_emptying(rows, self.controls.op, refused="Redis has no list of the keys of a query")
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
        if self.controls.entry:
            texts.append(_entry_ids(self.controls.entry, rows))
        return texts

    def _columns(self, rows: pa.RecordBatch) -> dict[str, pa.BinaryArray]:
        """The text of each column of a chunk; columns of one type are encoded together."""
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
        """Raise BadRow if the server would reject or change a value."""
        if order := self.controls.order:
            _require_no_null(
                order, rows, "sequenceColumn", "a row without it has no place in the order"
            )
        if score := self.controls.score:
            if self.adds:
                _require_finite(score, rows)  # a null adds nothing
            else:
                scored = rows if deleted is None else rows.filter(pc.invert(deleted))
                why = "the score alone orders the members"
                _require_no_null(score, scored, "scoreColumn", why)
            _require_exact(score, rows)
        for name in self.added:
            _require_finite(name, rows)
        for name in self.detail.fields if self.detail.collects and not self.detail.joined else ():
            _require_no_null(name, rows, self.detail.model, "a null is not an element")


def _written(rows: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.BinaryArray]:
    """The texts of columns of one type; a ValueError names the column whose value has no text."""
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
    """Raise BadRow if a score is not exact as a double."""
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
        "a score is a double, which cannot hold this number exactly",
        "cast the column to double if rounding does not matter, or filter these rows out",
    )


def _require_finite(name: str, rows: pa.RecordBatch) -> None:
    """Raise BadRow if a number cannot be added; a null adds nothing."""
    column = rows.column(name)
    if types.is_floating(column.type):
        _require_all(
            pc.is_finite(column),
            name,
            rows,
            "the counter would keep that value forever",
            f"filter these rows out, or replace the value, for example nanvl({name}, 0)",
            said=", which can't be added",
        )


def _expiries(name: str, rows: pa.RecordBatch) -> pa.Array:
    """When each key expires, in milliseconds; null where option ``ttl`` applies, or none."""
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
        "filter these rows out, or delete their keys by opColumn",
    )
    return millis


def _entry_ids(name: str, rows: pa.RecordBatch) -> pa.BinaryArray:
    """The ids of entries; the server also refuses numbers of more than 64 bits."""
    _require_no_null(name, rows, "idColumn", "an entry without an id has no place in its stream")
    texts = rows.column(name).cast(pa.string())
    _require_all(
        pc.match_substring_regex(texts, ENTRY_ID),
        name,
        rows,
        "an id is two numbers of at most 64 bits, such as 1526919030474-55",
        "filter these rows out",
    )
    return utf8(texts)


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
