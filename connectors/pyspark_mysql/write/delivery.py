"""Delivers a decided epoch to the target, inside transactions of the store."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from functools import partial
from itertools import accumulate
from typing import Any

from pyspark_mysql.journal.dead_letters import DeadLetters
from pyspark_mysql.journal.log import ChunkError, StagingLog, lost, missing
from pyspark_mysql.journal.tables import LedgerRecords, OwnTables, Progress
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import translated
from pyspark_mysql.target.lookup import Target, definitions
from pyspark_mysql.write import chunks, preflight, tables
from pyspark_mysql.write.gathering import writer_for
from pyspark_mysql.write.inserting import RowWriter, empty
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import PutAside, Refusals, RefusedRow
from pyspark_mysql.write.statements import metadata_lock
from pyspark_mysql.write.tables_writer import TablesWriter
from sparkonce import codec
from sparkonce.change import Names
from sparkonce.codec import FORGET, reading
from sparkonce.delivery import DecisionOver, EpochDelivery, in_order
from sparkonce.errors import BadRow, StoreUnreachable
from sparkonce.exactly_once.bad_rows import NONE, TooManyBadRows
from sparkonce.protocol import Applied, Manifest, Part
from sparkonce.values.letters import Letter

FEW = 4
"""Up to this number of chunks, a thread with a separate connection is not worthwhile."""


class Delivery(EpochDelivery[None]):
    """The rows of one manifest: all in one transaction, or one for each chunk.

    `letters` takes bad rows, as the current options require; without it a bad row stops the epoch.
    """

    ends_in_last_chunk = True

    def __init__(
        self,
        session: MySqlSession,
        own: OwnTables,
        letters: DeadLetters | None,
        manifest: Manifest,
    ) -> None:
        place = f"table {'.'.join(letters.name)}" if letters else None
        super().__init__(manifest, letters.most if letters else NONE, place)
        self.session, self.own, self.letters = session, own, letters
        with reading(manifest.sink, FORGET):
            self.detail = codec.load(TableRows, manifest.detail)
        self.records = LedgerRecords(session, own.ledger)
        self.log = StagingLog(session, own.log, own.ledger)
        # The tables that an epoch writes besides the target.
        self._others: list[Names] = [*own.names, *([letters.name] if letters else [])]
        self._before = [0, *accumulate(part.rows[seq] for part, seq in self.chunks)]
        self._writer: RowWriter | None = None
        self._looked: list[str] = []

    # -- the whole epoch, inside a transaction of the caller

    def whole(self) -> Applied:
        """Apply all chunks.

        Raises:
            BadRow: the server rejects a row.
            StagedDataMissing: a chunk is missing.
        """
        # Before any check of the tables, so that its result stays true until COMMIT.
        self.hold()
        apply = self._to_tables().apply if self.detail.parts else self._new_writer().apply
        if self.detail.overwrites:
            empty(self.session, self.detail)
        try:
            # Closed also after a rejected row: it ends the thread that reads ahead.
            with closing(self._chunks()) as found:
                self.counter.stored |= apply(found)
            self.end()
        except (RefusedRow, TooManyBadRows) as error:
            what = f"{error.what}; no row of epoch {self.manifest.epoch} took effect"
            raise BadRow(what, error.why, error.todo) from None
        return self.counter.applied

    def _chunks(self) -> Generator[Any, None, None]:
        """The decoded chunks of an epoch; a thread reads the next while the server applies one."""
        steps = [partial(self._chunk, *at, missing) for at in self.chunks]
        if len(steps) <= FEW:
            yield from (step() for step in steps)
        else:
            # The thread reads over a separate connection, so outside this transaction.
            yield from in_order(steps, 1, "sparkonce-ahead")

    # -- a transaction for each chunk

    def require_target(self) -> None:
        """Reject a target that no longer fits the rows, before the decision.

        Raises:
            StoreRefused: someone altered the target after the rows were staged.
            StoreUnsafe: someone changed the engine of a table that the epoch writes.
        """
        self.hold()
        self._fit_target()

    def resume(self) -> int:
        """See `EpochDelivery.resume`. Each chunk checks progress: another driver may apply it."""
        return 0

    def apply_chunk(self, ordinal: int) -> None:
        """See `EpochDelivery.apply_chunk`. The chunk's transaction also writes progress."""
        sink, epoch = self.manifest.sink, self.manifest.epoch
        with translated(f"applying epoch {epoch}"), self.session.transaction():
            done = self.records.progress(sink, self.manifest.token)  # locked until COMMIT
            if done is None:
                raise DecisionOver
            if done.chunks < ordinal:
                # StoreUnreachable is retried: the next try begins at the server's progress.
                raise StoreUnreachable(f"The server lost progress of epoch {epoch} (failover)")
            self.counter.resume(self._before[done.chunks], done.aside)
            self.had = max(self.had, done.chunks)
            if done.chunks == ordinal:
                self._apply(ordinal)
                reached = Progress(ordinal + 1, self.counter.applied.aside)
                self.records.advance(sink, reached)

    def _apply(self, ordinal: int) -> None:
        self.hold()
        part, seq = self.chunks[ordinal]
        chunk = self._chunk(part, seq, lost)
        try:
            self.counter.stored |= self._held_writer().apply([chunk])
        except RefusedRow as error:
            raise self.stopped_by(error.what, error.why, error.todo) from None
        if ordinal == len(self.chunks) - 1:
            self.end()  # here, because COMMIT may get no reply
        self.log.drop_chunk(self.manifest.sink, part.attempt, seq)

    def _chunk(self, part: Part, seq: int, error: ChunkError) -> Any:
        payload = self.log.payload(self.manifest, part, seq, error)
        with reading(f"chunk {seq} of attempt {part.attempt}"):
            if self.detail.parts:
                return tables.decode(payload, part.partition)
            return chunks.decode(payload)._replace(partition=part.partition)

    def _write_letter(
        self, letters: DeadLetters, letter: Letter, partition: int | None, kind: str
    ) -> None:
        self.counter.add(kind, letter.reason)
        letters.write(self.manifest, letter, partition)

    # -- the target

    def hold(self) -> None:
        """Open all tables that the epoch writes; the transaction then blocks ALTER."""
        hold(self.session, self.own, self.letters, self.detail)

    def _held_writer(self) -> RowWriter:
        """The writer for the target, which is checked again only if its definition changed."""
        # Nothing locks the tables between two chunks: somebody may have altered one.
        held = definitions(self.session, [self.detail.table, *self._others])
        if self._writer is None or not held or held != self._looked:
            self._writer, self._looked = self._new_writer(), held
        return self._writer

    def _new_writer(self) -> RowWriter:
        return writer_for(self.session, self.detail, self._fit_target(), self._put_aside())

    def _to_tables(self) -> TablesWriter:
        return TablesWriter(self._open, Refusals(self.detail, self._put_aside(), ambiguous=False))

    def _open(self, detail: TableRows, place: int) -> RowWriter:
        """A writer for one of several tables, which the transaction opens first."""
        self.session.run(metadata_lock(detail, self.own.quoted))
        target = preflight.require_still_fit(self.session, detail, self._others)
        return writer_for(self.session, detail, target, self._put_aside(), place)

    def _put_aside(self) -> PutAside | None:
        return partial(self._write_letter, self.letters) if self.letters else None

    def _fit_target(self) -> Target:
        return preflight.require_still_fit(self.session, self.detail, self._others)


def hold(
    session: MySqlSession, own: OwnTables, letters: DeadLetters | None, detail: TableRows
) -> None:
    """Open all tables that a commit writes; the transaction then blocks ALTER.

    The first rows of a table that rows name open that table.
    """
    lock = f"SELECT 1 FROM {' CROSS JOIN '.join(own.quoted)} WHERE 1 = 0"
    session.run(lock if detail.parts else metadata_lock(detail, own.quoted))
    if letters is not None:
        letters.hold()
