"""The protocol's steps in MySQL and MariaDB; each one is one transaction."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

import pymysql

from pyspark_mysql import chunks, preflight
from pyspark_mysql.apply import Applier
from pyspark_mysql.client import Session
from pyspark_mysql.connection import Live
from pyspark_mysql.dead_letters import Aside, DeadLetters
from pyspark_mysql.failures import Kind, known, translated
from pyspark_mysql.log import Log, lost, missing, progress_lost
from pyspark_mysql.records import Progress, Records
from pyspark_mysql.refusals import RefusedRow
from pyspark_mysql.statements import holding
from pyspark_mysql.tables import OwnTables
from pyspark_mysql.target import definitions
from sparkonce.bad_rows import TooManyBadRows
from sparkonce.errors import BadRow, RowRefused
from sparkonce.lanes import in_order
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Chunk,
    Decision,
    Finish,
    Manifest,
    Part,
    Plan,
    Record,
    Staged,
    ignore,
)

FEW = 4
"""So many chunks are not worth a thread, and a connection of its own."""


class MySqlStore:
    """See `sparkonce.protocol.Store`.

    Args:
        session: of the server.
        tables: ledger and log.
        create_target: whether a target that is not there may be made.
        whole: whether an epoch takes effect in one transaction, or in one for each chunk.
        dead_letters: where rows go that can't be stored; None if one of them stops the epoch.
    """

    def __init__(
        self,
        session: Session,
        tables: OwnTables,
        *,
        create_target: bool = False,
        whole: bool = True,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self.session, self.tables = session, tables
        self.create_target, self.whole = create_target, whole
        self.dead_letters = dead_letters
        self.records = Records(session, tables.ledger)
        self.log = Log(session, tables.log, tables.ledger)
        self._checked: WeakSet[Live] = WeakSet()

    @contextmanager
    def _step(self, doing: str) -> Iterator[None]:
        """A step of the protocol, in whose errors `doing` says what was tried."""
        with translated(doing):
            self.tables.ensure()
            yield

    def check(self, plan: Plan[Any] | None) -> None:
        """See `Store.check`. In full where the connection is new, or a table not as it was."""
        with translated("connecting"), self.session.connected() as live:
            if live not in self._checked or not self._there(plan):
                self._require_fit(plan)
                self._checked.add(live)

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        with self._step("reading the ledger"):
            return self.records.read(name)

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        with self._step("writing the ledger"), self.session.transaction():
            if new.revision and not over:
                self.records.insert(name, new)
            held = self.records.read(name, lock=True)
            if not held.revision or held.stamp != over:
                return held
            done = self.records.progress(name, held.token)
            if done is None or done.chunks < applied:
                return held
            if new.revision:
                self.records.update(name, new)
            else:
                self.records.delete(name)
            return new

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. Two steps: to drop gigabytes is no step of one transaction."""
        there = self.swap(name, new, over)
        if there.stamp == new.stamp:
            self.discard(name, attempts, new.stamp)
        return there

    def names(self) -> list[str]:
        """See `Store.names`."""
        with translated("listing the ledgers"):
            if not self.tables.there():
                return []
            return sorted({*self.records.names(), *self.log.sinks()})

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        with self._step("staging rows"):
            self.log.append(chunk)

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:  # noqa: ARG002
        """See `Store.staged`."""
        with self._step("listing staged rows"):
            return self.log.attempts(sink)

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Nothing is needed."""
        return manifest

    def publish(self, decision: Decision, finish: Finish) -> Record | None:
        """See `Store.publish`. The whole commit is one transaction: nobody sees the decision alone.

        Many chunks stay: to delete them may take longer than to write their rows.
        """
        manifest = decision.manifest
        if not self.whole:
            return None
        with self._step(f"publishing epoch {manifest.epoch}"), self.session.transaction():
            held = self.records.read(manifest.sink, lock=True)
            if not held.revision or held.stamp != decision.over:
                return held
            finished = finish(self._apply_all(manifest, self._aside(manifest)))
            self.log.drop_few(manifest)
            self.records.update(manifest.sink, finished)
            self.records.keep(decision)
        return finished

    def decide(self, decision: Decision) -> Record:
        """See `Store.decide`."""
        manifest = decision.manifest
        with self._step(f"deciding epoch {manifest.epoch}"), self.session.transaction():
            held = self.records.read(manifest.sink, lock=True)
            if not held.revision or held.stamp != decision.over:
                return held
            self.log.require_whole(manifest)
            self.records.update(manifest.sink, decision.record)
            self.records.keep(decision)
        return decision.record

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = ignore,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`. One transaction a chunk, with the progress in the ledger's row.

        The target is looked at once, and again only where a table was altered since.
        """
        aside, rows, put_aside = self._aside(manifest), 0, 0
        self._ensure_dead_letters()
        applier: Applier | None = None
        looked: list[str] = []
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            with self._step(f"applying epoch {manifest.epoch}"), self.session.transaction():
                done = self.records.progress(manifest.sink, manifest.token)
                if done is None:
                    return ALL_STORED
                if done.chunks < ordinal:
                    raise progress_lost(manifest)
                put_aside = done.aside
                if done.chunks == ordinal:
                    self._hold(manifest.detail)
                    held = definitions(self.session, self._written(manifest))
                    if applier is None or not held or held != looked:
                        applier, looked = self._applier(manifest, aside), held
                    if aside is not None:
                        aside.tally.resume(rows, put_aside)
                    self._apply_decided(manifest, ordinal, applier)
                    put_aside = aside.tally.applied.aside if aside else put_aside
                    self.log.drop_chunk(manifest.sink, part.attempt, seq)
                    self.records.advance(manifest.sink, Progress(ordinal + 1, put_aside))
            rows += part.rows[seq]
            if done.chunks == ordinal:
                advance(part.rows[seq])
        return Applied(put_aside, stored=not put_aside or put_aside < rows)

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),  # noqa: ARG002
    ) -> None:
        """See `Store.discard`."""
        if attempts:
            with self._step("dropping staged rows"):
                self.log.drop(sink, attempts, over)

    def _there(self, plan: Plan[Any] | None) -> bool:
        """Whether the tables take what a commit sends. An engine is asked for by the commit."""
        try:
            if plan is not None:
                self._hold(plan.detail)
        except pymysql.MySQLError as error:
            if known(error).kind in (Kind.LOST, Kind.PASSING):
                raise
            return False
        return True

    def _hold(self, detail: Mapping[str, Any]) -> None:
        """Open all tables that a commit writes to; in a transaction they stay as they are."""
        self.session.run(holding(detail, self.tables.quoted))
        if self.dead_letters is not None:
            self.dead_letters.hold()

    def _require_fit(self, plan: Plan[Any] | None) -> None:
        preflight.require_fit_server(self.session)
        self.tables.make()
        with translated("looking at its tables"):
            self.tables.require_transactions()
        self._ensure_dead_letters()
        if plan is not None:
            preflight.require_fit_target(self.session, plan.detail, create=self.create_target)

    def _ensure_dead_letters(self) -> None:
        if self.dead_letters is not None:
            with translated("looking at the table of option deadLetter"):
                self.dead_letters.ensure()

    def _aside(self, manifest: Manifest) -> Aside | None:
        """What takes bad rows."""
        return None if self.dead_letters is None else self.dead_letters.of(manifest)

    def _written(self, manifest: Manifest) -> list[tuple[str, ...]]:
        """The tables that an epoch writes, the target first."""
        letters = [self.dead_letters.name] if self.dead_letters else []
        return [tuple(manifest.detail["table"]), *self.tables.names, *letters]

    def _applier(self, manifest: Manifest, aside: Aside | None) -> Applier:
        """What applies rows while the tables are held as they are now.

        Whatever the manifest says, today's options say where bad rows go.
        """
        others = self._written(manifest)[1:]
        target = preflight.hold_target(self.session, manifest.detail, others)
        return Applier(self.session, manifest.detail, target, aside)

    def _apply_all(self, manifest: Manifest, aside: Aside | None) -> Applied:
        self._hold(manifest.detail)
        applier = self._applier(manifest, aside)
        try:
            with closing(self._chunks(manifest)) as found:
                applier.apply(found)
            if aside is None:
                return ALL_STORED
            applied = aside.end()
            aside.warn()
            return applied
        except (RefusedRow, TooManyBadRows) as error:
            raise BadRow(
                f"{error.what}; nothing of epoch {manifest.epoch} took effect",
                error.why,
                error.todo,
            ) from None

    def _chunks(self, manifest: Manifest) -> Generator[chunks.Chunk, None, None]:
        """The chunks of an epoch; while the server applies one, a thread reads the next."""
        steps = [partial(self.log.chunk, manifest, *at, missing) for at in manifest.chunks]
        if len(steps) <= FEW:
            yield from (step() for step in steps)
        else:
            yield from in_order(steps, 1, "sparkonce-ahead")

    def _apply_decided(self, manifest: Manifest, ordinal: int, applier: Applier) -> None:
        chunk = self.log.chunk(manifest, *manifest.chunks[ordinal], lost)
        try:
            applier.apply([chunk])
            if applier.aside is not None and ordinal == len(manifest.chunks) - 1:
                applier.aside.end()
                applier.aside.warn()
        except (RefusedRow, TooManyBadRows) as error:
            raise RowRefused(
                f"{error.what}. Epoch {manifest.epoch} stays decided; its chunks before this one"
                " have taken effect",
                error.why,
                f"{error.todo}; what the server objects to must be mended there, then restart the"
                " query: it goes on where it stopped",
            ) from None
