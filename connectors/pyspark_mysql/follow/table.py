"""The followed table as the server has it, and the match of logged columns with its columns.

Columns match by name, or by place if the log has no names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import pyarrow as pa
from pyarrow import types

from pyspark_mysql.binlog import tables
from pyspark_mysql.binlog.tables import BinlogColumn, Charset, Charsets, LoggedTable, charsets
from pyspark_mysql.binlog.values import SHOWN_TYPES, words_unknown
from pyspark_mysql.read.columns import ResultColumn, described, wire_form
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from pyspark_mysql.target.columns import TableColumn
from sparkonce import checks
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.values.spark_types import type_name

OP, GTID, TS, BEFORE = "_op", "_gtid", "_ts", "_before"
META = {OP: pa.string(), GTID: pa.string(), TS: pa.timestamp("us", "UTC")}
"""Columns that every stream has; `_before` only on request."""

NAMED = """
SELECT table_schema, table_name, table_type, engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
LOGS_NAMES = "binlog_row_metadata"
"""FULL if the server logs column names, the members of ENUM and SET, and keys."""

SHOW_ALL = (
    "SET @shown = 1"
    "/*!80030 , SESSION show_gipk_in_create_table_and_information_schema = ON */"  # not by MariaDB
)
"""Makes MySQL show the primary key that it generated, which logged rows contain."""

LOGS_KEYS = "innodb_native_foreign_keys"
"""Since MySQL 9.6; OFF if the server logs the changes that foreign keys make."""

CHANGED_BY_OTHERS = """
SELECT constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
  AND (delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL'))
"""

LEAVE_OUT = "exclude it with option columns"

AS_THE_SERVER_SHOWS = (
    (types.is_string, (types.is_string, types.is_integer, types.is_decimal)),
    (types.is_binary, (types.is_string, types.is_binary)),
)
"""The types whose logged form equals the server's text, and its bytes."""

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
"""The log's codes of column types; values of other types are not read."""

CHOICES = ("enum", "set")
POINTS = ("point", "linestring", "polygon", "geometry")
MANY = ("multipoint", "multilinestring", "multipolygon", "geomcollection", "geometrycollection")
SIZES = ("", "tiny", "medium", "long")
CODES |= {size + kind: tables.BLOB for kind in ("text", "blob") for size in SIZES}
CODES |= dict.fromkeys((*POINTS, *MANY), tables.GEOMETRY)
CODES |= dict.fromkeys(("char", "binary"), tables.STRING)
CODES |= dict.fromkeys(("varchar", "varbinary"), tables.VARCHAR)
CODES["vector"] = tables.VECTOR
CODES |= dict.fromkeys(SHOWN_TYPES, tables.STRING)

WORDS = re.compile(r"(x?)'((?:[^'\\]|''|\\.)*)'")
"""The members of an ENUM or SET in the server's text; MySQL writes some binary ones as x'ff'."""

SHOWN = ("ascii", "utf8", "utf8mb3")
"""Character sets, besides those of one byte, that the server shows without loss."""

LOST, NOT_PLAIN = re.compile(r"\?"), re.compile(r"[^ ->@-~]")
"""Signs that a member may have been a different one: in texts, and in bytes."""

ESCAPES = re.compile(r"''|\\(.)")
ESCAPED = {"n": "\n", "r": "\r", "0": "\0"}
"""The characters that escapes in members represent."""

PERIOD = {"row_start", "row_end"}
"""Columns of MariaDB's system-versioned tables. A table may use other names."""

END_OF_ROW = tables.TIMESTAMP2, 6
"""The type of `row_end`, the last column of each key of a system-versioned table."""

UTF8 = Charset("utf8mb4")


