"""Makes the rows of chunks take effect, inside a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymysql

from pyspark_mysql.bends import Bends, Finder, bends_of
from pyspark_mysql.chunks import Chunk, Rows
from pyspark_mysql.client import Session
from pyspark_mysql.cuts import cuts_of
from pyspark_mysql.dead_letters import Aside, of_literals
from pyspark_mysql.failures import Kind, known, message
from pyspark_mysql.keys import is_ambiguous
from pyspark_mysql.statements import OTHER, Frame, frame
from pyspark_mysql.target import Target
from sparkonce.bad_rows import OF_TASK
from sparkonce.errors import SparkonceError
from sparkonce.letters import Letter

ROOM = 1024
"""Bytes of a packet that are left for its header."""

STATEMENT = 64 * 1024
"""Bytes of rows in a statement. MySQL takes those that fit into its caches a third faster than
those of a megabyte; MariaDB does not mind."""


class RefusedRow(SparkonceError):
    """The server refused this row; nothing of its statement took effect."""


class Applier:
    """Applies chunks by the plan of one manifest.

    Args:
        session: of the server.
        detail: of the manifest.
        target: looked at in this transaction.
        aside: takes the rows that can't be stored; None if one of them stops the epoch.

    Attributes:
        changed: rows so far, as the server counts: one for a new row, two for an updated one.
    """

    def __init__(
        self,
        session: Session,
        detail: Mapping[str, Any],
        target: Target,
        aside: Aside | None = None,
    ) -> None:
        self.session, self.detail, self.target, self.aside = session, detail, target, aside
        self.ambiguous = is_ambiguous(detail, target.unique_keys)
        cuts = [] if session.options["cutTrailingSpace"] else cuts_of(detail, target.columns)
        self.bends = Bends(bends_of(detail, target.columns), cuts)
        self.frame = self._frame()
        self.changed = 0
        self.rows = self.refused = 0
        self.partition: int | None = None
        self.most = session.live.packet - len(self.frame.head) - len(self.frame.tail) - ROOM

    def begin(self) -> None:
        """What must be done before the first chunk, in the transaction."""

    def end(self) -> None:
        """What must be done behind the last chunk, in the transaction."""
        if self.aside is not None and self.stored_any():
            self.aside.tally.stored = True

    def stored_any(self) -> bool:
        """Whether the server took any row."""
        return self.rows > self.refused

    def _frame(self) -> Frame:
        mariadb = self.session.live.mariadb
        return frame(self.detail, mariadb=mariadb, ambiguous=self.ambiguous)

    def apply(self, chunk: Chunk) -> None:
        """Apply a chunk.

        Raises:
            RefusedRow: a row is refused; the caller rolls all of it back.
            pymysql.MySQLError: anything else.
        """
        self.partition = chunk.partition
        for letter in chunk.bad:
            error = RefusedRow(letter.reason, OF_TASK, "set option onBadRow=deadLetter again")
            self._put_aside(error, letter)
        self.rows += len(chunk.rows)
        bent = self._bent(chunk.rows)
        for at, bend in bent.items():
            literals = chunk.rows.row(at).literals()
            self._refuse(literals, _refused(bend, literals[bend.place]))
        for rows in chunk.rows.without(bent):
            self.write(rows)

    def _bent(self, rows: Rows) -> dict[int, Finder]:
        """The rows that must not be sent."""
        return self.bends.find(rows)

    def write(self, rows: Rows) -> None:
        """Insert, update or delete these rows.

        Raises:
            RefusedRow: a row is refused.
        """
        for part in rows.within(min(self.most, STATEMENT)):
            self._send(part)

    def _send(self, rows: Rows) -> None:
        if len(rows.text) > self.most:
            self._refuse(rows.literals(), _larger_than_a_packet(rows, self.session.live.packet))
            return
        try:
            sql = b"".join([self.frame.head, rows.text, self.frame.tail])
            self.changed += self.session.change(sql)
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.ROW:
                raise
            if len(rows) == 1:
                self._refuse(rows.literals(), self.explained(error))
                return
            for half in rows.halves():  # to find the row: one of them will fail
                self._send(half)

    def explained(self, error: pymysql.MySQLError) -> RefusedRow:
        """Why the server refuses a row."""
        if self.collides(error):
            return RefusedRow(
                "it has another stored row's value in another unique key",
                "as an update it would change that row, whose key is another",
                "mend the row or the stored one, or drop the other unique key",
            )
        bend = self.bends.failed(str(error))
        if bend:
            return _refused(bend, "NULL")
        return RefusedRow(message(error), *known(error)[1:])

    def collides(self, error: pymysql.MySQLError) -> bool:
        """Whether another stored row was found by another unique key."""
        return self.ambiguous and OTHER in str(error)

    def _refuse(self, row: list[str], error: RefusedRow) -> None:
        """Name a row by its key, or by all of it where it has none."""
        literals = dict(zip(self.detail["columns"], row, strict=False))
        key = {name: literals[name] for name in self.detail["key"]} or literals
        shown = ", ".join(f"{name}={_shortened(literal)}" for name, literal in key.items())
        what = f"MySQL can't store the row with {shown}: {error.what}"
        self.refused += 1
        refused = RefusedRow(what, error.why, error.todo)
        self._put_aside(refused, of_literals(what, row, self.detail) if self.aside else None)

    def _put_aside(self, error: RefusedRow, letter: Letter | None) -> None:
        if self.aside is None or letter is None:
            raise error
        self.aside.take(letter, self.partition, error.why)


def _refused(bend: Finder, literal: str) -> RefusedRow:
    return RefusedRow(f"column {bend.name!r} can't be {_shortened(literal)}", bend.why, bend.todo)


def _larger_than_a_packet(rows: Rows, packet: int) -> RefusedRow:
    return RefusedRow(
        f"it takes {len(rows.text):,} bytes",
        f"max_allowed_packet of the server is {packet:,}",
        "raise it, or cut the row's large columns before the sink",
    )


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:76]}...'"
