"""Rows that can't be stored, written aside in the very transaction that stores the others."""

from __future__ import annotations

from collections.abc import Callable

from pyspark_mysql.client import Session
from pyspark_mysql.engines import require_transactions
from pyspark_mysql.literals import identifier
from pyspark_mysql.tables import read_sql
from sparkonce.protocol import Manifest

Aside = Callable[[str, str], None]
"""Takes a row that can't be stored: why, and the row as JSON."""

ROOM = 4096
LONGEST_REASON = 4000


class DeadLetters:
    """The table of such rows.

    Args:
        session: of the server.
        table: database and name.
    """

    def __init__(self, session: Session, table: tuple[str, ...]) -> None:
        self.session, self.table = session, identifier(*table)
        self.name = table

    def ensure(self, *, create: bool) -> None:
        """Make the table, or see that rows can be written to it."""
        if create:
            self.session.run(read_sql("dead_letter", dead_letter=self.table))
        require_transactions(self.session, self.name)
        names = "sink, epoch, target, reason, row_data"
        nulls = "NULL, NULL, NULL, NULL, NULL"
        self.session.run(f"INSERT INTO {self.table} ({names}) SELECT {nulls} FROM DUAL WHERE 1 = 0")

    def of(self, manifest: Manifest) -> Aside:
        """What takes the rows of an epoch; a row that is larger than a packet is cut."""

        def write(reason: str, row: str) -> None:
            most = (self.session.live.packet - ROOM) // 8
            self.session.run(
                f"INSERT INTO {self.table.replace('%', '%%')}"
                " (sink, epoch, target, reason, row_data)"
                " VALUES (%s, %s, %s, %s, %s)",
                *(manifest.sink, manifest.epoch, manifest.target[:255]),
                *(reason[:LONGEST_REASON], row[:most]),
            )

        return write
