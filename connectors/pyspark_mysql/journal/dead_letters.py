"""The table of rows that can't be stored, written in the transaction that stores the others."""

from __future__ import annotations

import json

from pyspark_mysql.journal.tables import read_sql
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.engines import is_there, require_transactions
from pyspark_mysql.server.literals import identifier
from sparkonce.exactly_once.bad_rows import MaxBadRows
from sparkonce.protocol import Manifest
from sparkonce.values.letters import Letter

ROOM = 64 * 1024
LONGEST_REASON = 4000
CUT = "larger than the server takes, and cut: "
COLUMNS = "sink, epoch, partition_id, target, reason, row_key, row_data, base64"


class DeadLetters:
    """The table of such rows.

    Args:
        session: of the server.
        table: database and name.
        most: how many rows of an epoch it takes.
    """

    def __init__(self, session: Session, table: tuple[str, ...], most: MaxBadRows) -> None:
        self.session, self.table = session, identifier(*table)
        # The client puts values in place of %s.
        self.quoted = self.table.replace("%", "%%")
        self.name, self.most = table, most

    def ensure(self) -> None:
        """See that rows can be written to the table; make it if it is not there."""
        # CREATE TABLE IF NOT EXISTS asks for the right to create even where the table is there.
        if not is_there(self.session, self.name):
            self.session.run(read_sql("dead_letter", dead_letter=self.table))
        require_transactions(self.session, self.name)
        self.hold()

    def hold(self) -> None:
        """See that rows can be written to it; in a transaction it is not altered from then on."""
        # By INSERT, the only right to this table that the user needs.
        nulls = ", ".join("NULL" for _ in COLUMNS.split(","))
        self.session.run(
            f"INSERT INTO {self.table} ({COLUMNS}) SELECT {nulls} FROM DUAL WHERE 1 = 0"
        )

    def write(self, manifest: Manifest, letter: Letter, partition: int | None) -> None:
        """Write a letter; one that is larger than a packet is cut, and says so."""
        # The client may write each byte as two.
        most = (self.session.live.packet - ROOM) // 2
        row, key, base64 = letter.row, letter.key, json.dumps(letter.base64)
        room = most - sum(len(text.encode()) for text in (key, base64))
        reason = letter.reason
        if len(row.encode()) > room:
            key, base64 = _cut(key, most // 4), _cut(base64, most // 4)
            reason, row = CUT + reason, _cut(row, most // 2)
        marks = ", ".join("%s" for _ in COLUMNS.split(","))
        self.session.run(
            f"INSERT INTO {self.quoted} ({COLUMNS}, at) VALUES ({marks}, UTC_TIMESTAMP(6))",
            *(manifest.sink, manifest.epoch, partition, manifest.target[:255]),
            *(reason[:LONGEST_REASON], key, row, base64),
        )


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")
