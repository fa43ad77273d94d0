r"""Chunks: the lines of a ``_bulk`` request, compressed.

What is not known when a task stages is a control character, which no JSON text has in it raw:
``\x01`` the version of the chunk, ``\x02`` the name of the chunk (begins an id made from it),
``\x03`` the script with its parameters.

A chunk is a header (count of operations, bytes of bad rows, bytes in all) and zstd of the bad rows
as JSON, then of the lines.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch import changes, keys
from pyspark_elasticsearch.documents import joined, member, values
from sparkonce.errors import BadRow

HEAD = struct.Struct("<IIQ")
VERSION, NAME, SCRIPT = b"\x01", b"\x02", b"\x03"
FENCED = ',"version":\x01,"version_type":"external_gte"'


class ChunkEncoder:
    """Encodes rows for one plan; see `pyspark_elasticsearch.connector` for its detail."""

    def __init__(self, detail: Mapping[str, Any]) -> None:
        self.detail = detail
        self.mode: str = detail["mode"]
        self.key: list[str] = detail["key"]
        self.columns: list[str] = detail["columns"]
        self._lines: Callable[[pa.RecordBatch, Any], Any] = {
            "append": self._created,
            "upsert": self._indexed,
            "update": self._guarded,
            "increment": self._guarded,
            "delete": self._deleted,
        }[self.mode]

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a key is null, or an operation unknown.
            ValueError: a value has no place in a document.
        """
        if not self.detail["aside"]:
            return packed(self.lines(rows), [])
        good, bad = self._sorted_out(rows)
        return packed(self.lines(good) if len(good) else pa.array([], pa.string()), bad)

    def lines(self, rows: pa.RecordBatch) -> Any:
        """One text for each row that does something: its action, and its document."""
        rows, deleted = changes.split(rows, self.detail["op"])
        if not self.key:
            return self._lines(rows, _row_numbers(rows))
        ids = keys.ids(rows, self.key)
        if self.mode == "increment":
            return self._guarded(*self._summed(rows, ids))
        # Of rows with versions of their own the server keeps the highest, wherever it comes.
        kept = None if self.detail["versionColumn"] else keys.last_of_each(ids)
        if kept is not None:
            rows, ids = rows.take(kept), ids.take(kept)
            deleted = deleted.take(kept) if deleted is not None else None
        if deleted is None:
            return self._lines(rows, ids)
        return pc.if_else(deleted, self._deleted(rows, ids), self._lines(rows, ids))

    def _sorted_out(self, rows: pa.RecordBatch) -> tuple[Any, list[tuple[str, str]]]:
        """The good rows, and of each bad one the reason and what it holds."""
        try:
            self.lines(rows)
            return rows, []
        except (BadRow, ValueError) as error:
            if len(rows) == 1:
                return rows.slice(0, 0), [(_reason(error), _as_json(rows))]
        middle = len(rows) // 2
        first, second = (
            self._sorted_out(half) for half in (rows.slice(0, middle), rows.slice(middle))
        )
        good = pa.Table.from_batches([first[0], second[0]]).combine_chunks().to_batches()
        return (good[0] if good else rows.slice(0, 0)), first[1] + second[1]

    # -- the lines of each write mode

    def _created(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = ['{"create":{"_id":"\x02', ids, *self._action(rows), "}}\n{"]
        return joined(*action, *self._members(rows), "}\n")

    def _indexed(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = ['{"index":{"_id":"', ids, *self._action(rows), *self._version(rows), "}}\n{"]
        return joined(*action, *self._members(rows), "}\n")

    def _deleted(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = self._action(rows)
        return joined('{"delete":{"_id":"', ids, *action, *self._version(rows), "}}\n")

    def _guarded(self, rows: pa.RecordBatch, ids: Any) -> Any:
        action = ['{"update":{"_id":"', ids, *self._action(rows), ',"retry_on_conflict":20}}\n']
        script = ['{"scripted_upsert":true,"script":{\x03"a":{', *self._changes(rows), "}}}"]
        fresh = ',"upsert":{', *self._key_members(rows), "}}\n"
        return joined(*action, *script, *fresh)

    # -- their parts

    def _action(self, rows: pa.RecordBatch) -> list[Any]:
        routing = self.detail["routing"]
        if not routing:
            return ['"']
        return ['","routing":', _text(rows, routing)]

    def _version(self, rows: pa.RecordBatch) -> list[Any]:
        if self.detail["versioning"] == "none":
            return []
        column = self.detail["versionColumn"]
        if not column:
            return [FENCED]
        return [',"version":', _versions(rows, column), ',"version_type":"external"']

    def _members(self, rows: pa.RecordBatch) -> list[Any]:
        return _listed([(name, values(rows, name)) for name in self.columns])

    def _key_members(self, rows: pa.RecordBatch) -> list[Any]:
        return _listed([(name, values(rows, name)) for name in self.key])

    def _changes(self, rows: pa.RecordBatch) -> list[Any]:
        """What the script gets; `nulls=keep` leaves nulls out, so the key, never null, is first."""
        if self.mode == "increment":
            return _listed([(name, values(rows, name)) for name in self.detail["added"]])
        if self.detail["nulls"] == "write":
            return self._members(rows)
        rest = [name for name in self.columns if name not in self.key]
        return [
            *self._key_members(rows),
            *(_unless_null(name, values(rows, name)) for name in rest),
        ]

    def _summed(self, rows: pa.RecordBatch, ids: Any) -> tuple[pa.RecordBatch, Any]:
        """One row for each id, with the sums of its numbers."""
        added = self.detail["added"]
        for name in added:
            _require_no_overflow(rows, name)
        places, sums = keys.sums_of_each(ids, [rows.column(name) for name in added])
        if places is None:
            return rows, ids
        kept = rows.take(places)
        columns = dict(zip(rows.schema.names, kept.columns, strict=True))
        columns.update(zip(added, sums, strict=True))
        return pa.record_batch(columns), ids.take(places)


class Chunk(NamedTuple):
    """A chunk, read.

    Attributes:
        operations: how many are in its lines.
        lines: of the request, with control characters for what was not known.
        bad: rows that have no lines: the reason, and what they hold as JSON.
    """

    operations: int
    lines: bytes
    bad: list[tuple[str, str]]

    def filled(self, name: str, version: int, script: bytes) -> bytes:
        """The lines as they are sent."""
        lines = self.lines
        for mark, text in (
            (VERSION, str(version).encode()),
            (NAME, name.encode()),
            (SCRIPT, script),
        ):
            lines = lines.replace(mark, text)
        return lines


def packed(texts: Any, bad: list[tuple[str, str]]) -> bytes:
    """The chunk with these lines."""
    letters = json.dumps(bad).encode() if bad else b""
    lines = _bytes(texts)
    body = b"".join([letters, lines]) if letters else lines
    size = len(letters) + len(lines)
    squeezed: bytes = pa.Codec("zstd", 1).compress(body, asbytes=True)
    return HEAD.pack(len(texts), len(letters), size) + squeezed


def unpacked(payload: bytes) -> Chunk:
    """Read a chunk.

    Raises:
        ValueError: it is none.
    """
    try:
        count, letters, size = HEAD.unpack_from(payload)
        raw = pa.Codec("zstd").decompress(
            memoryview(payload)[HEAD.size :], decompressed_size=size, asbytes=True
        )
    except (struct.error, pa.ArrowException) as error:
        raise ValueError(str(error)) from None
    bad = json.loads(raw[:letters]) if letters else []
    return Chunk(count, raw[letters:], [(why, row) for why, row in bad])


def operations(lines: bytes) -> Iterator[bytes]:
    """The lines of each operation: an action, and a document unless it deletes."""
    pieces = iter(lines.splitlines(keepends=True))
    for action in pieces:
        yield action if action.startswith(b'{"delete"') else action + next(pieces)


def chunk_name(attempt: str, seq: int) -> str:
    """What ids made from a chunk begin with: short, and the same for ever."""
    try:
        short = base64.urlsafe_b64encode(bytes.fromhex(attempt)).decode().rstrip("=")
    except ValueError:
        short = attempt
    return f"{short}.{seq}."


def _listed(members: list[tuple[str, Any]]) -> list[Any]:
    pieces: list[Any] = []
    for place, (name, column) in enumerate(members):
        pieces += [f"{',' if place else ''}{member(name)}", column]
    return pieces


def _unless_null(name: str, column: Any) -> Any:
    return pc.fill_null(pc.binary_join_element_wise(f",{member(name)}", column, ""), "")


def _text(rows: pa.RecordBatch, name: str) -> Any:
    """A column as JSON strings, of which none may be null."""
    quoted = values(rows, name)
    if quoted.null_count:
        raise ValueError(f"column {name!r} is null in a row, and option routing names it")
    if pa.types.is_string(rows.column(name).type):
        return quoted
    return joined('"', quoted, '"')


def _versions(rows: pa.RecordBatch, name: str) -> Any:
    column = rows.column(name)
    lowest = pc.min(column).as_py()
    if column.null_count or (lowest is not None and lowest < 0):
        raise ValueError(f"column {name!r}, of option versionColumn, is null or negative in a row")
    return column.cast(pa.string())


def _row_numbers(rows: pa.RecordBatch) -> Any:
    return keys.numbers(len(rows)).cast(pa.string())


def _require_no_overflow(rows: pa.RecordBatch, name: str) -> None:
    """Refuse what could wrap around unseen when it is summed up."""
    column = rows.column(name)
    if not pa.types.is_int64(column.type):
        return
    ends = pc.min_max(column)
    largest = max(abs(ends[end].as_py() or 0) for end in ("min", "max"))
    if largest * len(rows) >= 2**63 and len(rows) > 1:
        total = sum(abs(value) for value in column.to_pylist() if value is not None)
        if total >= 2**63:
            raise ValueError(f"column {name!r}: the sum of a chunk leaves the range of a long")


def _bytes(texts: Any) -> memoryview:
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return memoryview(b"")
    at = memoryview(offsets).cast("i")
    return memoryview(data)[at[texts.offset] : at[texts.offset + len(texts)]]


def _reason(error: BadRow | ValueError) -> str:
    return error.what if isinstance(error, BadRow) else str(error)


def _as_json(rows: pa.RecordBatch) -> str:
    return json.dumps({name: str(rows.column(name)[0]) for name in rows.schema.names})
