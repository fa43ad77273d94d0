"""Which column of the log is which column of the table: by name, or where it has none, by place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from pyspark_mysql.binlog import tables
from pyspark_mysql.binlog.tables import BinlogColumn, Charset, Charsets, LoggedTable
from pyspark_mysql.target.columns import TableColumn
from sparkonce.errors import StoreRefused

CODES = {
    "tinyint": tables.TINY,
    "smallint": tables.SHORT,
    "mediumint": tables.INT24,
    "int": tables.LONG,
    "bigint": tables.LONGLONG,
    "float": tables.FLOAT,
    "double": tables.DOUBLE,
    "decimal": tables.NEWDECIMAL,
    "bit": tables.BIT,
    "year": tables.YEAR,
    "date": tables.DATE,
    "datetime": tables.DATETIME2,
    "timestamp": tables.TIMESTAMP2,
    "time": tables.TIME2,
    "json": tables.JSON,
    "enum": tables.ENUM,
    "set": tables.SET,
}
"""What the log calls the types of tables; values of others are not read."""

CHOICES = ("enum", "set")
POINTS = ("point", "linestring", "polygon", "geometry")
MANY = ("multipoint", "multilinestring", "multipolygon", "geomcollection", "geometrycollection")
SIZES = ("", "tiny", "medium", "long")
CODES |= {size + kind: tables.BLOB for kind in ("text", "blob") for size in SIZES}
CODES |= dict.fromkeys((*POINTS, *MANY), tables.GEOMETRY)
CODES |= dict.fromkeys(("char", "binary"), tables.STRING)
CODES |= dict.fromkeys(("varchar", "varbinary"), tables.VARCHAR)

WORDS = re.compile(r"(x?)'((?:[^'\\]|''|\\.)*)'")
"""Those of an ENUM or a SET, as the server shows their type; of bytes MySQL shows some as x'ff'."""

SHOWN = ("ascii", "utf8", "utf8mb3")
"""Sets, beside those of one byte, of which the server shows each character."""

LOST, NOT_PLAIN = re.compile(r"\?"), re.compile(r"[^ ->@-~]")
"""What a word may have been another one by: in texts, and in bytes."""

ESCAPES = re.compile(r"''|\\(.)")
ESCAPED = {"n": "\n", "r": "\r", "0": "\0"}
"""What stands for another character in them."""

PERIOD = {"row_start", "row_end"}
"""Columns of MariaDB's system versioned tables. A table may have named them otherwise."""

END_OF_ROW = tables.TIMESTAMP2, 6
"""What the second one is, by which each key of such a table ends."""

UTF8 = Charset("utf8mb4")


