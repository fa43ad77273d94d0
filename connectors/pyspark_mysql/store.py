"""The protocol's steps in MySQL and MariaDB; each one is one transaction, see sql/*.sql."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark_mysql import preflight
from pyspark_mysql.apply import Applier, RefusedRow
from pyspark_mysql.chunks import decode
from pyspark_mysql.client import Live, Session
from pyspark_mysql.failures import translated
from pyspark_mysql.tables import OwnTables
from sparkonce.errors import (
    BadRow,
    RowRefused,
    SparkonceError,
    StagedDataMissing,
    StoreLostData,
)
from sparkonce.protocol import Advance, Chunk, Manifest, Part, Plan, Record, Staged, ignore

PACKET_ROOM = 4096
"""Bytes of a packet that are left for all that is not payload."""


class MySqlStore:
    """See `sparkonce.protocol.Store`.

    Args:
        session: of the server.
        tables: ledger and log.
        plan: what the sink does; None where only the ledgers are looked after.
        create_target: whether a target that is not there may be made.
        whole: whether an epoch takes effect in one transaction, or in one for each chunk.
    """

    def __init__(
        self,
        session: Session,
        tables: OwnTables,
        plan: Plan | None,
        *,
        create_target: bool = False,
        whole: bool = True,
    ) -> None:
        self.session, self.tables, self.plan = session, tables, plan
        self.create_target, self.whole = create_target, whole
        self._checked: Live | None = None

    def check(self) -> None:
        """Refuse server and target, unless this connection has seen that they are fit."""
        with translated("connecting"):
            live = self.session.live
        if live is self._checked:
            return
        preflight.require_fit_server(self.session)
        self.tables.ensure()
        if self.plan is not None:
            detail = self.plan.detail
            preflight.require_fit_target(self.session, detail, create=self.create_target)
        self._checked = live

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        with translated("reading the ledger"):
            self.tables.ensure()
            return self._record(name)

    def swap(self, name: str, new: Record) -> Record:
        """See `Store.swap`."""
        with translated("writing the ledger"):
            self.tables.ensure()
            with self.session.transaction():
                if not new.replaces:
                    self._insert(name, new)
                held = self._record(name, lock=True)
                if held.stamp == new.replaces and held.revision:
                    self._update(name, new)
                    return new
                return held

    def names(self) -> list[str]:
        """See `Store.names`."""
        with translated("listing the ledgers"):
            if not self.tables.there():
                return []
            found = self.session.run(
                f"SELECT name FROM {self.tables.ledger}"
                f" UNION SELECT DISTINCT sink FROM {self.tables.log}"
            )
        return sorted(name for (name,) in found)

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`. A payload that is larger than a packet is staged in pieces."""
        with translated("staging rows"):
            self.tables.ensure()
            most = max(256, (self.session.live.packet - PACKET_ROOM) // 2)
            pieces = range(0, len(chunk.payload), most)
            if len(pieces) == 1:
                self._stage(chunk, 0, chunk.payload)
                return
            with self.session.transaction():
                for piece, start in enumerate(pieces):
                    self._stage(chunk, piece, chunk.payload[start : start + most])

    def staged(self, sink: str) -> list[Staged]:
        """See `Store.staged`."""
        with translated("listing staged rows"):
            self.tables.ensure()
            found = self.session.run(
                "SELECT attempt, MIN(query_id), MIN(epoch), COUNT(DISTINCT seq),"
                " GREATEST(0, UNIX_TIMESTAMP(NOW(6)) - MAX(staged_at))"
                f" FROM {self.tables.log} WHERE sink = %s GROUP BY attempt",
                sink,
            )
        return [
            Staged(attempt, query, epoch, chunks, float(age))
            for attempt, query, epoch, chunks, age in found
        ]

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`."""
        with translated("checking staged rows"):
            self.tables.ensure()
            self._require_whole(manifest)
        return manifest

    def publish(self, decided: Record, finished: Record, manifest: Manifest) -> Record | None:
        """See `Store.publish`. The whole commit is one transaction."""
        if not self.whole:
            return None
        with translated(f"publishing epoch {manifest.epoch}"):
            self.tables.ensure()
            with self.session.transaction():
                held = self._record(manifest.sink, lock=True)
                if not held.revision or held.stamp != decided.replaces:
                    return held
                self._require_whole(manifest)
                applier = Applier(self.session, manifest.detail)
                for part, seq in manifest.chunks:
                    payload = self._payload(manifest.sink, part.attempt, seq)
                    if len(payload) != part.sizes[seq]:
                        raise _missing(manifest, part.attempt, seq)
                    self._apply(applier, payload, manifest, part, seq)
                self._discard(manifest.sink, sorted(manifest.attempts))
                self._update(manifest.sink, finished)
        return finished

    def apply(self, manifest: Manifest, advance: Advance = ignore) -> None:
        """See `Store.apply`. One transaction a chunk, with the progress in the ledger's row."""
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            with translated(f"applying epoch {manifest.epoch}"):
                self.tables.ensure()
                with self.session.transaction():
                    done = self._progress(manifest)
                    if done is None:
                        return
                    if done > ordinal:
                        continue
                    self._apply_decided(manifest, part, seq)
                    self._move(manifest, ordinal + 1)
            advance(part.rows[seq])

    def discard(self, sink: str, attempts: Sequence[str]) -> None:
        """See `Store.discard`."""
        if attempts:
            with translated("dropping staged rows"):
                self.tables.ensure()
                self._discard(sink, attempts)

    # -- the ledger

    def _record(self, name: str, *, lock: bool = False) -> Record:
        found = self.session.run(
            f"SELECT revision, stamp, token, body FROM {self.tables.ledger} WHERE name = %s"
            + (" FOR UPDATE" if lock else ""),
            name,
        )
        return Record(*found[0]) if found else Record()

    def _insert(self, name: str, new: Record) -> None:
        self.session.run(
            f"INSERT INTO {self.tables.ledger} (name, revision, stamp, token, body)"
            " VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE revision = revision",
            name,
            *_values(new),
        )

    def _update(self, name: str, new: Record) -> None:
        """Write a locked record. Another token has no progress yet (assigned left to right)."""
        self.session.run(
            f"UPDATE {self.tables.ledger} SET applied = IF(token = %s, applied, 0),"
            " revision = %s, stamp = %s, token = %s, body = %s WHERE name = %s",
            new.token,
            *_values(new),
            name,
        )

    def _progress(self, manifest: Manifest) -> int | None:
        """Chunks of this decision that took effect; None if it is no longer the ledger's."""
        found = self.session.run(
            f"SELECT token, applied FROM {self.tables.ledger} WHERE name = %s FOR UPDATE",
            manifest.sink,
        )
        if not found or found[0][0] != manifest.token:
            return None
        return int(found[0][1])

    def _move(self, manifest: Manifest, applied: int) -> None:
        self.session.run(
            f"UPDATE {self.tables.ledger} SET applied = %s WHERE name = %s",
            applied,
            manifest.sink,
        )

    # -- the log

    def _stage(self, chunk: Chunk, piece: int, payload: bytes) -> None:
        task = chunk.task
        self.session.run(
            f"INSERT INTO {self.tables.log} (sink, attempt, seq, piece, query_id, epoch, row_count,"
            " bytes, staged_at, payload) VALUES (%s, %s, %s, %s, %s, %s, %s, %s,"
            f" UNIX_TIMESTAMP(NOW(6)), X'{payload.hex()}')"
            " ON DUPLICATE KEY UPDATE staged_at = UNIX_TIMESTAMP(NOW(6))",
            *(task.sink, task.attempt, chunk.seq, piece, task.query_id, task.epoch),
            *(chunk.rows, len(payload)),
        )

    def _payload(self, sink: str, attempt: str, seq: int) -> bytes:
        found = self.session.run(
            f"SELECT payload FROM {self.tables.log}"
            " WHERE sink = %s AND attempt = %s AND seq = %s ORDER BY piece",
            *(sink, attempt, seq),
        )
        return b"".join(payload for (payload,) in found)

    def _require_whole(self, manifest: Manifest) -> None:
        attempts = sorted(manifest.attempts)
        if not attempts:
            return
        found = self.session.run(
            f"SELECT attempt, seq, MIN(row_count), SUM(bytes) FROM {self.tables.log}"
            f" WHERE sink = %s AND attempt IN ({_places(attempts)}) GROUP BY attempt, seq",
            *(manifest.sink, *attempts),
        )
        there = {(attempt, seq): (rows, int(size)) for attempt, seq, rows, size in found}
        for part, seq in manifest.chunks:
            if there.get((part.attempt, seq)) != (part.rows[seq], part.sizes[seq]):
                raise _missing(manifest, part.attempt, seq)

    def _discard(self, sink: str, attempts: Sequence[str]) -> None:
        if attempts:
            self.session.run(
                f"DELETE FROM {self.tables.log}"
                f" WHERE sink = %s AND attempt IN ({_places(attempts)})",
                *(sink, *attempts),
            )

    # -- rows

    def _apply(
        self, applier: Applier, payload: bytes, manifest: Manifest, part: Part, seq: int
    ) -> None:
        try:
            applier.apply(decode(payload, part.rows[seq]))
        except RefusedRow as error:
            raise BadRow(
                f"{error.what}; nothing of epoch {manifest.epoch} took effect",
                error.why,
                error.todo,
            ) from None

    def _apply_decided(self, manifest: Manifest, part: Part, seq: int) -> None:
        payload = self._payload(manifest.sink, part.attempt, seq)
        if len(payload) != part.sizes[seq]:
            raise _lost(manifest, part.attempt, seq)
        try:
            rows = decode(payload, part.rows[seq])
            Applier(self.session, manifest.detail).apply(rows)
        except RefusedRow as error:
            raise RowRefused(
                f"{error.what}. Epoch {manifest.epoch} stays decided; its chunks before this one"
                " have taken effect",
                error.why,
                f"{error.todo}; mend what the server finds wrong and restart the query",
            ) from None
        self.session.run(
            f"DELETE FROM {self.tables.log} WHERE sink = %s AND attempt = %s AND seq = %s",
            *(manifest.sink, part.attempt, seq),
        )


def _values(record: Record) -> tuple[Any, ...]:
    return record.revision, record.stamp, record.token, record.body


def _places(values: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _missing(manifest: Manifest, attempt: str, seq: int) -> SparkonceError:
    return StagedDataMissing(
        f"Chunk {seq} of attempt {attempt} of epoch {manifest.epoch} is not whole in the log",
        why="someone dropped it, or the server lost what was staged",
        todo="restart the query; nothing of the epoch took effect, and Spark replays it",
    )


def _lost(manifest: Manifest, attempt: str, seq: int) -> SparkonceError:
    return StoreLostData(
        f"Chunk {seq} of attempt {attempt} is gone, but epoch {manifest.epoch} is decided and"
        " not yet applied",
        why="the server lost data, or someone deleted from sparkonce_log",
        todo="restore the server from a backup and restart the query; or run `sparkonce recover`"
        " with --accept-loss, which leaves the rest of that epoch out",
    )
