"""The table of records: ledgers, claims on checkpoints, kept offsets. See sql/ledger.sql."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark_mysql.server.client import Session
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.protocol import Proposal, Record


class Progress(NamedTuple):
    """What of a decision took effect: so many chunks, and so many of their rows as dead letters."""

    chunks: int
    aside: int


class Records:
    """Reads and writes records; whoever calls holds the transaction."""

    def __init__(self, session: Session, table: str) -> None:
        # The client puts values in place of %s.
        self.session, self.table = session, table.replace("%", "%%")

    def read(self, name: str, *, lock: bool = False) -> Record:
        """The record; with `lock` nobody else writes it before the transaction ends."""
        sql = f"SELECT revision, stamp, token, body FROM {self.table} WHERE name = %s"
        found = self.session.run(sql + " FOR UPDATE" if lock else sql, name)
        return Record(*found[0]) if found else Record()

    def number(self, *, stays_open: bool) -> int:
        """The number of a decision, where that is all but committed.

        Those that stay open are counted in the record without a name, one at a time; others get a
        number above the last one. They share its lock, so they don't wait for each other.

        Args:
            stays_open: whether rows are applied after the transaction.
        """
        count = f"UPDATE {self.table} SET revision = revision + 1 WHERE name = ''"
        if stays_open:
            self.session.run(count % ())
        sql = f"SELECT revision FROM {self.table} WHERE name = '' LOCK IN SHARE MODE"
        found = self.session.run(sql % ())
        if not found:
            self.insert("", Record(1))
            return self.number(stays_open=stays_open)
        return 2 * int(found[0][0]) + (0 if stays_open else 1)

    def unfinished(self, kin: str) -> list[str]:
        """The names that end so, of sinks whose decision is being applied."""
        sql = f"SELECT name FROM {self.table} WHERE token > '' AND name LIKE %s"
        return [name for (name,) in self.session.run(sql, f"%{kin}")]

    def decided_after(self, name: str) -> list[str]:
        """The sinks of the same target with a later decision."""
        own = f"(SELECT decided FROM {self.table} WHERE name = %s)"
        sql = f"SELECT name FROM {self.table} WHERE decided > {own} AND name LIKE %s"
        return [name for (name,) in self.session.run(sql, name, f"%{kin_of(name)}")]

    def names(self) -> list[str]:
        """The names of all records."""
        # A statement without values goes as it is, so %% is made % here.
        sql = f"SELECT name FROM {self.table} WHERE name > ''"
        return [name for (name,) in self.session.run(sql % ())]

    def insert(self, name: str, new: Record) -> None:
        """Write a record unless there is one."""
        self.session.run(
            f"INSERT INTO {self.table} (name, revision, stamp, token, body)"
            " VALUES (%s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE revision = revision",
            name,
            *_values(new),
        )

    def update(self, name: str, new: Record, decided: int | None = None) -> None:
        """Write a locked record. Another token has no progress yet (assigned left to right).

        Args:
            name: of the record.
            new: to be written.
            decided: the number of the decision, where this is one.
        """
        self.session.run(
            f"UPDATE {self.table} SET applied = IF(token = %s, applied, 0),"
            " aside = IF(token = %s, aside, 0), decided = COALESCE(%s, decided),"
            " revision = %s, stamp = %s, token = %s, body = %s WHERE name = %s",
            *(new.token, new.token, decided),
            *_values(new),
            name,
        )

    def keep(self, decision: Proposal) -> None:
        """Write what is kept beside a decision, over whatever is there."""
        # Needs no stamp to compare: the ledger's row, locked by the caller, orders these writes.
        if decision.beside is not None:
            self.session.run(
                f"REPLACE INTO {self.table} (name, revision, stamp, token, body)"
                " VALUES (%s, 1, %s, '', %s)",
                *(decision.beside.name, decision.record.stamp, decision.beside.body),
            )

    def delete(self, name: str) -> None:
        """Take a locked record away."""
        self.session.run(f"DELETE FROM {self.table} WHERE name = %s", name)

    def progress(self, name: str, token: str) -> Progress | None:
        """What of this decision took effect, locked; None if it is no longer the last."""
        sql = f"SELECT token, applied, aside FROM {self.table} WHERE name = %s FOR UPDATE"
        found = self.session.run(sql, name)
        return Progress(*found[0][1:]) if found and found[0][0] == token else None

    def advance(self, name: str, done: Progress) -> None:
        """Write what of the decision took effect."""
        sql = f"UPDATE {self.table} SET applied = %s, aside = %s WHERE name = %s"
        self.session.run(sql, *done, name)


def _values(record: Record) -> tuple[Any, ...]:
    return record.revision, record.stamp, record.token, record.body
