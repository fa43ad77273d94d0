"""Rows by INSERT, as most are written."""

from __future__ import annotations

from collections.abc import Callable

import pymysql

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import Kind, known
from pyspark_mysql.write.chunks import Rows
from pyspark_mysql.write.refusals import Refusals, RefusedRow, sent_in_halves
from pyspark_mysql.write.statements import Frame
from sparkonce.change import Names

ROOM = 1024
"""Bytes of a packet that are left for its header."""

STATEMENT = 64 * 1024
"""Bytes of rows in a statement. MySQL takes those that fit into its caches a third faster than
those of a megabyte; MariaDB does not mind."""


class Inserting:
    """Sends rows in statements of a form.

    Args:
        session: of the server.
        frame: the form.
        refusals: of the epoch.
        alone: gives the form for one row that leaves some columns alone; None if none is.

    Attributes:
        most: bytes of rows that a statement may have.
        changed: rows so far, as the server counts: one for a new row, two for an updated one.
        stored: whether the server took any row.
    """

    def __init__(
        self,
        session: Session,
        frame: Frame,
        refusals: Refusals,
        alone: Callable[[Names], Frame] | None = None,
    ) -> None:
        self.session, self.frame, self.refusals, self.alone = session, frame, refusals, alone
        self.most = session.live.packet - len(frame.head) - len(frame.tail) - ROOM
        self.changed, self.stored = 0, False

    def begin(self) -> None:
        """See `Way.begin`."""

    def write(self, rows: Rows) -> None:
        """See `Way.write`."""
        parts = filter(self._fits, rows.within(min(self.most, STATEMENT)))
        for row, error in sent_in_halves(parts, self._send):
            if not self._sent_alone(row):
                self.refusals.by_server(row.literals(), error)

    def end(self) -> bool:
        """See `Way.end`."""
        return self.stored

    def _send(self, rows: Rows) -> None:
        self._send_as(self.frame, rows)

    def _send_as(self, frame: Frame, rows: Rows) -> None:
        self.changed += self.session.change(b"".join([frame.head, rows.text, frame.tail]))
        self.stored = True

    def _sent_alone(self, row: Rows) -> bool:
        """Send a row without the columns that are kept: what is stored may be no value of theirs.

        An ENUM may hold '', which the server does not take, not even from the column itself.
        """
        if self.alone is None:
            return False
        columns = zip(self.refusals.detail.columns, row.literals(), strict=False)
        nulls = tuple(name for name, literal in columns if literal == "NULL")
        try:
            self._send_as(self.alone(nulls), row)
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.ROW:
                raise
            return False
        return True

    def _fits(self, rows: Rows) -> bool:
        if len(rows.text) <= self.most:
            return True
        error = RefusedRow(
            f"it takes {len(rows.text):,} bytes",
            f"max_allowed_packet of the server is {self.session.live.packet:,}",
            "raise it, or cut the row's large columns before the sink",
        )
        self.refusals.refuse(rows.literals(), error)
        return False
