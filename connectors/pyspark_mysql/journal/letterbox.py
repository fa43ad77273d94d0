"""Tables of dead letters, as ``sparkonce letters`` shows them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pyspark_mysql.journal.dead_letters import COLUMNS
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import translated
from pyspark_mysql.server.literals import identifier
from sparkonce.letterbox import VARIES, Kind, StoredLetter, armored, readable

DROPPED = 500
"""Letters that one statement deletes."""


def boxes(session: Session, database: str) -> Iterator[Box]:
    """The tables of a database that have the columns of dead letters."""
    columns = COLUMNS.split(", ")
    named = ", ".join("%s" for _ in columns)
    found = session.run(
        "SELECT table_name FROM information_schema.columns"
        " JOIN information_schema.tables USING (table_schema, table_name)"
        f" WHERE table_type = 'BASE TABLE' AND table_schema = %s AND column_name IN ({named})"
        " GROUP BY table_name HAVING COUNT(*) = %s ORDER BY table_name",
        *(database, *columns, len(columns)),
    )
    return (Box(session, (database, name)) for (name,) in found)


class Box:
    """See `sparkonce.letterbox.Letterbox`.

    Args:
        session: of the server.
        table: database and name.
    """

    def __init__(self, session: Session, table: tuple[str, ...]) -> None:
        self.session, self.name = session, ".".join(table)
        self.quoted = identifier(*table)
        # The client puts values in place of %s.
        self.table = self.quoted.replace("%", "%%")

    def kinds(self) -> list[Kind]:
        """See `Letterbox.kinds`."""
        found = self._read(
            "SELECT BINARY sink AS whose, REGEXP_REPLACE(reason, %s, '...') AS kind,"
            f" COUNT(*) AS letters, CAST(MAX(at) AS CHAR) FROM {self.table}"
            " GROUP BY whose, kind ORDER BY letters DESC",
            VARIES,
        )
        return [Kind(bytes(sink).decode(), kind, int(n), last) for sink, kind, n, last in found]

    def read(self, sink: str | None, most: int) -> list[StoredLetter]:
        """See `Letterbox.read`."""
        # As bytes: the column may compare without case, which names of sinks do not.
        whose = "" if sink is None else "WHERE BINARY sink = %s "
        found = self._read(
            f"SELECT id, CAST(at AS CHAR), {COLUMNS} FROM {self.table} {whose}ORDER BY id LIMIT %s",
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
    id_, at, sink, epoch, partition, target, reason, key, told, base64 = row
    where = (sink, epoch, partition, target)
    return StoredLetter(str(id_), at, *where, reason, key, told, armored(base64))
