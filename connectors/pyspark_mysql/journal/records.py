"""The table of records: ledgers, claims on checkpoints, kept offsets. See sql/ledger.sql."""

from __future__ import annotations

from typing import NamedTuple

from pyspark_mysql.server.client import MySqlSession
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.protocol import Proposal, Record


class Progress(NamedTuple):
    """What of a decision took effect: so many chunks, and so many of their rows as dead letters."""

    chunks: int
    aside: int


class LedgerRecords:
    """Reads and writes records; whoever calls holds the transaction."""

    def __init__(self, session: MySqlSession, table: str) -> None:
        # The client puts values in place of %s, and makes % of %%, where it is given any value.
        # Where a statement has none, `% ()` makes it.
        self.session, self.table = session, table.replace("%", "%%")

    def read(self, name: str, *, lock: bool = False) -> Record:
        """The record; with `lock` nobody else writes it before the transaction ends."""
        sql = f"SELECT revision, stamp, token, body FROM {self.table} WHERE name = %s"
        found = self.session.run(sql + " FOR UPDATE" if lock else sql, name)
        return Record(*found[0]) if found else Record()

    def _number(self, *, stays_open: bool) -> int:
        """The number of a decision.

        Those that stay open are counted in the row without a name, and lock it, one at a time,
        until COMMIT. The others share the lock, so they don't wait for each other.
        """
        count = f"UPDATE {self.table} SET revision = revision + 1 WHERE name = ''"
        if stays_open:
            self.session.run(count % ())
        sql = f"SELECT revision FROM {self.table} WHERE name = '' LOCK IN SHARE MODE"
        found = self.session.run(sql % ())
        if not found:
            self.insert("", Record(1))
            return self._number(stays_open=stays_open)
        # Above all that stayed open so far, and below the next that will.
        return 2 * int(found[0][0]) + (0 if stays_open else 1)

    def unfinished(self, kin: str) -> list[str]:
        """The names that end so, of sinks whose decision is being applied."""
        # By the index of tokens: the cost must not grow with the number of other sinks.
        return self._names("token > '' AND name LIKE %s", f"%{kin}")

    def decided_after(self, name: str) -> list[str]:
        """The sinks of the same target with a later decision."""
        own = f"(SELECT decided FROM {self.table} WHERE name = %s)"
        return self._names(f"decided > {own} AND name LIKE %s", name, f"%{kin_of(name)}")

    def names(self) -> list[str]:
        """The names of all records."""
        return self._names("name > %s", "")

    def _names(self, condition: str, *args: str) -> list[str]:
        found = self.session.run(f"SELECT name FROM {self.table} WHERE {condition}", *args)
        return [name for (name,) in found]

    def insert(self, name: str, new: Record) -> None:
        """Write a record unless there is one."""
        self.session.run(
            f"INSERT INTO {self.table} (name, revision, stamp, token, body)"
            " VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE revision = revision",
            *(name, new.revision, new.stamp, new.token, new.body),
        )

    def update(self, name: str, new: Record, decided: int | None = None) -> None:
        """Write a locked record; `decided` is the number of the decision, where this is one."""
        # Another token has no progress yet. Columns are assigned from left to right, so `token`
        # must come behind those that ask for what it was.
        self.session.run(
            f"UPDATE {self.table} SET applied = IF(token = %s, applied, 0),"
            " aside = IF(token = %s, aside, 0), decided = COALESCE(%s, decided),"
            " revision = %s, stamp = %s, token = %s, body = %s WHERE name = %s",
            *(new.token, new.token, decided, new.revision, new.stamp, new.token, new.body, name),
        )

    def decide(self, proposal: Proposal, new: Record, *, stays_open: bool) -> None:
        """Write a decision into its locked record, `new`, and what is kept beside it.

        `stays_open` says that rows are applied after the transaction.
        """
        # Written over whatever is there: the locked row orders the writes of what is beside it.
        if proposal.beside is not None:
            self.session.run(
                f"REPLACE INTO {self.table} (name, revision, stamp, token, body)"
                " VALUES (%s, 1, %s, '', %s)",
                *(proposal.beside.name, proposal.record.stamp, proposal.beside.body),
            )
        self.update(proposal.manifest.sink, new, self._number(stays_open=stays_open))

    def delete(self, name: str) -> None:
        """Take a locked record away."""
        self.session.run(f"DELETE FROM {self.table} WHERE name = %s", name)

    def progress(self, name: str, token: str) -> Progress | None:
        """What of this decision took effect, locked; None if it is no longer the last."""
        sql = f"SELECT token, applied, aside FROM {self.table} WHERE name = %s FOR UPDATE"
        found = self.session.run(sql, name)
        return Progress(*found[0][1:]) if found and found[0][0] == token else None

    def advance(self, name: str, done: Progress) -> None:
        """Write what of the decision took effect, in the transaction that wrote its rows."""
        sql = f"UPDATE {self.table} SET applied = %s, aside = %s WHERE name = %s"
        self.session.run(sql, *done, name)
