"""Rows by INSERT, as most are written."""

from __future__ import annotations

from pyspark_mysql.models.chunks import Rows
from pyspark_mysql.models.refusals import Refusals, RefusedRow, sent_in_halves
from pyspark_mysql.models.statements import Frame
from pyspark_mysql.server.client import Session

ROOM = 1024
"""Bytes of a packet that are left for its header."""

STATEMENT = 64 * 1024
"""Bytes of rows in a statement. MySQL takes those that fit into its caches a third faster than
those of a megabyte; MariaDB does not mind."""


class Inserting:
    """Sends rows in statements of a form.

    Attributes:
        most: bytes of rows that a statement may have.
        changed: rows so far, as the server counts: one for a new row, two for an updated one.
        stored: whether the server took any row.
    """

    def __init__(self, session: Session, frame: Frame, refusals: Refusals) -> None:
        self.session, self.frame, self.refusals = session, frame, refusals
        self.most = session.live.packet - len(frame.head) - len(frame.tail) - ROOM
        self.changed, self.stored = 0, False

    def begin(self) -> None:
        """See `Way.begin`."""

    def write(self, rows: Rows) -> None:
        """See `Way.write`."""
        parts = filter(self._fits, rows.within(min(self.most, STATEMENT)))
        for row, error in sent_in_halves(parts, self._send):
            self.refusals.by_server(row.literals(), error)

    def end(self) -> bool:
        """See `Way.end`."""
        return self.stored

    def _send(self, rows: Rows) -> None:
        self.changed += self.session.change(b"".join([self.frame.head, rows.text, self.frame.tail]))
        self.stored = True

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
