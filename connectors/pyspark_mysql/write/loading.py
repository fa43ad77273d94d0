"""New rows by LOAD DATA LOCAL, which MySQL takes in faster than INSERT.

With LOCAL the server has no errors for rows, but warnings: it makes 127 of 300 in a TINYINT, and
leaves a duplicate out. So rows that were not loaded without any are taken back and inserted.
"""

from __future__ import annotations

from collections.abc import Iterable

import pymysql

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import Kind, known, number
from pyspark_mysql.server.literals import HEX_TEXT, identifier
from pyspark_mysql.target.columns import Column, named, unfilled
from pyspark_mysql.write.chunks import Rows
from pyspark_mysql.write.inserting import STATEMENT, Inserting
from pyspark_mysql.write.plan import TableRows
from sparkonce.change import Append

HERE = "sparkonce_chunk"
NO_SUCH_COMMAND = 1047
"""ProxySQL says so of LOAD DATA LOCAL; a node of Galera that left its cluster says so of all."""

ENOUGH = 100
"""Rows that tell what the others of an epoch may be like."""


def can_load(session: Session, detail: TableRows, columns: Iterable[Column]) -> bool:
    """Whether LOAD DATA does with rows what INSERT does.

    It reads bits from characters, and puts a zero where neither the query nor a trigger has filled
    a column.
    """
    columns = list(columns)
    same = all(column.kind != "bit" for column in columns) and not unfilled(columns, detail.columns)
    return session.live.loads and same


def never_null(detail: TableRows, columns: Iterable[Column]) -> set[str]:
    """Columns whose nulls become zeros: MySQL does not warn of them where there are triggers.

    An INSERT refuses them, or takes what a trigger puts in their place. (MariaDB warns.)
    """
    there = named(columns, detail.columns)
    return {name for name, c in there.items() if not c.nullable and name not in detail.key}


class Loading:
    """Loads rows while they are new, and inserts the others.

    Rows of a plan that only appends are all taken for new. Of others the first are inserted, and
    the server's count says whether any was stored: a LOAD DATA that meets one keeps a shared lock
    on it, by which two writers of the same keys would deadlock.

    Args:
        inserting: the other way.
        detail: of the manifest.
        columns: of the target.
    """

    def __init__(self, inserting: Inserting, detail: TableRows, columns: Iterable[Column]) -> None:
        self.inserting, self.session = inserting, inserting.session
        self.sql, self.loaded = load_statement(detail), False
        self.appends = self.known = self.all_new = isinstance(detail.change, Append)
        self.never_null = set() if self.session.live.mariadb else never_null(detail, columns)

    def begin(self) -> None:
        """See `Way.begin`."""

    def write(self, rows: Rows) -> None:
        """See `Way.write`."""
        for part in rows.within(self.inserting.most if self.known else STATEMENT):
            if not (self.all_new and self._loaded(part)):
                self._insert(part)

    def end(self) -> bool:
        """See `Way.end`."""
        return self.loaded or self.inserting.end()

    def _insert(self, rows: Rows) -> None:
        before = self.inserting.changed
        self.inserting.write(rows)
        if self.known:
            # A keyed row that was not loaded may be stored already, and so may those behind it.
            self.all_new = self.appends
        elif len(rows) >= ENOUGH:
            self.known, self.all_new = True, self.inserting.changed - before == len(rows)

    def _loaded(self, rows: Rows) -> bool:
        """Whether all rows were loaded; else none was."""
        lines = rows.lines
        larger = len(rows.text) > self.inserting.most
        # LOAD DATA can't read the hexadecimal form of a text. A row that is too large for a packet
        # is inserted in vain, which names it or puts it aside.
        if larger or self.never_null & rows.nulls or HEX_TEXT in bytes(lines):
            return False
        # So that these rows can be taken back alone: the chunks before them are in the transaction.
        self.session.run(f"SAVEPOINT {HERE}")
        try:
            loaded = self.session.load(self.sql, lines)
        except pymysql.MySQLError as error:
            if not _may_be_inserted(error):
                raise
            loaded = -1
        if loaded != len(rows):
            self.session.run(f"ROLLBACK TO SAVEPOINT {HERE}")
            return False
        self.loaded = True
        return True


def _may_be_inserted(error: pymysql.MySQLError) -> bool:
    """Whether the transaction goes on, and an INSERT may do what LOAD DATA did not."""
    return number(error) == NO_SUCH_COMMAND or known(error).kind in (Kind.ROW, Kind.REFUSED)


def load_statement(detail: TableRows) -> str:
    """The statement that loads the text of a VALUES list."""
    fields, sets = [], []
    for place, name in enumerate(detail.columns):
        if detail.kinds[name] == "binary":  # X'00ff'
            field = f"@sparkonce_{place}"
            sets.append(f"{identifier(name)} = UNHEX(SUBSTR({field}, 3, LENGTH({field}) - 3))")
        else:
            field = identifier(name)
        fields.append(field)
    return (
        f"LOAD DATA LOCAL INFILE 'sparkonce' INTO TABLE {identifier(*detail.table)}"
        " CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY ''''"
        " ESCAPED BY '' LINES STARTING BY '(' TERMINATED BY '),'"
        f" ({', '.join(fields)})" + (f" SET {', '.join(sets)}" if sets else "")
    )
