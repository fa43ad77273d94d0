"""Tables of dead letters: writes them, and reads them for ``sparkonce letters``.

The transaction that stores the other rows also writes the dead letters, so each is written once.
See sql/dead_letter.sql.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from pyspark_mysql.journal.tables import is_there, read_sql, require_transactions
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import translated
from pyspark_mysql.server.literals import identifier, placeholders
from sparkonce.exactly_once.bad_rows import MaxBadRows
from sparkonce.letterbox import VARIES, LetterKind, StoredLetter, base64_columns, readable
from sparkonce.protocol import Manifest
from sparkonce.values.letters import Letter

ROOM = 64 * 1024
LONGEST_REASON = 4000
CUT = "cut, because it is larger than the server accepts: "
COLUMNS = ("sink", "epoch", "partition_id", "target", "reason", "row_key", "row_data", "base64")
NAMED = ", ".join(COLUMNS)

DROPPED = 500
"""The maximum number of dead letters that one statement deletes."""


class DeadLetters:
    """A table of dead letters, by database and name; `most` limits the bad rows of an epoch."""

    def __init__(self, session: MySqlSession, table: tuple[str, ...], most: MaxBadRows) -> None:
        self.session, self.table = session, identifier(*table)
        self.name, self.most = table, most

    def ensure(self) -> None:
        """Verify that rows can be written to the table; create a missing table."""
        with translated("checking the table of option deadLetter"):
            # CREATE TABLE IF NOT EXISTS needs the right to create even if the table exists.
            if not is_there(self.session, self.name):
                self.session.run(read_sql("dead_letter", dead_letter=self.table))
            require_transactions(self.session, self.name)
            self.hold()

    def hold(self) -> None:
        """Verify that rows can be written to the table; a transaction then blocks ALTER."""
        # By INSERT, the only right that the user needs for this table.
        nulls = ", ".join(["NULL"] * len(COLUMNS))
        self.session.run(f"INSERT INTO {self.table} ({NAMED}) SELECT {nulls} FROM DUAL WHERE 1 = 0")

    def write(self, manifest: Manifest, letter: Letter, partition: int | None) -> None:
        """Write a dead letter; one larger than a packet is cut, and its reason says so."""
        # The client may send each byte as two.
        most = (self.session.live.packet - ROOM) // 2
        row, key, base64 = letter.row, letter.key, json.dumps(letter.base64)
        room = most - len(key.encode()) - len(base64.encode())
        reason = letter.reason
        if len(row.encode()) > room:
            key, base64 = _cut(key, most // 4), _cut(base64, most // 4)
            reason, row = CUT + reason, _cut(row, most // 2)
        # The client replaces %s by values.
        self.session.run(
            f"INSERT INTO {self.table.replace('%', '%%')} ({NAMED}, at)"
            f" VALUES ({placeholders(COLUMNS)}, UTC_TIMESTAMP(6))",
            *(manifest.sink, manifest.epoch, partition, manifest.target[:255]),
            *(reason[:LONGEST_REASON], key, row, base64),
        )


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def letterboxes(session: MySqlSession) -> list[LetterBox]:
    """The tables of the session's database that have the columns of dead letters."""
    found = session.run(
        "SELECT table_name FROM information_schema.columns"
        " JOIN information_schema.tables USING (table_schema, table_name)"
        " WHERE table_type = 'BASE TABLE' AND table_schema = %s"
        f" AND column_name IN ({placeholders(COLUMNS)})"
        " GROUP BY table_name HAVING COUNT(*) = %s ORDER BY table_name",
        *(session.database, *COLUMNS, len(COLUMNS)),
    )
    return [LetterBox(session, (session.database, name)) for (name,) in found]


class LetterBox:
    """See `sparkonce.letterbox.Letterbox`; `table` is database and name."""

    def __init__(self, session: MySqlSession, table: tuple[str, ...]) -> None:
        self.session, self.name = session, ".".join(table)
        self.quoted = identifier(*table)
        # The client replaces %s by values.
        self.table = self.quoted.replace("%", "%%")

    def kinds(self) -> list[LetterKind]:
        """See `Letterbox.kinds`."""
        found = self._read(
            "SELECT BINARY sink AS whose, REGEXP_REPLACE(reason, %s, '...') AS kind,"
            f" COUNT(*) AS letters, CAST(MAX(at) AS CHAR) FROM {self.table}"
            " GROUP BY whose, kind ORDER BY letters DESC",
            VARIES,
        )
        return [
            LetterKind(bytes(sink).decode(), kind, int(n), last) for sink, kind, n, last in found
        ]

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """See `Letterbox.read`."""
        # BINARY: the column may ignore case, but names of sinks do not.
        whose = "" if sink is None else "WHERE BINARY sink = %s "
        found = self._read(
            f"SELECT id, CAST(at AS CHAR), {NAMED} FROM {self.table} {whose}ORDER BY id LIMIT %s",
            *(() if sink is None else (sink,)),
            most,
        )
        rows = ((str(row[0]), row) for row in found)
        return list(readable(f"table {self.name}", rows, _letter, self._look))

    def _look(self, id_: str) -> str:
        which = f"FROM {self.quoted} WHERE id = {id_}"
        return f"SELECT * {which}, then DELETE {which}"

    def drop(self, ids: Collection[str]) -> int:
        """See `Letterbox.drop`."""
        named, gone = [one for one in ids if one.isdigit()], 0
        for start in range(0, len(named), DROPPED):
            some = named[start : start + DROPPED]
            sql = f"DELETE FROM {self.quoted} WHERE id IN ({', '.join(some)})"
            with translated(f"deleting dead letters in {self.name}"):
                gone += self.session.change(sql.encode())
        return gone

    def _read(self, sql: str, *args: Any) -> Sequence[tuple[Any, ...]]:
        with translated(f"reading dead letters in {self.name}"):
            return self.session.run(sql, *args)


def _letter(row: tuple[Any, ...]) -> StoredLetter:
    id_, *others, base64 = row
    return StoredLetter(*(str(id_), *others, base64_columns(base64)))