@dataclass(frozen=True)
class FollowedTable:
    """A followed table."""

    name: tuple[str, str]  # its database and its name, as the log has them
    engine: str  # its storage engine
    key: tuple[str, ...]  # columns of its primary key; empty if it has none
    columns: Mapping[str, ResultColumn]  # the columns visible to the user, as results have them
    declared: Sequence[TableColumn]  # the same columns, in their order, as declared
    charsets: Charsets  # of the server
    whole: bool  # whether the user sees all its columns
    # Whether the server is a MariaDB. Its log may have hashes after these columns, one for each
    # unique key that is too long for an index. Nothing shows when a table gains or loses a hash.
    mariadb: bool
    logs_names: bool  # whether the log has names of its columns, from now on
    cascade: str = ""  # a foreign key that changes its rows without a log entry; or empty

    @property
    def full_name(self) -> str:
        """Its name in errors."""
        return ".".join(self.name)

    @property
    def relation(self) -> str:
        """The SQL that follows FROM."""
        return identifier(*self.name)

    def column(self, name: str) -> ResultColumn:
        """The column of that name, whatever its case; raises `OptionError` if it is missing."""
        names = pa.schema([(one, pa.null()) for one in self.columns])
        return self.columns[checks.column("columns", name, names)]

    def require_columns(self, schema: pa.Schema) -> None:
        """Reject columns that can't be followed, or not as the types of the schema.

        Raises:
            OptionError: the table lacks the column, or its values would change.
            StoreRefused: the connector can't read its type or character set from the log.
        """
        for field in schema:
            inner = [*field.type] if field.name == BEFORE else [field]
            for one in inner if field.name not in META else ():
                column = self.column(one.name)
                self.require_read(column.name)
                require_readable(column, one.type)

    def require_names_in_log(self) -> None:
        """Reject a server whose log does not describe columns, for a stream that needs it."""
        if not self.logs_names:
            raise StoreRefused(
                f"onSchemaChange=continue needs {LOGS_NAMES}=FULL",
                why="the log would not have the names of columns, which an ALTER may change",
                todo=f"SET GLOBAL {LOGS_NAMES}=FULL, also in the server's configuration file",
            )

    def require_key(self) -> None:
        """Reject a primary key whose values can't be read from the log."""
        for name in self.key:
            self.require_read(name, "begin with startingPosition=latest, and exclude the column")

    def require_read(self, name: str, todo: str = LEAVE_OUT) -> None:
        """Reject a column whose values can't be read from the log."""
        column = next(one for one in self.declared if one.name == name)
        if not is_read(column):
            kind = f"{column.kind} COMPRESSED" if is_compressed(column) else column.kind
            raise StoreRefused(
                f"Column {name!r} of type {kind} can't be followed",
                why="the connector can't read the form in which the binary log has its values",
                todo=f"{todo}, or ALTER it to a type that every server supports",
            )
        charset = self.charsets.of(0, column.charset)
        if charset and not charset.is_read:
            raise StoreRefused(
                f"Column {name!r} of character set {charset.name} can't be followed",
                why="Python decodes some of its bytes to other characters than the server does",
                todo=f"{todo}, or ALTER it to utf8mb4",
            )
        if not self.logs_names and column.kind in CHOICES and words_of(column, charset) is None:
            raise words_unknown(name)

    def named(self, logged: LoggedTable) -> dict[str, int]:
        """The place of each column, by its name in lower case."""
        columns: Sequence[BinlogColumn | TableColumn] = (
            logged.columns if logged.named else self.declared
        )
        return {one.name.lower(): at for at, one in enumerate(columns)}

    def completed(self, logged: LoggedTable) -> LoggedTable:
        """The logged table with all that the log omits: names, signs, character sets, its key.

        Raises:
            StoreRefused: the connector can't match the columns of the log with the table.
        """
        known, key = list[TableColumn](), logged.key
        if self.mariadb and self.whole and logged.named:
            self._require_no_history(logged)
        if not logged.named:
            self._require_same(logged)
            known = [*self.declared]
            key = tuple(at for at, one in enumerate(known) if one.name in self.key)
        pairs = zip_longest(logged.columns, known)
        completed = [self._completed(*one) for one in pairs]
        kinds = {one.name.lower(): one.kind for one in self.declared}
        return LoggedTable(tuple(as_shown(one, kinds) for one in completed), key)

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
        """Reject rows logged while the table was system-versioned: they may be history rows."""
        gone = {one.name for one in logged.columns} - self.columns.keys()
        last = [logged.columns[at] for at in logged.key[1:]][-1:]
        ends = {one.name for one in last if (one.type.code, one.type.meta) == END_OF_ROW}
        if gone >= PERIOD or gone & ends:
            raise StoreRefused(
                f"Table {self.full_name} was, or may have been, system versioned when the server"
                " logged its rows",
                why="the log has rows of its history, which look like current rows",
                todo="reconcile the target with the table, and start a new query after the ALTER",
            )

    def _require_same(self, logged: LoggedTable) -> None:
        if not self.whole:
            raise StoreRefused(
                f"The user may not see all columns of table {self.full_name}",
                why="the log has no column names (binlog_row_metadata), so the connector matches"
                " columns by place",
                todo="GRANT SELECT on the table, or SET GLOBAL binlog_row_metadata=FULL, and start"
                " a new query after that",
            )
        many = len(self.declared)
        pairs = zip(self.declared, logged.columns[:many], strict=False)
        more = [one.type.code for one in logged.columns[many:]]
        hashes = [tables.LONGLONG] * (len(more) if self.mariadb else 0)
        is_same = len(logged.columns) >= many and more == hashes
        if not is_same or not all(self._is_same(*one) for one in pairs):
            raise StoreRefused(
                f"Logged rows of table {self.full_name} have other columns than the table",
                why="someone altered the table since, or it has hidden columns, and the log has no"
                " column names (binlog_row_metadata)",
                todo="SET GLOBAL binlog_row_metadata=FULL, and start a new query after the ALTER",
            )

    def _is_same(self, known: TableColumn, logged: BinlogColumn) -> bool:
        """Whether a column may be the logged one, by all that the log has about it."""
        if known.nullable != logged.nullable:
            return False
        if not is_read(known):
            return True
        if known.kind == "json" and logged.type.code == tables.BLOB:  # MariaDB logs JSON as text
            return True
        charset = self.charsets.of(logged.collation, known.charset)
        return (
            CODES[known.kind] == logged.type.code
            and logged.unsigned in (None, _is_unsigned(known))
            and _meta(known) in (None, logged.type.meta)
            and charset == self.charsets.of(0, known.charset)
        )


