"""The target as the server describes it: looked up once, and then only read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pymysql

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.columns import Column, named
from sparkonce.change import Names

if TYPE_CHECKING:
    from pyspark_mysql.write.plan import TableRows

NO_RIGHT = 1142
INSTANT = "timestamp"
NEXT = re.compile(r" AUTO_INCREMENT=\d+")
"""The number of the next row, which each row moves."""

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
SELECT index_name, column_name, sub_part, nullable, non_unique
FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s
ORDER BY index_name, seq_in_index
"""


@dataclass
class Index:
    """An index of a table.

    Attributes:
        unique: it is the primary key, or a unique one.
        whole: it is made of whole columns, not of expressions or of the first part of a column.
        nullable: one of its columns may be null.
    """

    name: str
    columns: list[str]
    unique: bool
    whole: bool = True
    nullable: bool = False

    def is_of(self, names: Sequence[str]) -> bool:
        """Whether it is made of just these columns."""
        return self.whole and {c.lower() for c in self.columns} == {n.lower() for n in names}

    @property
    def shown(self) -> str:
        """The key for messages."""
        return f"{self.name} ({', '.join(self.columns)}{'' if self.whole else ', in part'})"


@dataclass(frozen=True)
class Target:
    """A table.

    Attributes:
        columns: all of them, in order.
        indexes: all of them, the primary key too.
    """

    columns: list[Column]
    indexes: list[Index]

    def column(self, name: str) -> Column | None:
        """The column of that name, in any case of letters."""
        same = (column for column in self.columns if column.name.lower() == name.lower())
        return next(same, None)

    @property
    def unique_keys(self) -> list[Index]:
        """The primary key and the unique indexes."""
        return [index for index in self.indexes if index.unique]

    def is_ambiguous(self, detail: TableRows) -> bool:
        """Whether a row could be taken for a stored one by another unique key than its own."""
        return detail.updates and bool(self.others(detail))

    def others(self, detail: TableRows) -> list[Index]:
        """Unique keys besides that of the rows in which a row could have a stored one's value.

        It has none in a key with a column that the server numbers, unless the query fills it.
        """
        fills = {name.lower() for name in detail.columns}
        own = {c.name for c in self.columns if c.numbered and c.name.lower() not in fills}
        return [
            key
            for key in self.unique_keys
            if not key.is_of(detail.key) and not (key.whole and own.intersection(key.columns))
        ]

    def holds_instants(self, names: Iterable[str]) -> bool:
        """Whether the server shifts values of these columns by the time zone of a session."""
        there = named(self.columns, names).values()
        return any(column.kind == INSTANT for column in there)

    def computes_time(self, names: Iterable[str]) -> bool:
        """Whether a column beside these may be set to a time of day. An instant has none."""
        given = {name.lower() for name in names}
        left = (column for column in self.columns if column.name.lower() not in given)
        return any(column.computed and column.kind != INSTANT for column in left)

    def is_indexed(self, key: Sequence[str]) -> bool:
        """Whether an index begins with a column of a key."""
        names = {name.lower() for name in key}
        return any(index.columns[0].lower() in names for index in self.indexes)


def look(session: Session, table: Names) -> Target:
    """Ask the server for a table, by database and name.

    Raises:
        pymysql.MySQLError: it does not answer.
    """
    columns, indexes = columns_of(session, table), indexes_of(session, table)
    # MariaDB puts the end of a row's life into each unique key of a versioned table.
    ends = {column.name for column in columns if column.of_period}
    for index in indexes:
        index.columns = [name for name in index.columns if name not in ends] or index.columns
    return Target(columns, indexes)


def columns_of(session: Session, table: Names) -> list[Column]:
    """The columns of a table. Raises as `look`."""
    return described(session, table)[1]


def described(session: Session, table: Names) -> tuple[Names, list[Column]]:
    """The server's own name of a table, and its columns. Raises as `look`.

    With lower_case_table_names a table answers to several names.
    """
    rows = session.run(COLUMNS, *table)
    own = tuple(map(_text, rows[0][-2:])) if rows else tuple(table)
    return own, [_column(row) for row in rows]


def indexes_of(session: Session, table: Sequence[str]) -> list[Index]:
    """The indexes of a table. Raises as `look`."""
    return _indexes(session.run(INDEXES, *table))


def definitions(session: Session, tables: Iterable[Sequence[str]]) -> list[str]:
    """What the server would make tables anew by: an altered one has another definition.

    Empty where the user may not see one, having rights to single columns only.

    Raises:
        pymysql.MySQLError: a table is not there, or the server does not answer.
    """
    try:
        shown = [session.run(f"SHOW CREATE TABLE {identifier(*table)}") for table in tables]
    except pymysql.MySQLError as error:
        if number(error) != NO_RIGHT:
            raise
        return []
    return [NEXT.sub("", definition) for ((_, definition, *_),) in shown]


def stored(detail: TableRows, target: Target) -> TableRows:
    """The same plan without the sequence, where the table has no such column."""
    if not detail.order or target.column(detail.order):
        return detail
    columns = tuple(name for name in detail.columns if name != detail.order)
    return replace(detail, columns=columns)


def _column(row: Sequence[Any]) -> Column:
    name, kind, shown, scale, extra, nullable, default, charset, width, room, life, *_ = row
    extra, default = str(extra).lower(), None if default is None else _text(default)
    # An expression has brackets in MariaDB, where a text has quotes.
    expressed = default is not None and "(" in default and not default.startswith("'")
    return Column(
        name,
        _text(kind).lower(),
        _text(shown),
        int(scale),
        # MySQL says DEFAULT_GENERATED of a default that is an expression.
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


def _indexes(found: Sequence[Sequence[Any]]) -> list[Index]:
    indexes: dict[str, Index] = {}
    for name, column, part, nullable, non_unique in found:
        index = indexes.setdefault(name, Index(name, [], unique=not int(non_unique)))
        index.columns.append(column or "an expression")
        index.whole = index.whole and column is not None and part is None
        index.nullable = index.nullable or nullable == "YES"
    return list(indexes.values())


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
