"""Chunks: the lines of a ``_bulk`` request, compressed.

A chunk is a header (count of operations; bytes of bad rows, and in all) and zstd of the bad rows as
JSON and of the lines.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, NamedTuple

import pyarrow as pa

from pyspark_elasticsearch.write.lines import NAME_MARK, SCRIPT_MARK, STAMP_MARK, VERSION_MARK
from sparkonce.values.letters import Letter
from sparkonce.values.rows import all_bytes

HEAD = struct.Struct("<IIQ")


class Chunk(NamedTuple):
    """A chunk, read.

    Attributes:
        operations: how many are in its lines.
        lines: of the request, with control characters for what was not known.
        bad: rows that have no lines.
    """

    operations: int
    lines: bytes
    bad: list[Letter]

    def weight(self, rows: int, at: int) -> int:
        """The rows that an operation stands for, of those of its chunk: those of a key are folded.

        Args:
            rows: that the chunk was made of.
            at: the place of the operation.
        """
        sent = rows - len(self.bad)
        return sent * (at + 1) // self.operations - sent * at // self.operations

    def filled(self, name: str, version: int, script: str, stamp: str = "") -> bytes:
        """The lines as they are sent."""
        lines = self.lines
        for mark, text in (
            (VERSION_MARK, str(version)),
            (NAME_MARK, name),
            (SCRIPT_MARK, script),
            (STAMP_MARK, stamp),
        ):
            lines = lines.replace(mark.encode(), text.encode())
        return lines


def packed(texts: Any, bad: list[Letter]) -> bytes:
    """The chunk with these lines."""
    letters = json.dumps(bad).encode() if bad else b""
    lines = all_bytes(texts)
    body = b"".join([letters, lines]) if letters else lines
    squeezed: bytes = pa.Codec("zstd", 1).compress(body, asbytes=True)
    return HEAD.pack(len(texts), len(letters), len(letters) + len(lines)) + squeezed


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
    return Chunk(count, raw[letters:], [Letter(*one) for one in bad])


def chunk_name(attempt: str, seq: int) -> str:
    """What ids made from a chunk begin with: short, and the same for ever."""
    token = attempt.rpartition("-")[2]
    try:
        short = base64.urlsafe_b64encode(bytes.fromhex(token)).decode().rstrip("=")
    except ValueError:
        short = attempt
    return f"{short}.{seq}."
