"""The table of staged chunks. See sql/log.sql."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from pyspark_mysql.server.client import Session
from sparkonce.errors import StagedDataMissing, StoreError, StoreLostData
from sparkonce.exactly_once import conflicts
from sparkonce.protocol import Chunk, Manifest, Part, Staged

ROOM = 4096
"""Bytes of a packet that are left for all that is not payload."""

DROPPED_BYTES, DROPPED_PIECES = 4 * 1024 * 1024, 500
"""What one statement drops at most, or a single piece. A server with a binary log writes all bytes
of a deleted row there, in one transaction, whose size it may limit."""

NAMED = 1000
"""Attempts that a statement names."""


Gone = Callable[[Manifest, str, int], StoreError]


class Piece(NamedTuple):
    """A row of the table, without its payload."""

    attempt: str
    seq: int
    piece: int
    bytes: int


class Log:
    """Appends, reads and drops chunks."""

    def __init__(self, session: Session, table: str, ledger: str) -> None:
        # The client puts values in place of %s.
        self.session, self.table = session, table.replace("%", "%%")
        self.ledger = ledger.replace("%", "%%")

    def append(self, chunk: Chunk) -> None:
        """Write a chunk, in pieces if it is larger than a packet. Repeating it changes nothing."""
        # A byte is sent as two hexadecimal digits.
        most = max(256, (self.session.live.packet - ROOM) // 2)
        starts = range(0, len(chunk.payload), most)
        if len(starts) == 1:
            self._write(chunk, 0, chunk.payload)
            return
        with self.session.transaction():
            for piece, start in enumerate(starts):
                self._write(chunk, piece, chunk.payload[start : start + most])

    def payload(self, manifest: Manifest, part: Part, seq: int, gone: Gone) -> bytes:
        """The bytes of a chunk of a decision.

        Args:
            manifest: of the decision.
            part: that the chunk is of.
            seq: its number there.
            gone: makes the error for one that is not there, or not whole.
        """
        found = self.session.run(
            f"SELECT payload FROM {self.table}"
            " WHERE sink = %s AND attempt = %s AND seq = %s ORDER BY piece",
            *(manifest.sink, part.attempt, seq),
        )
        payload = b"".join(payload for (payload,) in found)
        if len(payload) != part.sizes[seq]:
            raise gone(manifest, part.attempt, seq)
        return payload

    def require_whole(self, manifest: Manifest) -> None:
        """See that all chunks are there.

        Raises:
            StagedDataMissing: one is not, or has another size.
        """
        there: dict[tuple[str, int], tuple[int, int]] = {}
        for named in _some(manifest.attempts):
            found = self.session.run(
                f"SELECT attempt, seq, MIN(row_count), SUM(bytes) FROM {self.table}"
                f" WHERE sink = %s AND attempt IN ({_places(named)}) GROUP BY attempt, seq",
                *(manifest.sink, *named),
            )
            there |= {(attempt, seq): (rows, int(size)) for attempt, seq, rows, size in found}
        for part, seq in manifest.chunks:
            if there.get((part.attempt, seq)) != (part.rows[seq], part.sizes[seq]):
                raise missing(manifest, part.attempt, seq)

    def attempts(self, sink: str) -> list[Staged]:
        """What is staged for a sink."""
        found = self.session.run(
            # The age is by the server's clock, since those of the hosts that stage may differ.
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
        """The sinks that have something staged."""
        # A statement without values goes as it is, so %% is made % here.
        found = self.session.run(f"SELECT DISTINCT sink FROM {self.table}" % ())
        return [sink for (sink,) in found]

    def drop(self, sink: str, attempts: Collection[str], over: str | None = None) -> None:
        """Drop attempts, some at a time: what is dropped stays so if a later statement fails.

        Args:
            sink: that staged them.
            attempts: to be dropped.
            over: see `Store.discard`; each statement looks.
        """
        # Between two statements a failover may bring back a decision that holds these chunks.
        guard, args = self._while(sink, over)
        for pieces in _portions(self._pieces(sink, attempts)):
            which = " OR ".join(["(attempt = %s AND seq = %s AND piece = %s)"] * len(pieces))
            self.session.run(
                f"DELETE FROM {self.table} WHERE sink = %s AND ({which}){guard}",
                *(sink, *(value for piece in pieces for value in piece[:3]), *args),
            )

    def drop_few(self, manifest: Manifest) -> None:
        """Drop what one statement drops; in a transaction of its own it would wait for the disk."""
        sizes = [size for part in manifest.parts for size in part.sizes]
        if len(sizes) <= DROPPED_PIECES and sum(sizes) <= DROPPED_BYTES:
            self.drop(manifest.sink, manifest.attempts)

    def _while(self, sink: str, over: str | None) -> tuple[str, list[str]]:
        """SQL, with its values, that holds while the sink's record has this stamp."""
        if over is None:
            return "", []
        record = f"SELECT 1 FROM {self.ledger} WHERE name = %s"
        if over:
            return f" AND EXISTS ({record} AND stamp = %s)", [sink, over]
        return f" AND NOT EXISTS ({record})", [sink]

    def drop_chunk(self, sink: str, attempt: str, seq: int) -> None:
        """Drop one chunk."""
        self.session.run(
            f"DELETE FROM {self.table} WHERE sink = %s AND attempt = %s AND seq = %s",
            *(sink, attempt, seq),
        )

    def _pieces(self, sink: str, attempts: Collection[str]) -> Iterator[Piece]:
        for named in _some(attempts):
            found = self.session.run(
                f"SELECT attempt, seq, piece, bytes FROM {self.table}"
                f" WHERE sink = %s AND attempt IN ({_places(named)})",
                *(sink, *named),
            )
            yield from map(Piece._make, found)

    def _write(self, chunk: Chunk, piece: int, payload: bytes) -> None:
        task = chunk.task
        self.session.run(
            f"INSERT INTO {self.table} (sink, attempt, seq, piece, query_id, epoch, row_count,"
            " bytes, staged_at, payload) VALUES (%s, %s, %s, %s, %s, %s, %s, %s,"
            f" UNIX_TIMESTAMP(NOW(6)), X'{payload.hex()}')"
            # What is staged once more is as young as that: `gc` goes by the age.
            " ON DUPLICATE KEY UPDATE staged_at = UNIX_TIMESTAMP(NOW(6))",
            *(task.sink, task.attempt, chunk.seq, piece, task.query_id, task.epoch),
            *(chunk.rows, len(payload)),
        )


