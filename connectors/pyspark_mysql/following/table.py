"""The table that is followed: its name and its columns, as the server has them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyspark_mysql.following.charsets import charsets
from pyspark_mysql.following.layout import Layout
from pyspark_mysql.reading.described import Described, described
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from sparkonce import checks
from sparkonce.errors import StoreRefused

log = logging.getLogger("sparkonce")

NAMED = """
SELECT table_schema, table_name, table_type, engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
HIDDEN = """
SELECT COUNT(DISTINCT index_name) FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND index_type = 'HASH'
"""
"""MariaDB's unique keys that are too long for an index; each has a column that is not shown."""

LOGS_KEYS = "SHOW GLOBAL VARIABLES LIKE 'innodb\\_native\\_foreign\\_keys'"
"""Since MySQL 9.6; OFF where the server logs what foreign keys do to rows."""

CHANGED_BY_OTHERS = """
SELECT constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
  AND (delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL'))
"""


@dataclass(frozen=True)
class Followed:
    """A table.

    Attributes:
        name: its database and its name, as the log has them.
        engine: that stores it.
        key: columns of its primary key; empty if there is none.
        columns: as the server describes them, by name.
        layout: what rows of the log are named by.
        cascade: a foreign key that changes its rows, which the log does not tell; or empty.
    """

    name: tuple[str, str]
    engine: str
    key: tuple[str, ...]
    columns: Mapping[str, Described]
    layout: Layout
    cascade: str = ""

    @property
    def relation(self) -> str:
        """What stands behind FROM."""
        return identifier(*self.name)

    def column(self, name: str) -> Described:
        """The column of that name, in its case or another.

        Raises:
            OptionError: there is none.
        """
        names = pa.schema([(one, pa.null()) for one in self.columns])
        return self.columns[checks.column("columns", name, names)]


def followed(session: Session, named: Sequence[str]) -> Followed:
    """Ask for a table.

    Args:
        session: asks.
        named: its name, with its database before it if that is not the session's.

    Raises:
        pymysql.MySQLError: the server does not answer.
        StoreRefused: there is no such table.
    """
    name, engine = _found(session, (session.database, *named)[-2:])
    target = lookup.look(session, name)
    primary = next((one.columns for one in target.indexes if one.name == "PRIMARY"), [])
    names = ", ".join(identifier(one.name) for one in target.columns)  # invisible ones, too
    columns = {one.name: one for one in described(session, identifier(*name), names)}
    layout = Layout(name, target.columns, charsets(session), _hidden(session, name, engine))
    return Followed(name, engine, tuple(primary), columns, layout, _cascade(session, name))


def _hidden(session: Session, name: tuple[str, str], engine: str) -> int:
    """How many columns the log has of which MariaDB does not tell."""
    if engine == "MEMORY":  # whose indexes are all of that type
        return 0
    ((many,),) = session.run(HIDDEN, *name)
    return int(many)


def _cascade(session: Session, name: tuple[str, str]) -> str:
    """A foreign key that changes rows unlogged."""
    if session.run(LOGS_KEYS) == (("innodb_native_foreign_keys", "OFF"),):
        return ""
    found = session.run(CHANGED_BY_OTHERS, *name)
    return str(found[0][0]) if found else ""


def _found(session: Session, name: tuple[str, ...]) -> tuple[tuple[str, str], str]:
    found = [tuple(map(str, row)) for row in session.run(NAMED, *name)]
    rows = {row[:2]: row for row in found}
    row = rows.get(name) or next(iter(found), None)
    shown = ".".join(name)
    if row is None:
        raise StoreRefused(
            f"There is no table {shown}",
            why="or the user has no right to read it",
            todo="mend option url or dbtable, or grant SELECT on the table",
        )
    if row[2] == "SYSTEM VERSIONED":
        raise StoreRefused(
            f"Table {shown} is system versioned",
            why="the binary log has rows of its history, which look like rows that are there",
            todo="ALTER TABLE ... DROP SYSTEM VERSIONING, or follow another table",
        )
    if row[2] != "BASE TABLE":
        raise StoreRefused(
            f"{shown} is a {row[2].lower()}",
            why="the binary log has rows of base tables alone",
            todo="name the table that it is made of",
        )
    return (row[0], row[1]), row[3]


def tell_cascades(table: Followed) -> None:
    """Warn of a foreign key that changes rows of which the log does not tell.

    See https://dev.mysql.com/doc/refman/8.4/en/innodb-and-mysql-replication.html.
    """
    if table.cascade:
        log.warning(
            "Foreign key %s of %s changes its rows when rows of another table change, and a"
            " stream does not have these changes. Why: InnoDB makes them, and they are not in the"
            " binary log. What to do: let applications change rows of both",
            *(table.cascade, ".".join(table.name)),
        )
