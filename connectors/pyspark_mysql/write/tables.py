"""Rows of one query for several tables: a chunk has a part for each of them.

A chunk is the sizes of its head, raw and compressed (8 bytes each, little-endian), the head
compressed by zstd, and the parts, each in the form of `chunks`. The head is JSON with the bad rows
that have no table, and for each part its plan and its size.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.target.names import TableNamer
from pyspark_mysql.write import chunks
from pyspark_mysql.write.chunks import ChunkEncoder, DecodedChunk
from pyspark_mysql.write.json_rows import OPERATION, JsonRows
from pyspark_mysql.write.plan import TableRows
from sparkonce import codec
from sparkonce.change import UNORDERED, Names, behind_emptying, effective
from sparkonce.exactly_once.bad_rows import reasons
from sparkonce.protocol import Reasons
from sparkonce.values import letters, spark_types
from sparkonce.values.letters import Letter
from sparkonce.values.rows import Unfit, naming_rows, separate_bad_rows

HEAD = struct.Struct("<QQ")
CODEC = chunks.CODEC

LookUp = Callable[[Names, str], TableRows]
"""Returns the detail for a table, by database and name, and by the name that rows have."""


class TablePart(NamedTuple):
    """The rows of a chunk for one table."""

    detail: TableRows
    chunk: DecodedChunk


class TablesChunk(NamedTuple):
    """A decoded chunk: bad rows without a table, and the rows of each table."""

    bad: list[Letter]
    parts: list[TablePart]
    partition: int | None


Payload = tuple[TableRows, bytes]
"""The plan of rows for one table, and their chunk."""


class TablesEncoder:
    """Encodes the rows of one task, which looks up each table once."""

    def __init__(self, detail: TableRows, namer: TableNamer, look_up: LookUp) -> None:
        self.detail, self.namer, self.look_up = detail, namer, look_up
        self._names: dict[str, TableEncoder] = {}
        self._encoders: dict[Names, TableEncoder] = {}
        # A row of the query has the columns of the key, unless it is a JSON object.
        self._key = () if detail.row else detail.key

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a row names no table, or can't be stored in it.
            OptionError: a table does not fit the rows.
        """
        if self.detail.aside:
            return self.split(rows)[0]
        found = list[Payload]()
        for table, those in self._by_table(effective(rows, self.detail.op)):
            left, emptied = table.behind_emptying(those)
            found += [*emptied, *naming_rows(table.encode, self._key)(left)]
        return _packed([], found)

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        key, found = self._key, list[Payload]()
        named, bad = separate_bad_rows(effective(rows, self.detail.op), self._named, key)
        whole = pa.Table.from_batches(named, rows.schema).combine_chunks()
        for batch in whole.to_batches():
            for table, those in self._by_table(batch):
                left, emptied = table.behind_emptying(those)
                good, more = separate_bad_rows(left, table.encode, key)
                found += [*emptied, *(one for some in good for one in some)]
                bad += more
        schema = spark_types.parse(self.detail.schema)
        about = [letters.of_row(one.reason, one.row, schema, key) for one in bad]
        return _packed(about, found), reasons(bad)

    def _named(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, each of which names a table."""
        self.namer.names(rows)
        return rows

    def _by_table(self, rows: pa.RecordBatch) -> Iterator[tuple[TableEncoder, pa.RecordBatch]]:
        """The rows of each table, in their order; a table may have several names."""
        coded = self.namer.names(rows).dictionary_encode()
        found: dict[Names, list[int]] = {}
        for at, name in enumerate(coded.dictionary.to_pylist()):
            found.setdefault(self._encoder(name).detail.table, []).append(at)
        for table, places in found.items():
            own = pc.is_in(coded.indices, value_set=pa.array(places, coded.indices.type))
            yield self._encoders[table], rows.filter(own)

    def _encoder(self, name: str) -> TableEncoder:
        """The encoder for the table of a name."""
        if name not in self._names:
            detail = self.look_up(self.namer.table(name), name)
            if detail.table not in self._encoders:
                self._encoders[detail.table] = TableEncoder(detail)
            self._names[name] = self._encoders[detail.table]
        return self._names[name]


class TableEncoder:
    """Encodes rows for one of several tables."""

    def __init__(self, detail: TableRows) -> None:
        self.detail = replace(detail, aside=False)
        self._json = JsonRows(self.detail) if detail.row else None
        self._encoders: dict[Names, ChunkEncoder] = {}

    def behind_emptying(self, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Payload]]:
        """The rows behind the last TRUNCATE, and what empties the table, if there is one."""
        refused = UNORDERED if self.detail.order else ""
        left, targets = behind_emptying(rows, self.detail.op, refused=refused)
        if not targets:
            return left, []
        nothing = left.slice(0, 0)
        if self._json is not None:
            ((_, nothing, _),) = self._json.typed(nothing)
        return left, [(self.detail, self._encoder(self.detail).encode(nothing, empties=True))]

    def encode(self, rows: pa.RecordBatch) -> list[Payload]:
        """The chunks of rows that do not empty the table. Raises as `ChunkEncoder`."""
        if self._json is None:
            return [(self.detail, self._encoder(self.detail).encode(rows))]
        found = []
        for detail, typed, first in self._json.typed(rows):
            try:
                found.append((detail, self._encoder(detail).encode(typed)))
            except Unfit as error:
                places = pc.add(error.places, pa.scalar(first, error.places.type))
                why = f"column {error.name!r} of it does not fit: {error.why}"
                raise Unfit(self._json.column, places, why, error.todo) from None
        return found

    def _encoder(self, detail: TableRows) -> ChunkEncoder:
        if detail.columns not in self._encoders:
            op = OPERATION if detail.row and detail.op else None
            self._encoders[detail.columns] = ChunkEncoder(detail, op)
        return self._encoders[detail.columns]


def _packed(bad: list[Letter], payloads: list[Payload]) -> bytes:
    parts = [[codec.dump(detail), len(payload)] for detail, payload in payloads]
    raw = json.dumps({"bad": bad, "parts": parts}).encode()
    head = CODEC.compress(raw, asbytes=True)
    return b"".join([HEAD.pack(len(raw), len(head)), head, *(one for _, one in payloads)])


def decode(payload: bytes, partition: int | None = None) -> TablesChunk:
    """Decode a chunk; `partition` is that of its rows, None if unknown."""
    whole, size = HEAD.unpack_from(payload)
    begin = HEAD.size + size
    head = CODEC.decompress(memoryview(payload)[HEAD.size : begin], whole)
    about = json.loads(bytes(head))
    ends = accumulate((size for _, size in about["parts"]), initial=begin)
    parts = [
        TablePart(
            codec.load(TableRows, stored),
            chunks.decode(payload[start:end])._replace(partition=partition),
        )
        for (stored, _), (start, end) in zip(about["parts"], pairwise(ends), strict=True)
    ]
    return TablesChunk([Letter(*one) for one in about["bad"]], parts, partition)