@dataclass(frozen=True)
class Layout:
    """The columns of a table, as it is now."""

    table: tuple[str, str]  # its database and its name
    columns: Sequence[TableColumn]  # those that the user may see, in their order
    key: Sequence[str]  # those of its primary key
    charsets: Charsets  # of the server
    whole: bool  # whether these are all columns that it has
    # Whether the server is one. Behind these columns its log may have hashes, one for each unique
    # key that is too long for an index; such keys come and go unseen.
    mariadb: bool

    def named(self, logged: LoggedTable) -> dict[str, int]:
        """The place of each column, by its name in lower case."""
        columns: Sequence[BinlogColumn | TableColumn] = (
            logged.columns if logged.named else self.columns
        )
        return {one.name.lower(): at for at, one in enumerate(columns)}

    def completed(self, logged: LoggedTable) -> LoggedTable:
        """The table with what the log leaves out of it: names, signs, character sets, its key.

        Raises:
            StoreRefused: the log does not tell.
        """
        known, key = list[TableColumn](), logged.key
        if self.mariadb and self.whole and logged.named:
            self._require_no_history(logged)
        if not logged.named:
            self._require_same(logged)
            known = [*self.columns]
            key = tuple(at for at, one in enumerate(known) if one.name in self.key)
        pairs = zip_longest(logged.columns, known)
        return LoggedTable(tuple(self._completed(*one) for one in pairs), key)

    def _completed(self, logged: BinlogColumn, known: TableColumn | None) -> BinlogColumn:
        charset = self.charsets.of(logged.collation, known.charset if known else "")
        if known is None:
            return replace(logged, charset=charset)
        words = words_of(known, charset) if known.kind in CHOICES else ()
        charset = UTF8 if words and charset else charset
        return replace(
            logged, name=known.name, unsigned=_is_unsigned(known), charset=charset, words=words
        )

    def _require_no_history(self, logged: LoggedTable) -> None:
        """Refuse rows of a time when the table was system versioned: those of its history, too."""
        gone = {one.name for one in logged.columns} - {one.name for one in self.columns}
        last = [logged.columns[at] for at in logged.key[1:]][-1:]
        ends = {one.name for one in last if (one.type.code, one.type.meta) == END_OF_ROW}
        if gone >= PERIOD or gone & ends:
            raise StoreRefused(
                f"Rows of table {'.'.join(self.table)} were logged when it was system versioned, or"
                " may have been",
                why="the log has rows of its history, which look like rows that are there",
                todo="bring the target in line with the table, and begin a new query behind the"
                " ALTER",
            )

    def _require_same(self, logged: LoggedTable) -> None:
        if not self.whole:
            raise StoreRefused(
                f"The user may not see all columns of table {'.'.join(self.table)}",
                why="the log has no names of columns (binlog_row_metadata), so that they are told"
                " by their place",
                todo="GRANT SELECT on the table, or SET GLOBAL binlog_row_metadata=FULL, and begin"
                " a new query behind that",
            )
        many = len(self.columns)
        pairs = zip(self.columns, logged.columns[:many], strict=False)
        more = [one.type.code for one in logged.columns[many:]]
        hashes = [tables.LONGLONG] * (len(more) if self.mariadb else 0)
        is_same = len(logged.columns) >= many and more == hashes
        if not is_same or not all(self._is_same(*one) for one in pairs):
            raise StoreRefused(
                f"Rows of table {'.'.join(self.table)} were logged with other columns than it has",
                why="it was altered since, or has columns that are not shown, and the log has no"
                " names of columns (binlog_row_metadata)",
                todo="SET GLOBAL binlog_row_metadata=FULL, and begin a new query behind the ALTER",
            )

    def _is_same(self, known: TableColumn, logged: BinlogColumn) -> bool:
        """Whether a column may be what rows were logged of, by all that the log tells of it."""
        if known.nullable != logged.nullable:
            return False
        if not is_read(known):
            return True
        if known.kind == "json" and logged.type.code == tables.BLOB:  # MariaDB's, which is a text
            return True
        charset = self.charsets.of(logged.collation, known.charset)
        return (
            CODES[known.kind] == logged.type.code
            and logged.unsigned in (None, _is_unsigned(known))
            and _meta(known) in (None, logged.type.meta)
            and charset == self.charsets.of(0, known.charset)
        )


def is_read(column: TableColumn) -> bool:
    """Whether values of a column's type can be read."""
    return column.kind in CODES and not is_compressed(column)


def is_compressed(column: TableColumn) -> bool:
    """Whether MariaDB stores a text as COMPRESSED."""
    return column.sql_type.endswith("COMPRESSED*/")


def _is_unsigned(column: TableColumn) -> bool:
    is_year = column.kind == "year"  # which is, and does not say so
    return is_year or (column.kind not in CHOICES and "unsigned" in column.sql_type.lower())


def _meta(column: TableColumn) -> int | None:
    """What more the log tells, see `ColumnType`; None of a type of which it is not known here."""
    code = CODES[column.kind]
    first, second = [*map(int, re.findall(r"\d+", column.sql_type)), 0, 0][:2]
    if code == tables.NEWDECIMAL:
        return first | second << 8
    if code == tables.BIT:
        return first % 8 | first // 8 << 8
    if code in tables.MOMENTS:
        return first
    if code in (tables.STRING, tables.VARCHAR):
        return column.room * max(column.width, 1)
    return None


def words_of(column: TableColumn, charset: Charset | None) -> tuple[bytes, ...] | None:
    """The words of an ENUM or a SET, in UTF-8; None where the server may show others than it has.

    It shows types in utf8mb3, with a question mark for each character that this lacks.
    """
    found = WORDS.findall(column.sql_type)
    words = [ESCAPES.sub(lambda one: ESCAPED.get(one[1], one[1] or "'"), text) for _, text in found]
    if charset is None or not (charset.letters or charset.name in SHOWN):
        doubt = NOT_PLAIN if charset is None else LOST
        if any(digits for digits, _ in found) or any(map(doubt.search, words)):
            return None
    return tuple(one.encode() for one in words)
