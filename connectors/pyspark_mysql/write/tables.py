"""Rows of one query for several tables: a chunk has a part for each of them.

A chunk is the sizes of its head, raw and compressed (8 bytes each, little-endian), the head
compressed by zstd, and the parts, each in the form of `chunks`. The head is JSON with the bad rows
that have no table, and for each part its plan and its size.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.target.names import TableNamer
from pyspark_mysql.write import chunks
from pyspark_mysql.write.chunks import ChunkEncoder, DecodedChunk
from pyspark_mysql.write.plan import TableRows
from sparkonce import codec
from sparkonce.change import Names, effective
from sparkonce.exactly_once.bad_rows import Count, reasons
from sparkonce.protocol import Reasons
from sparkonce.values import letters, spark_types
from sparkonce.values.letters import Letter
from sparkonce.values.rows import naming_rows, separate_bad_rows

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


class TablesEncoder:
    """Encodes the rows of one task, which looks up each table once."""

    def __init__(self, detail: TableRows, namer: TableNamer, look_up: LookUp) -> None:
        self.detail, self.namer, self.look_up = detail, namer, look_up
        self._encoders: dict[str, ChunkEncoder] = {}

    def __call__(self, rows: pa.RecordBatch) -> bytes:
        """The chunk of these rows.

        Raises:
            BadRow: a row names no table, or can't be stored in it.
            OptionError: a table does not fit the rows.
        """
        if self.detail.aside:
            return self.split(rows)[0]
        parts = self._by_table(effective(rows, self.detail.op))
        return _packed(
            [], [(one, naming_rows(one, self.detail.key)(those)) for one, those in parts]
        )

    def split(self, rows: pa.RecordBatch) -> tuple[bytes, Reasons]:
        """See `BadRowSplitter.split`."""
        detail, counted = self.detail, Count()
        named, bad = separate_bad_rows(
            effective(rows, detail.op), lambda some: (some, self.namer.names(some)), detail.key
        )
        counted.merge(reasons(bad))
        schema = spark_types.parse(detail.schema)
        about = [letters.of_row(one.reason, one.row, schema, detail.key) for one in bad]
        whole = pa.Table.from_batches([some for some, _ in named], rows.schema).combine_chunks()
        found = []
        for batch in whole.to_batches():
            for encoder, those in self._by_table(batch):
                payload, kinds = encoder.split(those)
                counted.merge(kinds)
                found.append((encoder, payload))
        return _packed(about, found), counted.kinds

    def _by_table(self, rows: pa.RecordBatch) -> Iterator[tuple[ChunkEncoder, pa.RecordBatch]]:
        """The rows of each table, in their order."""
        coded = self.namer.names(rows).dictionary_encode()
        for at, name in enumerate(coded.dictionary.to_pylist()):
            if name not in self._encoders:
                self._encoders[name] = ChunkEncoder(self.look_up(self.namer.table(name), name))
            yield self._encoders[name], rows.filter(pc.equal(coded.indices, at))


def _packed(bad: list[Letter], parts: list[tuple[ChunkEncoder, bytes]]) -> bytes:
    about = {
        "bad": bad,
        "parts": [[codec.dump(one.detail), len(payload)] for one, payload in parts],
    }
    raw = json.dumps(about).encode()
    head = CODEC.compress(raw, asbytes=True)
    return b"".join([HEAD.pack(len(raw), len(head)), head, *(payload for _, payload in parts)])


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
    return TablesChunk([Letter(*one) for one in about["bad"]], parts)
