"""The steps of the protocol in MySQL and MariaDB; each step is one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast
from weakref import WeakKeyDictionary, WeakSet

import pymysql

from pyspark_mysql import health
from pyspark_mysql.journal.dead_letters import DeadLetters, LetterBox, letterboxes
from pyspark_mysql.journal.log import StagingLog
from pyspark_mysql.journal.tables import LedgerRecords, OwnTables, require_transactions
from pyspark_mysql.read.columns import logged_schema
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.connection import LiveConnection
from pyspark_mysql.server.failures import failure_of, translated
from pyspark_mysql.target.columns import unfilled
from pyspark_mysql.target.lookup import look_up, triggers
from pyspark_mysql.write import preflight
from pyspark_mysql.write.creation import add_columns
from pyspark_mysql.write.delivery import Delivery, hold
from pyspark_mysql.write.plan import TableRows
from sparkonce.change import Names
from sparkonce.errors import FailureKind
from sparkonce.health import Finding
from sparkonce.protocol import (
    Advance,
    Applied,
    Chunk,
    Finish,
    Manifest,
    P,
    Part,
    Plan,
    Proposal,
    Record,
    Staged,
    no_progress,
)


@dataclass(eq=False)
class MySqlStore:
    """See `sparkonce.store.Store`.

    Attributes:
        create_target: whether to create a missing target.
        add_columns: whether to add columns that the target lacks.
        whole: whether an epoch takes effect in one transaction, or in one for each chunk.
        dead_letters: the table of dead letters; None if a bad row stops the epoch.
    """

    session: MySqlSession
    tables: OwnTables
    create_target: bool = False
    add_columns: bool = False
    whole: bool = True
    dead_letters: DeadLetters | None = None

    def __post_init__(self) -> None:
        self.records = LedgerRecords(self.session, self.tables.ledger)
        self.log = StagingLog(self.session, self.tables.log, self.tables.ledger)
        self._may = {"create": self.create_target, "add": self.add_columns}
        self._checked: WeakSet[LiveConnection] = WeakSet()
        self._tables: WeakKeyDictionary[LiveConnection, set[Names]] = WeakKeyDictionary()

    @contextmanager
    def _step(self, doing: str) -> Iterator[None]:
        """A step of the protocol; `doing` names it in errors."""
        # Before the step's transaction: creating a table, like all DDL, would commit it.
        with translated(doing):
            if not self.tables.made:
                self.tables.make()
            yield

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        with translated("reading the server's settings"):
            yield from health.examine(self.session, self.tables)

    def letterboxes(self) -> list[LetterBox]:
        """See `sparkonce.letterbox`."""
        with translated("looking for dead letters"):
            if self.dead_letters is not None:
                return [LetterBox(self.session, self.dead_letters.name)]
            return letterboxes(self.session)

    def check(self, plan: P) -> P:
        """See `Store.check`. Runs in full for a new connection or an altered table."""
        with translated("connecting"), self.session.connected() as live:
            # A new connection may lead to another server, as after a failover.
            if live not in self._checked or not self._there(plan):
                self._require_fit(plan)
                self._checked.add(live)
            if plan is None or plan.detail.parts:
                return plan  # tasks look up tables that rows name
            if self.add_columns:  # somebody may have dropped one
                add_columns(self.session, plan.detail)
            # On every call: tasks check rows by it, and a commit rejects a table that differs.
            return cast("P", preflight.fitted(self.session, plan))

    def look_up(self, detail: TableRows, table: Names, made: str) -> TableRows:
        """The detail for a table that rows name as `made`. A task checks their values by it.

        Raises:
            OptionError: the table does not exist, or does not fit the rows.
        """
        with translated("connecting"), self.session.connected() as live:
            detail = self._of_columns(detail, table) if detail.row else detail
            known = self._tables.setdefault(live, set())
            if table not in known:
                preflight.require_fit_table(self.session, detail, table, **self._may)
                known.add(table)
            return preflight.fitted_table(self.session, detail, table, made)

    def _of_columns(self, detail: TableRows, table: Names) -> TableRows:
        """The detail for rows that are JSON objects, from the columns of their table."""
        with translated(f"looking at table {'.'.join(table)}"):
            require_transactions(self.session, table)
            there = look_up(self.session, table)
            schema = logged_schema(self.session, table, [one.name for one in there.columns])
            fills = ("INSERT", "BEFORE") in triggers(self.session, table)
        primary = next((tuple(i.columns) for i in there.indexes if i.name == "PRIMARY"), ())
        columns = tuple(one.name for one in there.columns if not one.generated)
        required = () if fills else tuple(one.name for one in unfilled(there.columns, ()))
        named = replace(detail, table=table)
        return named.of_columns(schema, columns, primary, required)

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        with self._step("reading the ledger"):
            return self.records.read(name)

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        with self._step("writing the ledger"), self.session.transaction():
            # READ COMMITTED locks no gap: FOR UPDATE without a record locks nothing. So the record
            # is inserted first, and its stamp then shows whose it is.
            if new.revision and not over:
                self.records.insert(name, new)
            held = self.records.read(name, lock=True)
            if not held.revision or held.stamp != over:
                return held
            done = self.records.progress(name, held.token)
            # A failover may restore a decision without the rows that were applied after it.
            if done is None or done.chunks < applied:
                return held
            if new.revision:
                self.records.update(name, new)
            else:
                self.records.delete(name)
            return new

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. Takes two steps: one transaction can't discard gigabytes."""
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

    def unfinished(self, kin: str) -> list[str]:
        """See `Store.unfinished`."""
        with self._step("listing unfinished epochs"):
            return self.records.unfinished(kin)

    def decided_after(self, name: str) -> list[str]:
        """See `Store.decided_after`."""
        with self._step("listing later decisions"):
            return self.records.decided_after(name)

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`."""
        with self._step("staging rows"):
            self.log.append(chunk)

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:  # noqa: ARG002
        """See `Store.staged`."""
        with self._step("listing staged rows"):
            return self.log.attempts(sink)

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Does nothing."""
        return manifest

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        """See `Store.publish`. The commit is one transaction: nobody sees the decision alone.

        Many chunks stay in the log: deleting them may take longer than writing their rows.
        """
        manifest = proposal.manifest
        if not self.whole:
            return None
        with self._step(f"publishing epoch {manifest.epoch}"), self.session.transaction():
            held = self.records.read(manifest.sink, lock=True)
            if not held.revision or held.stamp != proposal.over:
                return held
            finished = finish(self._delivery(manifest).whole())
            self.log.drop_few(manifest)
            # Last: a driver that decides meanwhile and dies must get an earlier number.
            self.records.decide(proposal, finished, stays_open=False)
        return finished

    def decide(self, proposal: Proposal) -> Record:
        """See `Store.decide`."""
        manifest = proposal.manifest
        with self._step(f"deciding epoch {manifest.epoch}"), self.session.transaction():
            held = self.records.read(manifest.sink, lock=True)
            if not held.revision or held.stamp != proposal.over:
                return held
            # Not before the transaction: a failover may lose the last staged chunks.
            self.log.require_whole(manifest)
            # A decision is final: rows that no longer fit are rejected now.
            self._delivery(manifest).require_target()
            self.records.decide(proposal, proposal.record, stays_open=True)
        return proposal.record

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = no_progress,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`. Each chunk is one transaction, with progress in the ledger's row.

        The target is checked once, and again only after somebody has altered a table.
        """
        if self.dead_letters is not None:
            self.dead_letters.ensure()  # `recover` may be the first to name them
        return self._delivery(manifest).apply(advance)

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

    def _there(self, plan: Plan[TableRows] | None) -> bool:
        """Whether the tables accept the statements of a commit. The commit checks engines."""
        try:
            if plan is not None:
                hold(self.session, self.tables, self.dead_letters, plan.detail)
        except pymysql.MySQLError as error:
            if failure_of(error).kind in (FailureKind.LOST, FailureKind.PASSING):
                raise
            # The full check names the cause, and creates a dropped table again.
            return False
        return True

    def _require_fit(self, plan: Plan[TableRows] | None) -> None:
        preflight.require_fit_server(self.session)
        self.tables.make()
        with translated("checking its tables"):
            require_transactions(self.session, *self.tables.names)
        if self.dead_letters is not None:
            self.dead_letters.ensure()
        if plan is not None and not plan.detail.parts:
            # Last, because it may create the target: an earlier error leaves none behind.
            preflight.require_fit_target(self.session, plan.detail, **self._may)

    def _delivery(self, manifest: Manifest) -> Delivery:
        return Delivery(self.session, self.tables, self.dead_letters, manifest)
