"""A decided epoch on its way into the target, inside transactions of the store's."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from functools import partial
from itertools import accumulate

import pymysql

from pyspark_mysql.journal.dead_letters import DeadLetters
from pyspark_mysql.journal.log import Gone, Log, lost, missing
from pyspark_mysql.journal.records import Progress
from pyspark_mysql.journal.tables import OwnTables
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import Kind, known, message
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.lookup import Target, definitions
from pyspark_mysql.write import chunks, preflight
from pyspark_mysql.write.apply import Applier
from pyspark_mysql.write.aside import Aside
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import RefusedRow
from pyspark_mysql.write.statements import holding
from sparkonce.change import Names
from sparkonce.damage import FORGET, reading
from sparkonce.errors import BadRow, RowRefused, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.bad_rows import BadRowCounter, TooManyBadRows
from sparkonce.exactly_once.parallel import in_order
from sparkonce.protocol import ALL_STORED, Applied, Manifest, Part

FEW = 4
"""So many chunks are not worth a thread, and a connection of its own."""


class Delivery:
    """The rows of one manifest.

    Args:
        session: of the server.
        own: ledger and log.
        letters: takes rows that can't be stored, as today's options say; None if one stops it.
        manifest: of the epoch.
    """

    def __init__(
        self, session: Session, own: OwnTables, letters: DeadLetters | None, manifest: Manifest
    ) -> None:
        self.session, self.own, self.letters, self.manifest = session, own, letters, manifest
        with reading(manifest.sink, FORGET):
            self.detail = TableRows.load(manifest.detail)
        self.log = Log(session, own.log, own.ledger)
        self.aside = (
            Aside(letters, manifest, BadRowCounter(letters.most, manifest)) if letters else None
        )
        self._at = manifest.chunks
        self._before = [0, *accumulate(part.rows[seq] for part, seq in self._at)]
        self._applier: Applier | None = None
        self._looked: list[str] = []

    def whole(self) -> Applied:
        """Apply all chunks, in one transaction.

        Raises:
            BadRow: a row is refused.
            StagedDataMissing: a chunk is gone.
        """
        # Before any look at the tables: what is learned of them stays true until COMMIT.
        hold(self.session, self.own, self.letters, self.detail)
        applier = self._new_applier()
        if self.detail.overwrites:
            self._empty()
        try:
            # Closed also where a row is refused: the thread that reads ahead ends here.
            with closing(self._chunks()) as found:
                applier.apply(found)
            return self._end()
        except (RefusedRow, TooManyBadRows) as error:
            what = f"{error.what}; nothing of epoch {self.manifest.epoch} took effect"
            raise BadRow(what, error.why, error.todo) from None

    def _empty(self) -> None:
        # TRUNCATE would commit: readers would see the table empty, and a bad row leave it so.
        try:
            self.session.run(f"DELETE FROM {identifier(*self.detail.table)}")
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.ROW:
                raise
            raise StoreRefused(
                f"Table {self.detail.shown} can't be emptied, and nothing of the epoch took effect:"
                f" {message(error)}",
                why="a stored row can't be deleted: rows of this table or of another one point to"
                " it by a foreign key, or a trigger refuses it",
                todo="drop that foreign key, or declare it ON DELETE CASCADE or SET NULL; else"
                " write with option key in mode append, which deletes no row",
            ) from None

    def require_target(self) -> None:
        """Refuse a target that is none for these rows any more, before they are decided.

        Raises:
            StoreRefused: it was altered since they were staged.
            StoreUnsafe: so was the engine of a table that is written.
        """
        hold(self.session, self.own, self.letters, self.detail)
        self._fit_target()

    def chunk(self, ordinal: int, done: Progress) -> Progress:
        """Apply one chunk, in a transaction, where that is not done.

        Args:
            ordinal: of the chunk.
            done: what took effect, whoever applied it.

        Raises:
            RowRefused: a row is refused; a later call goes on from it.
            StoreLostData: the chunk is gone.
            StoreUnreachable: less of the epoch is there than was.
        """
        if done.chunks > ordinal:
            return done
        if done.chunks < ordinal:
            epoch = self.manifest.epoch
            # Unreachable, as that is tried again: the next try begins where the server is now.
            raise StoreUnreachable(f"The server lost progress of epoch {epoch} (failover)")
        hold(self.session, self.own, self.letters, self.detail)
        part, seq = self._at[ordinal]
        chunk = self._chunk(part, seq, lost)
        if self.aside is not None:
            self.aside.tally.resume(self._before[ordinal], done.aside)
        self._apply(self._held_applier(), chunk, last=ordinal == len(self._at) - 1)
        self.log.drop_chunk(self.manifest.sink, part.attempt, seq)
        return Progress(ordinal + 1, self.aside.tally.applied.aside if self.aside else done.aside)

    def _apply(self, applier: Applier, chunk: chunks.Chunk, *, last: bool) -> None:
        try:
            applier.apply([chunk])
            if last:
                self._end()
        except (RefusedRow, TooManyBadRows) as error:
            raise RowRefused(
                f"{error.what}. Epoch {self.manifest.epoch} stays decided; its chunks before this"
                " one have taken effect",
                error.why,
                f"{error.todo}; what the server objects to must be mended there, then restart the"
                " query: it goes on where it stopped",
            ) from None

    def _end(self) -> Applied:
        return ALL_STORED if self.aside is None else self.aside.end()

    def _chunks(self) -> Generator[chunks.Chunk, None, None]:
        """The chunks of an epoch; while the server applies one, a thread reads the next."""
        steps = [partial(self._chunk, *at, missing) for at in self._at]
        if len(steps) <= FEW:
            yield from (step() for step in steps)
        else:
            # The thread reads over a connection of its own, so outside of this transaction.
            yield from in_order(steps, 1, "sparkonce-ahead")

    def _chunk(self, part: Part, seq: int, gone: Gone) -> chunks.Chunk:
        payload = self.log.payload(self.manifest, part, seq, gone)
        with reading(f"chunk {seq} of attempt {part.attempt}"):
            return chunks.decode(payload)._replace(partition=part.partition)

    def _held_applier(self) -> Applier:
        """What applies rows to the target, which is looked at again only where it was altered."""
        # Nothing holds the tables between two chunks: one may have been altered since.
        held = definitions(self.session, self._written())
        if self._applier is None or not held or held != self._looked:
            self._applier, self._looked = self._new_applier(), held
        return self._applier

    def _new_applier(self) -> Applier:
        return Applier(self.session, self.detail, self._fit_target(), self.aside)

    def _fit_target(self) -> Target:
        _, *others = self._written()
        return preflight.require_still_fit(self.session, self.detail, others)

    def _written(self) -> list[Names]:
        """The tables that an epoch writes, the target first."""
        letters = [self.letters.name] if self.letters else []
        return [self.detail.table, *self.own.names, *letters]


def hold(session: Session, own: OwnTables, letters: DeadLetters | None, detail: TableRows) -> None:
    """Open all tables that a commit writes to; in a transaction they stay as they are."""
    session.run(holding(detail, own.quoted))
    if letters is not None:
        letters.hold()