def followed(session: MySqlSession, named: Sequence[str]) -> FollowedTable:
    """Look up a table by its name, or by its database and its name.

    Raises:
        StoreRefused: the table does not exist.
    """
    with session.connected() as live:
        live.run(SHOW_ALL)
        name, engine = _found(session, (session.database, *named)[-2:])
        target = lookup.look_up(session, name)
        primary = next((one.columns for one in target.indexes if one.name == "PRIMARY"), [])
        names = ", ".join(identifier(one.name) for one in target.columns)  # invisible ones, too
        settings = session.variables(LOGS_NAMES, LOGS_KEYS)
        logs_keys = settings.get(LOGS_KEYS) == "OFF"
        known = charsets(session)
        for column in target.columns:
            known.learn(session, column.charset)
        changing = () if logs_keys else session.run(CHANGED_BY_OTHERS, *name)
        return FollowedTable(
            name,
            engine,
            tuple(primary),
            {one.name: one for one in described(session, identifier(*name), names)},
            target.columns,
            known,
            whole=bool(lookup.definitions(session, [name])),  # hidden from users who see only some
            mariadb=live.mariadb,
            logs_names=settings.get(LOGS_NAMES) == "FULL",
            cascade=str(changing[0][0]) if changing else "",
        )


def _found(session: MySqlSession, name: tuple[str, ...]) -> tuple[tuple[str, str], str]:
    """The server's name of a table, and its engine."""
    rows = [tuple(map(str, row)) for row in session.run(NAMED, *name)]
    row = min(rows, key=lambda one: one[:2] != name, default=None)  # others differ in case
    shown = ".".join(name)
    if row is None:
        raise StoreRefused(
            f"Table {shown} does not exist, or the user may not read it",
            why="the server does not list it",
            todo="correct option url or dbtable, or grant SELECT on the table",
        )
    if row[2] == "SYSTEM VERSIONED":
        raise StoreRefused(
            f"Table {shown} is system versioned",
            why="the binary log has rows of its history, which look like current rows",
            todo="ALTER TABLE ... DROP SYSTEM VERSIONING, or follow another table",
        )
    if row[2] != "BASE TABLE":
        raise StoreRefused(
            f"{shown} is a {row[2].lower()}",
            why="the binary log has only rows of base tables",
            todo="name the base table that it reads",
        )
    return (row[0], row[1]), row[3]


