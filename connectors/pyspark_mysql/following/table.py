"""The table that is followed: its name and its columns, as the server has them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pymysql

from pyspark_mysql.following.layout import Layout
from pyspark_mysql.reading.described import Described, described
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.engines import BASE_TABLES
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from sparkonce.errors import StoreRefused

log = logging.getLogger("sparkonce")

NAMED = """
SELECT table_schema, table_name, table_type, engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
CHARSETS = [
    f"SELECT id, character_set_name FROM information_schema.{table} WHERE id IS NOT NULL"
    for table in ("collation_character_set_applicability", "collations")
]
UNKNOWN_COLUMN = 1054
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
    """

    name: tuple[str, str]
    engine: str
    key: tuple[str, ...]
    columns: Mapping[str, Described]
    layout: Layout

    @property
    def relation(self) -> str:
        """What stands behind FROM."""
        return identifier(*self.name)


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
    columns = {one.name: one for one in described(session, identifier(*name))}
    layout = Layout(name, target.columns, _charsets(session))
    return Followed(name, engine, tuple(primary), columns, layout)


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
    if row[2] not in BASE_TABLES:
        raise StoreRefused(
            f"{shown} is a {row[2].lower()}",
            why="the binary log has rows of base tables alone",
            todo="name the table that it is made of",
        )
    return (row[0], row[1]), row[3]


def _charsets(session: Session) -> dict[int, str]:
    """Character sets by the numbers of their collations; MariaDB has all in another table."""
    for asked in CHARSETS:
        try:
            return {int(one): str(name) for one, name in session.run(asked)}
        except pymysql.MySQLError as error:
            if number(error) != UNKNOWN_COLUMN:
                raise
    return {}


def tell_cascades(session: Session, table: Followed) -> None:
    """Warn of a foreign key that changes rows of which the log does not tell.

    See https://dev.mysql.com/doc/refman/8.4/en/innodb-and-mysql-replication.html.
    """
    if found := session.run(CHANGED_BY_OTHERS, *table.name):
        log.warning(
            "Foreign key %s of %s changes its rows when rows of another table change, and a"
            " stream does not have these changes. Why: InnoDB makes them, and they are not in the"
            " binary log (before MySQL 9.6). What to do: let applications change rows of both",
            *(found[0][0], ".".join(table.name)),
        )
