"""The table of staged chunks. See sql/log.sql."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import placeholders
from sparkonce.errors import StoreError
from sparkonce.exactly_once import conflicts
from sparkonce.protocol import Chunk, Manifest, Part, Staged

ROOM = 4096
"""Bytes of a packet that are reserved for everything but the payload."""

DROPPED_BYTES, DROPPED_PIECES = 4 * 1024 * 1024, 500
"""The limits of one statement that discards pieces; a single piece may exceed them. A binary log
contains all bytes of a deleted row, in one transaction, whose size the server may limit."""

NAMED = 1000
"""The maximum number of attempts that a statement names."""


LogPiece = tuple[Any, ...]
"""Attempt, number of the chunk, number of the piece, and its bytes."""

ChunkError = Callable[[Manifest, str, int], StoreError]
"""Creates the error for a missing or incomplete chunk, by its attempt and number."""


class StagingLog:
    """Appends, reads and discards chunks."""

    def __init__(self, session: MySqlSession, table: str, ledger: str) -> None:
        # See `LedgerRecords`.
        self.session, self.table = session, table.replace("%", "%%")
        self.ledger = ledger.replace("%", "%%")

    def append(self, chunk: Chunk) -> None:
        """Write a chunk, in pieces if it exceeds a packet. A repeated call changes nothing."""
        # The client sends a byte as two hexadecimal digits.
        most = max(256, (self.session.live.packet - ROOM) // 2)
        starts = range(0, len(chunk.payload), most)
        if len(starts) == 1:
            self._write(chunk, 0, chunk.payload)
            return
        # In one transaction, so that the log has the whole chunk or nothing.
        with self.session.transaction():
            for piece, start in enumerate(starts):
                self._write(chunk, piece, chunk.payload[start : start + most])

    def payload(self, manifest: Manifest, part: Part, seq: int, error: ChunkError) -> bytes:
        """The bytes of a chunk of a decision, by its part and number."""
        found = self.session.run(
            f"SELECT payload FROM {self.table}"
            " WHERE sink = %s AND attempt = %s AND seq = %s ORDER BY piece",
            *(manifest.sink, part.attempt, seq),
        )
        payload = b"".join(payload for (payload,) in found)
        # The manifest has the sizes of the receipts: a chunk that a failover has shortened must not
        # count as a whole one.
        if len(payload) != part.sizes[seq]:
            raise error(manifest, part.attempt, seq)
        return payload

    def require_whole(self, manifest: Manifest) -> None:
        """Verify that the log has all chunks.

        Raises:
            StagedDataMissing: a chunk is missing, or has another size.
        """
        columns = "attempt, seq, MIN(row_count), SUM(bytes)"
        found = self._of(manifest.sink, manifest.attempts, columns, " GROUP BY attempt, seq")
        there = {(attempt, seq): (rows, int(size)) for attempt, seq, rows, size in found}
        for part, seq in manifest.chunks:
            if there.get((part.attempt, seq)) != (part.rows[seq], part.sizes[seq]):
                raise missing(manifest, part.attempt, seq)

    def attempts(self, sink: str) -> list[Staged]:
        """The staged attempts of a sink."""
        found = self.session.run(
            # The age is by the server's clock, because the clocks of other hosts may differ.
            "SELECT attempt, MIN(query_id), MIN(epoch), COUNT(DISTINCT seq),"
            " GREATEST(0, UNIX_TIMESTAMP(NOW(6)) - MAX(staged_at)), SUM(bytes)"
            f" FROM {self.table} WHERE sink = %s GROUP BY attempt",
            sink,
        )
        return [
            Staged(attempt, query, epoch, chunks, float(age), int(size))
            for attempt, query, epoch, chunks, age, size in found
        ]

    def sinks(self) -> list[str]:
        """The sinks that have staged chunks."""
        found = self.session.run(f"SELECT DISTINCT sink FROM {self.table} WHERE sink > %s", "")
        return [sink for (sink,) in found]

    def drop(self, sink: str, attempts: Collection[str], over: str | None = None) -> None:
        """Discard attempts in several statements; earlier ones stay effective if one fails."""
        # Between two statements a failover may restore a decision that holds these chunks. So each
        # statement checks that the sink's record still has the stamp, or is still missing.
        record = f"SELECT 1 FROM {self.ledger} WHERE name = %s"
        guard, args = "", list[str]()
        if over:
            guard, args = f" AND EXISTS ({record} AND stamp = %s)", [sink, over]
        elif over is not None:
            guard, args = f" AND NOT EXISTS ({record})", [sink]
        staged = self._of(sink, attempts, "attempt, seq, piece, bytes")
        for pieces in _portions(staged):
            which = " OR ".join(["(attempt = %s AND seq = %s AND piece = %s)"] * len(pieces))
            self.session.run(
                f"DELETE FROM {self.table} WHERE sink = %s AND ({which}){guard}",
                *(sink, *(value for piece in pieces for value in piece[:3]), *args),
            )

    def drop_few(self, manifest: Manifest) -> None:
        """Discard few chunks in this transaction; a separate one would wait for the disk."""
        sizes = [size for part in manifest.parts for size in part.sizes]
        if len(sizes) <= DROPPED_PIECES and sum(sizes) <= DROPPED_BYTES:
            self.drop(manifest.sink, manifest.attempts)

    def drop_chunk(self, sink: str, attempt: str, seq: int) -> None:
        """Discard one chunk."""
        self.session.run(
            f"DELETE FROM {self.table} WHERE sink = %s AND attempt = %s AND seq = %s",
            *(sink, attempt, seq),
        )

    def _of(
        self, sink: str, attempts: Collection[str], columns: str, tail: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """The staged rows of attempts, in several queries."""
        names = sorted(attempts)
        for start in range(0, len(names), NAMED):
            some = names[start : start + NAMED]
            where = f"sink = %s AND attempt IN ({placeholders(some)}){tail}"
            yield from self.session.run(
                f"SELECT {columns} FROM {self.table} WHERE {where}", sink, *some
            )

    def _write(self, chunk: Chunk, piece: int, payload: bytes) -> None:
        task = chunk.task
        self.session.run(
            f"INSERT INTO {self.table} (sink, attempt, seq, piece, query_id, epoch, row_count,"
            " bytes, staged_at, payload) VALUES (%s, %s, %s, %s, %s, %s, %s, %s,"
            f" UNIX_TIMESTAMP(NOW(6)), X'{payload.hex()}')"
            # Staging a chunk again renews its age, by which `gc` judges.
            " ON DUPLICATE KEY UPDATE staged_at = UNIX_TIMESTAMP(NOW(6))",
            *(task.sink, task.attempt, chunk.seq, piece, task.query_id, task.epoch),
            *(chunk.rows, len(payload)),
        )


def _portions(pieces: Iterator[LogPiece]) -> Iterator[list[LogPiece]]:
    """The pieces in portions that one statement may discard."""
    portion: list[LogPiece] = []
    size = 0
    for piece in pieces:
        if portion and (size + piece[-1] > DROPPED_BYTES or len(portion) == DROPPED_PIECES):
            yield portion
            portion, size = [], 0
        portion.append(piece)
        size += piece[-1]
    if portion:
        yield portion


missing = partial(conflicts.missing, why="someone discarded it, or the server lost staged chunks")
"""Creates the error for a chunk that disappeared before the decision of its epoch."""

lost = partial(
    conflicts.lost,
    why="the server lost data, or someone deleted from sparkonce_log",
    todo="restore the server from a backup and restart the query; or run `sparkonce recover`"
    " with --accept-loss, which gives up the rest of that epoch",
)
"""Creates the error for a missing chunk of a decided epoch."""
