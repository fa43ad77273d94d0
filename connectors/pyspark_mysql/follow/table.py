"""The table that is followed, as the server has it, and which of its columns can be."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyspark_mysql.binlog.tables import charsets
from pyspark_mysql.binlog.values import words_unknown
from pyspark_mysql.follow.changes import BEFORE, META, OP, require_readable
from pyspark_mysql.follow.layout import CHOICES, Layout, is_compressed, is_read, words_of
from pyspark_mysql.read.columns import ResultColumn, described
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from sparkonce import checks
from sparkonce.errors import StoreRefused

log = logging.getLogger("sparkonce")

NAMED = """
SELECT table_schema, table_name, table_type, engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
LOGS_NAMES = "SHOW GLOBAL VARIABLES LIKE 'binlog\\_row\\_metadata'"
"""FULL where the server logs names of columns, words of ENUM and SET, and keys."""

SHOW_ALL = (
    "SET @shown = 1"
    "/*!80030 , SESSION show_gipk_in_create_table_and_information_schema = ON */"  # not by MariaDB
)
"""By it MySQL shows the primary key that it made by itself, which rows in the log have."""

LOGS_KEYS = "SHOW GLOBAL VARIABLES LIKE 'innodb\\_native\\_foreign\\_keys'"
"""Since MySQL 9.6; OFF where the server logs what foreign keys do to rows."""

CHANGED_BY_OTHERS = """
SELECT constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
  AND (delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL'))
"""

LEAVE_OUT = "leave it out by option columns"


@dataclass(frozen=True)
class FollowedTable:
    """A table."""

    name: tuple[str, str]  # its database and its name, as the log has them
    engine: str  # that stores it
    key: tuple[str, ...]  # columns of its primary key; empty if there is none
    columns: Mapping[str, ResultColumn]  # as the server describes them, by name
    layout: Layout  # what rows of the log are named by
    logs_names: bool  # whether the log has names of its columns, from now on
    cascade: str = ""  # a foreign key that changes its rows, which the log does not tell; or empty

    @property
    def full_name(self) -> str:
        """Its name in errors."""
        return ".".join(self.name)

    @property
    def relation(self) -> str:
        """What stands behind FROM."""
        return identifier(*self.name)

    def column(self, name: str) -> ResultColumn:
        """The column of that name, in its case or another; an `OptionError` if there is none."""
        names = pa.schema([(one, pa.null()) for one in self.columns])
        return self.columns[checks.column("columns", name, names)]

    def require_columns(self, schema: pa.Schema) -> None:
        """Refuse columns that can't be followed, or not as the types of a schema.

        Raises:
            OptionError: the table has no such column, or its values would change.
            StoreRefused: values of its type or character set are not read from the log.
        """
        for field in schema:
            inner = [*field.type] if field.name == BEFORE else [field]
            for one in inner if field.name not in META else ():
                column = self.column(one.name)
                self._require_read(column.name)
                require_readable(column, one.type)

    def require_key(self) -> None:
        """Refuse a primary key whose values can't be read from the log."""
        for name in self.key:
            self._require_read(name, "begin with startingPosition=latest, and leave it out")

    def _require_read(self, name: str, todo: str = LEAVE_OUT) -> None:
        column = next(one for one in self.layout.columns if one.name == name)
        if not is_read(column):
            kind = f"{column.kind} COMPRESSED" if is_compressed(column) else column.kind
            raise StoreRefused(
                f"Column {name!r} of type {kind} can't be followed",
                why="the binary log has its values in a form that is not known here",
                todo=f"{todo}, or ALTER it to a type that every server has",
            )
        charset = self.layout.charsets.of(0, column.charset)
        if charset and not charset.is_read:
            raise StoreRefused(
                f"Column {name!r} of character set {charset.name} can't be followed",
                why="of some of its bytes Python makes other characters than the server",
                todo=f"{todo}, or ALTER it to utf8mb4",
            )
        if not self.logs_names and column.kind in CHOICES and words_of(column, charset) is None:
            raise words_unknown(name)


def followed(session: MySqlSession, named: Sequence[str]) -> FollowedTable:
    """Ask for a table, by its name, with its database before it if that is not the session's.

    Raises:
        StoreRefused: there is no such table.
    """
    with session.connected() as live:
        live.run(SHOW_ALL)
        name, engine = _found(session, (session.database, *named)[-2:])
        target = lookup.look_up(session, name)
        primary = next((one.columns for one in target.indexes if one.name == "PRIMARY"), [])
        names = ", ".join(identifier(one.name) for one in target.columns)  # invisible ones, too
        columns = {one.name: one for one in described(session, identifier(*name), names)}
        layout = Layout(
            *(name, target.columns, primary, charsets(session)),
            whole=bool(lookup.definitions(session, [name])),  # shown to nobody who sees only some
            mariadb=live.mariadb,
        )
        logs_names = session.run(LOGS_NAMES) == (("binlog_row_metadata", "FULL"),)
        logs_keys = session.run(LOGS_KEYS) == (("innodb_native_foreign_keys", "OFF"),)
        changing = () if logs_keys else session.run(CHANGED_BY_OTHERS, *name)
        cascade = str(changing[0][0]) if changing else ""
        return FollowedTable(name, engine, tuple(primary), columns, layout, logs_names, cascade)


def _found(session: MySqlSession, name: tuple[str, ...]) -> tuple[tuple[str, str], str]:
    """The server's own name of a table, and its engine."""
    rows = [tuple(map(str, row)) for row in session.run(NAMED, *name)]
    row = min(rows, key=lambda one: one[:2] != name, default=None)  # others differ by case
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


def warn(table: FollowedTable, schema: pa.Schema) -> None:
    """Warn of changes that a stream of these columns does not have, or does not tell as such.

    See https://dev.mysql.com/doc/refman/8.4/en/innodb-and-mysql-replication.html.
    """
    if not table.key and table.layout.whole:
        log.warning(
            "Table %s has no primary key: a sink that has one keeps the old row where an update"
            " changes a column of it. Why: nothing tells that it is another row then. What to do:"
            " give the table a primary key, and the sink the same one",
            table.full_name,
        )
    if OP not in schema.names:
        log.warning(
            "The stream of %s has no column %s. Why: .schema(...) leaves it out, so rows that were"
            " deleted look like rows that are there. What to do: name it, too",
            *(table.full_name, OP),
        )
    if table.cascade:
        log.warning(
            "Foreign key %s of %s changes its rows when rows of another table change, and a"
            " stream does not have these changes. Why: InnoDB makes them, and they are not in the"
            " binary log. What to do: let applications change rows of both",
            *(table.cascade, table.full_name),
        )