def _places(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _some(attempts: Collection[str]) -> Iterator[list[str]]:
    names = sorted(attempts)
    for start in range(0, len(names), NAMED):
        yield names[start : start + NAMED]


def _portions(pieces: Iterator[Piece]) -> Iterator[list[Piece]]:
    """The same pieces, as many at a time as one statement may drop."""
    portion: list[Piece] = []
    size = 0
    for piece in pieces:
        if portion and (size + piece.bytes > DROPPED_BYTES or len(portion) == DROPPED_PIECES):
            yield portion
            portion, size = [], 0
        portion.append(piece)
        size += piece.bytes
    if portion:
        yield portion


def missing(manifest: Manifest, attempt: str, seq: int) -> StagedDataMissing:
    """A chunk is gone before its epoch was decided."""
    why = "someone dropped it, or the server lost what was staged"
    return conflicts.missing(manifest, attempt, seq, why)


def lost(manifest: Manifest, attempt: str, seq: int) -> StoreLostData:
    """A chunk is gone of an epoch that is decided."""
    return conflicts.lost(
        manifest,
        attempt,
        seq,
        why="the server lost data, or someone deleted from sparkonce_log",
        todo="restore the server from a backup and restart the query; or run `sparkonce recover`"
        " with --accept-loss, which leaves the rest of that epoch out",
    )
