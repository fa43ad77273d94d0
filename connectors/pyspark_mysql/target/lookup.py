"""The target as the server describes it. The description is immutable after the look-up.

Functions that query the server raise pymysql.MySQLError if it does not reply.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.columns import TableColumn, named
from sparkonce.change import Names

NO_RIGHT = 1142
INSTANT = "timestamp"
NEXT = re.compile(r" AUTO_INCREMENT=\d+")
"""The number of the next row, which every new row changes."""

COLUMNS = """
SELECT column_name, data_type, column_type, COALESCE(numeric_scale, 0), extra, is_nullable,
  column_default, COALESCE(character_set_name, ''),
  (SELECT maxlen FROM information_schema.character_sets AS known
    WHERE known.character_set_name = columns.character_set_name),
  COALESCE(IF(data_type LIKE '%%text', character_octet_length, character_maximum_length),
    (numeric_precision + 7) DIV 8, 0),
  generation_expression IN ('ROW START', 'ROW END'), table_schema, table_name
FROM information_schema.columns AS columns WHERE table_schema = %s AND table_name = %s
ORDER BY ordinal_position
"""
INDEXES = """
SELECT index_name, column_name, sub_part, nullable, non_unique, index_type
FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s
ORDER BY index_name, seq_in_index
"""
TRIGGERS = """
SELECT event_manipulation, action_timing FROM information_schema.triggers
WHERE event_object_schema = %s AND event_object_table = %s
"""


@dataclass
class TableIndex:
    """An index of a table.

    Attributes:
        unique: it is the primary key or a unique index.
        whole: it has whole columns, no expression and no prefix of a column.
        nullable: one of its columns may be null.
        finds: it finds rows by the value of its first column; not one of texts or places.
    """

    name: str
    columns: list[str]
    unique: bool
    whole: bool = True
    nullable: bool = False
    finds: bool = True

    def is_of(self, names: Sequence[str]) -> bool:
        """Whether it has exactly these columns."""
        return self.whole and {c.lower() for c in self.columns} == {n.lower() for n in names}

    def __str__(self) -> str:
        """The form for messages."""
        return f"{self.name} ({', '.join(self.columns)}{'' if self.whole else ', in part'})"


@dataclass(frozen=True)
class Target:
    """A table: all its columns, in order, and all its indexes, including the primary key."""

    columns: list[TableColumn]
    indexes: list[TableIndex]

    @property
    def unique_keys(self) -> list[TableIndex]:
        """The primary key and the unique indexes."""
        return [index for index in self.indexes if index.unique]

    def others(self, own_key: Names, columns: Names) -> list[TableIndex]:
        """Unique keys besides `own_key` in which a row of these columns could equal a stored one.

        A key with an auto-increment column is excluded, unless the query fills that column.
        """
        fills = {name.lower() for name in columns}
        own = {c.name for c in self.columns if c.numbered and c.name.lower() not in fills}
        return [
            key
            for key in self.unique_keys
            if not key.is_of(own_key) and not (key.whole and own.intersection(key.columns))
        ]

    def finds_by(self, names: Container[str]) -> bool:
        """Whether an index begins with one of these columns, whose names are in lower case."""
        return any(one.finds and one.columns[0].lower() in names for one in self.indexes)

    def holds_instants(self, names: Iterable[str]) -> bool:
        """Whether the server converts values of these columns by the session's time zone."""
        there = named(self.columns, names).values()
        return any(column.kind == INSTANT for column in there)

    def computes_time(self, names: Iterable[str]) -> bool:
        """Whether the server may set another column to a local time; instants do not count."""
        given = {name.lower() for name in names}
        left = (column for column in self.columns if column.name.lower() not in given)
        return any(column.computed and column.kind != INSTANT for column in left)


def look_up(session: MySqlSession, table: Names) -> Target:
    """Look up a table on the server, by database and name."""
    _, columns = columns_of(session, table)
    # MariaDB adds the end of a row's period to each unique key of a versioned table.
    ends = {column.name for column in columns if column.of_period}
    indexes = indexes_of(session, table)
    for index in indexes:
        index.columns = [name for name in index.columns if name not in ends] or index.columns
    return Target(columns, indexes)


def columns_of(session: MySqlSession, table: Names) -> tuple[Names, list[TableColumn]]:
    """The server's name of a table, and its columns.

    With lower_case_table_names a table has several names.
    """
    rows = session.run(COLUMNS, *table)
    own = tuple(map(_text, rows[0][-2:])) if rows else tuple(table)
    return own, [_column(row) for row in rows]


def indexes_of(session: MySqlSession, table: Names) -> list[TableIndex]:
    """The indexes of a table."""
    indexes: dict[str, TableIndex] = {}
    for name, column, part, nullable, non_unique, kind in session.run(INDEXES, *table):
        index = indexes.setdefault(name, TableIndex(name, [], unique=not int(non_unique)))
        index.columns.append(column or "an expression")
        index.whole = index.whole and column is not None and part is None
        index.nullable = index.nullable or nullable == "YES"
        index.finds = _text(kind) in ("BTREE", "HASH")
    return list(indexes.values())


def triggers(session: MySqlSession, table: Names) -> set[tuple[str, str]]:
    """Event and timing of the triggers that the user may see, for example ("INSERT", "BEFORE")."""
    return {(_text(event), _text(timing)) for event, timing in session.run(TRIGGERS, *table)}


def definitions(session: MySqlSession, tables: Iterable[Sequence[str]]) -> list[str]:
    """The statements that would create the tables: an altered table has another definition.

    Empty if the user may not see a definition, because of rights to only single columns.
    """
    try:
        found = [session.run(f"SHOW CREATE TABLE {identifier(*table)}") for table in tables]
    except pymysql.MySQLError as error:
        if number(error) != NO_RIGHT:
            raise
        return []
    return [NEXT.sub("", definition) for ((_, definition, *_),) in found]


def _column(row: Sequence[Any]) -> TableColumn:
    name, kind, sql_type, scale, extra, nullable, default, charset, width, room, life, *_ = row
    extra, default = str(extra).lower(), None if default is None else _text(default)
    # In MariaDB the default is an expression if it has brackets, and a text if it has quotes.
    expressed = default is not None and "(" in default and not default.startswith("'")
    return TableColumn(
        name,
        _text(kind).lower(),
        _text(sql_type),
        int(scale),
        # MySQL has DEFAULT_GENERATED for a default that is an expression.
        generated="virtual" in extra or "stored" in extra or "persistent" in extra,
        numbered="auto_increment" in extra,
        nullable=nullable == "YES",
        has_default=default is not None,
        charset=str(charset),
        width=int(width or 0),
        room=int(room),
        of_period=bool(life),
        computed=expressed or "default_generated" in extra or "on update" in extra,
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