def schema_of(columns: Iterable[ResultColumn], asked: Collection[str]) -> pa.Schema:
    """The schema of changes, with lossless types; `asked` are the columns that an option names.

    Raises:
        StoreRefused: a column has the name of a column that every stream has.
    """
    fields = [pa.field(one.name, one.natural) for one in columns]
    for field in fields:
        if field.name.lower() in (*META, BEFORE):
            raise StoreRefused(
                f"The table has a column {field.name!r}",
                why="a stream has a column of that name, whatever its case, which describes the"
                " change of the row",
                todo="rename the table's column",
            )
    before = [pa.field(BEFORE, pa.struct(fields))] if BEFORE in asked else []
    return pa.schema([*fields, *(pa.field(*one) for one in META.items()), *before])


def require_readable(column: ResultColumn, kind: pa.DataType) -> None:
    """Raise `OptionError` for a type that does not hold every value of the column unchanged."""
    wire_form(column, kind)
    natural = column.natural
    for is_kind, has_form in AS_THE_SERVER_SHOWS:
        if is_kind(kind) and not any(is_one(natural) for is_one in has_form):
            raise OptionError(
                f"Column {column.name!r} can't be followed as {type_name(kind)}",
                why=f"the binary log has {type_name(natural)}, not the text that the server shows",
                todo="declare that type, and cast the column in Spark",
            )


def as_shown(column: BinlogColumn, kinds: Mapping[str, str]) -> BinlogColumn:
    """A logged column that the server shows as text, by the types of the table's columns.

    An ALTER from BINARY to such a type changes no bytes: it does not matter which one was logged.
    """
    kind = kinds.get(column.name.lower(), "")
    fits = kind in SHOWN_TYPES and column.padding == SHOWN_TYPES[kind].size
    return replace(column, shown=kind) if fits else column


def is_read(column: TableColumn) -> bool:
    """Whether the connector can read values of the column's type."""
    return column.kind in CODES and not is_compressed(column)


def is_compressed(column: TableColumn) -> bool:
    """Whether MariaDB stores a text as COMPRESSED."""
    return column.sql_type.endswith("COMPRESSED*/")


def _is_unsigned(column: TableColumn) -> bool:
    is_year = column.kind == "year"  # unsigned without saying so
    return is_year or (column.kind not in CHOICES and "unsigned" in column.sql_type.lower())


def _meta(column: TableColumn) -> int | None:
    """The metadata of the type in the log, see `ColumnType`; None if it is unknown here."""
    code = CODES[column.kind]
    first, second = [*map(int, re.findall(r"\d+", column.sql_type)), 0, 0][:2]
    if code == tables.NEWDECIMAL:
        return first | second << 8
    if code == tables.BIT:
        return first % 8 | first // 8 << 8
    if code in tables.MOMENTS:
        return first
    if column.kind in SHOWN_TYPES:
        return SHOWN_TYPES[column.kind].size
    if code in (tables.STRING, tables.VARCHAR):
        return column.room * max(column.width, 1)
    return None


def words_of(column: TableColumn, charset: Charset | None) -> tuple[bytes, ...] | None:
    """The members of an ENUM or SET in UTF-8; None if the server may show other members.

    The server shows types in utf8mb3, with a question mark for each character that utf8mb3 lacks.
    """
    found = WORDS.findall(column.sql_type)
    words = [ESCAPES.sub(lambda one: ESCAPED.get(one[1], one[1] or "'"), text) for _, text in found]
    if charset is None or not (charset.letters or charset.name in SHOWN):
        doubt = NOT_PLAIN if charset is None else LOST
        if any(digits for digits, _ in found) or any(map(doubt.search, words)):
            return None
    return tuple(one.encode() for one in words)
