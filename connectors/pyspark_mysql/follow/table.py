"""The table that is followed, as the server has it, and which column of the log is which of it.

They are told by name, or where the log has none, by place.
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
from pyspark_mysql.binlog.values import words_unknown
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
"""Columns that every stream has; `_before` where it is asked for."""

NAMED = """
SELECT table_schema, table_name, table_type, engine FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s
"""
LOGS_NAMES = "binlog_row_metadata"
"""FULL where the server logs names of columns, words of ENUM and SET, and keys."""

SHOW_ALL = (
    "SET @shown = 1"
    "/*!80030 , SESSION show_gipk_in_create_table_and_information_schema = ON */"  # not by MariaDB
)
"""By it MySQL shows the primary key that it made by itself, which rows in the log have."""

LOGS_KEYS = "innodb_native_foreign_keys"
"""Since MySQL 9.6; OFF where the server logs what foreign keys do to rows."""

CHANGED_BY_OTHERS = """
SELECT constraint_name FROM information_schema.referential_constraints
WHERE constraint_schema = %s AND table_name = %s
  AND (delete_rule IN ('CASCADE', 'SET NULL') OR update_rule IN ('CASCADE', 'SET NULL'))
"""

LEAVE_OUT = "leave it out by option columns"

AS_THE_SERVER_SHOWS = (
    (types.is_string, (types.is_string, types.is_integer, types.is_decimal)),
    (types.is_binary, (types.is_string, types.is_binary)),
)
"""What has the form of the log as a text, and as bytes."""

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
class FollowedTable:
    """A table."""

    name: tuple[str, str]  # its database and its name, as the log has them
    engine: str  # that stores it
    key: tuple[str, ...]  # columns of its primary key; empty if there is none
    columns: Mapping[str, ResultColumn]  # those that the user may see, as results have them
    declared: Sequence[TableColumn]  # the same, in their order, as they are declared
    charsets: Charsets  # of the server
    whole: bool  # whether these are all columns that it has
    # Whether the server is one. Behind these columns its log may have hashes, one for each unique
    # key that is too long for an index; such keys come and go unseen.
    mariadb: bool
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
        column = next(one for one in self.declared if one.name == name)
        if not is_read(column):
            kind = f"{column.kind} COMPRESSED" if is_compressed(column) else column.kind
            raise StoreRefused(
                f"Column {name!r} of type {kind} can't be followed",
                why="the binary log has its values in a form that is not known here",
                todo=f"{todo}, or ALTER it to a type that every server has",
            )
        charset = self.charsets.of(0, column.charset)
        if charset and not charset.is_read:
            raise StoreRefused(
                f"Column {name!r} of character set {charset.name} can't be followed",
                why="of some of its bytes Python makes other characters than the server",
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
        """The table with what the log leaves out of it: names, signs, character sets, its key.

        Raises:
            StoreRefused: the log does not tell.
        """
        known, key = list[TableColumn](), logged.key
        if self.mariadb and self.whole and logged.named:
            self._require_no_history(logged)
        if not logged.named:
            self._require_same(logged)
            known = [*self.declared]
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
        gone = {one.name for one in logged.columns} - self.columns.keys()
        last = [logged.columns[at] for at in logged.key[1:]][-1:]
        ends = {one.name for one in last if (one.type.code, one.type.meta) == END_OF_ROW}
        if gone >= PERIOD or gone & ends:
            raise StoreRefused(
                f"Rows of table {self.full_name} were logged when it was system versioned, or"
                " may have been",
                why="the log has rows of its history, which look like rows that are there",
                todo="bring the target in line with the table, and begin a new query behind the"
                " ALTER",
            )

    def _require_same(self, logged: LoggedTable) -> None:
        if not self.whole:
            raise StoreRefused(
                f"The user may not see all columns of table {self.full_name}",
                why="the log has no names of columns (binlog_row_metadata), so that they are told"
                " by their place",
                todo="GRANT SELECT on the table, or SET GLOBAL binlog_row_metadata=FULL, and begin"
                " a new query behind that",
            )
        many = len(self.declared)
        pairs = zip(self.declared, logged.columns[:many], strict=False)
        more = [one.type.code for one in logged.columns[many:]]
        hashes = [tables.LONGLONG] * (len(more) if self.mariadb else 0)
        is_same = len(logged.columns) >= many and more == hashes
        if not is_same or not all(self._is_same(*one) for one in pairs):
            raise StoreRefused(
                f"Rows of table {self.full_name} were logged with other columns than it has",
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
        settings = session.variables(LOGS_NAMES, LOGS_KEYS)
        logs_keys = settings.get(LOGS_KEYS) == "OFF"
        changing = () if logs_keys else session.run(CHANGED_BY_OTHERS, *name)
        return FollowedTable(
            name,
            engine,
            tuple(primary),
            {one.name: one for one in described(session, identifier(*name), names)},
            target.columns,
            charsets(session),
            whole=bool(lookup.definitions(session, [name])),  # shown to nobody who sees only some
            mariadb=live.mariadb,
            logs_names=settings.get(LOGS_NAMES) == "FULL",
            cascade=str(changing[0][0]) if changing else "",
        )


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


def schema_of(columns: Iterable[ResultColumn], asked: Collection[str]) -> pa.Schema:
    """The schema of changes, with the types that lose nothing; `asked` are columns of an option.

    Raises:
        StoreRefused: a column has a name that a stream gives to something else.
    """
    fields = [pa.field(one.name, one.natural) for one in columns]
    for field in fields:
        if field.name.lower() in (*META, BEFORE):
            raise StoreRefused(
                f"The table has a column {field.name!r}",
                why="a stream has a column of that name, in any case, which says what happened to"
                " the row",
                todo="rename the table's column",
            )
    before = [pa.field(BEFORE, pa.struct(fields))] if BEFORE in asked else []
    return pa.schema([*fields, *(pa.field(*one) for one in META.items()), *before])


def require_readable(column: ResultColumn, kind: pa.DataType) -> None:
    """Refuse, by an `OptionError`, a type that some value of the column does not fit as it is."""
    wire_form(column, kind)
    natural = column.natural
    for is_kind, has_form in AS_THE_SERVER_SHOWS:
        if is_kind(kind) and not any(is_one(natural) for is_one in has_form):
            raise OptionError(
                f"Column {column.name!r} can't be followed as {type_name(kind)}",
                why=f"the binary log has {type_name(natural)}, and not what the server shows",
                todo="give it that type, and cast it in Spark",
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
