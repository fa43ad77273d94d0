"""The table of staged chunks. See sql/log.sql."""

from __future__ import annotations

from collections.abc import Collection

from pyspark_mysql.client import Session
from sparkonce.protocol import Chunk, Staged

ROOM = 4096
"""Bytes of a packet that are left for all that is not payload."""


class Log:
    """Appends, reads and drops chunks.

    Args:
        session: of the server.
        table: its quoted name.
    """

    def __init__(self, session: Session, table: str) -> None:
        # The client puts values in place of %s.
        self.session, self.table = session, table.replace("%", "%%")

    def append(self, chunk: Chunk) -> None:
        """Write a chunk, in pieces if it is larger than a packet. Repeating it changes nothing."""
        most = max(256, (self.session.live.packet - ROOM) // 2)
        starts = range(0, len(chunk.payload), most)
        if len(starts) == 1:
            self._write(chunk, 0, chunk.payload)
            return
        with self.session.transaction():
            for piece, start in enumerate(starts):
                self._write(chunk, piece, chunk.payload[start : start + most])

    def payload(self, sink: str, attempt: str, seq: int) -> bytes:
        """A chunk; empty if it is not there."""
        found = self.session.run(
            f"SELECT payload FROM {self.table}"
            " WHERE sink = %s AND attempt = %s AND seq = %s ORDER BY piece",
            *(sink, attempt, seq),
        )
        return b"".join(payload for (payload,) in found)

    def shapes(
        self, sink: str, attempts: Collection[str]
    ) -> dict[tuple[str, int], tuple[int, int]]:
        """Rows and bytes of each chunk of these attempts, by attempt and seq."""
        if not attempts:
            return {}
        found = self.session.run(
            f"SELECT attempt, seq, MIN(row_count), SUM(bytes) FROM {self.table}"
            f" WHERE sink = %s AND attempt IN ({_places(attempts)}) GROUP BY attempt, seq",
            *(sink, *attempts),
        )
        return {(attempt, seq): (rows, int(size)) for attempt, seq, rows, size in found}

    def attempts(self, sink: str) -> list[Staged]:
        """What is staged for a sink."""
        found = self.session.run(
            "SELECT attempt, MIN(query_id), MIN(epoch), COUNT(DISTINCT seq),"
            " GREATEST(0, UNIX_TIMESTAMP(NOW(6)) - MAX(staged_at))"
            f" FROM {self.table} WHERE sink = %s GROUP BY attempt",
            sink,
        )
        return [
            Staged(attempt, query, epoch, chunks, float(age))
            for attempt, query, epoch, chunks, age in found
        ]

    def sinks(self) -> list[str]:
        """The sinks that have something staged."""
        found = self.session.run(f"SELECT DISTINCT sink FROM {self.table}" % ())
        return [sink for (sink,) in found]

    def drop(self, sink: str, attempts: Collection[str]) -> None:
        """Drop attempts."""
        if attempts:
            self.session.run(
                f"DELETE FROM {self.table} WHERE sink = %s AND attempt IN ({_places(attempts)})",
                *(sink, *attempts),
            )

    def drop_chunk(self, sink: str, attempt: str, seq: int) -> None:
        """Drop one chunk."""
        self.session.run(
            f"DELETE FROM {self.table} WHERE sink = %s AND attempt = %s AND seq = %s",
            *(sink, attempt, seq),
        )

    def _write(self, chunk: Chunk, piece: int, payload: bytes) -> None:
        task = chunk.task
        self.session.run(
            f"INSERT INTO {self.table} (sink, attempt, seq, piece, query_id, epoch, row_count,"
            " bytes, staged_at, payload) VALUES (%s, %s, %s, %s, %s, %s, %s, %s,"
            f" UNIX_TIMESTAMP(NOW(6)), X'{payload.hex()}')"
            " ON DUPLICATE KEY UPDATE staged_at = UNIX_TIMESTAMP(NOW(6))",
            *(task.sink, task.attempt, chunk.seq, piece, task.query_id, task.epoch),
            *(chunk.rows, len(payload)),
        )


def _places(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))
