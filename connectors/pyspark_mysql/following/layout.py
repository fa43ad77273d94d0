"""Which column of the log is which column of the table: by name, or where it has none, by place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pyspark_mysql.binlog import tables as binlog
from pyspark_mysql.binlog import types
from pyspark_mysql.binlog.charsets import Charset, Charsets
from pyspark_mysql.target.columns import Column
from sparkonce.errors import StoreRefused

CODES = {
    "tinyint": types.TINY,
    "smallint": types.SHORT,
    "mediumint": types.INT24,
    "int": types.LONG,
    "bigint": types.LONGLONG,
    "float": types.FLOAT,
    "double": types.DOUBLE,
    "decimal": types.NEWDECIMAL,
    "bit": types.BIT,
    "year": types.YEAR,
    "date": types.DATE,
    "datetime": types.DATETIME2,
    "timestamp": types.TIMESTAMP2,
    "time": types.TIME2,
    "char": types.STRING,
    "binary": types.STRING,
    "varchar": types.VARCHAR,
    "varbinary": types.VARCHAR,
    "json": types.JSON,
    "enum": types.ENUM,
    "set": types.SET,
}
"""What the log calls the types of tables; values of others are not read."""

SIZES = ("", "tiny", "medium", "long")
POINTS = ("point", "linestring", "polygon", "geometry")
MANY = ("multipoint", "multilinestring", "multipolygon", "geomcollection", "geometrycollection")
CODES |= {size + kind: types.BLOB for kind in ("text", "blob") for size in SIZES}
CODES |= dict.fromkeys((*POINTS, *MANY), types.GEOMETRY)

WORDS = re.compile(r"'((?:[^'\\]|''|\\.)*)'")
"""Those of an ENUM or a SET, as the server shows their type."""

ESCAPES = re.compile(r"''|\\(.)")
ESCAPED = {"n": "\n", "r": "\r", "0": "\0"}
"""What stands for another character in them."""

UTF8 = Charset("utf8mb4")


class Layout:
    """The columns of a table, as it is now.

    Args:
        table: its database and its name.
        columns: in their order.
        charsets: of the server.
        hidden: so many columns more stand behind them in the log: MariaDB's hashes, one for each
            unique key that is too long for an index.
    """

    def __init__(
        self, table: tuple[str, str], columns: Sequence[Column], charsets: Charsets, hidden: int = 0
    ) -> None:
        self.table, self.columns, self.charsets, self.hidden = table, columns, charsets, hidden

    def named(self, logged: binlog.Table) -> dict[str, int]:
        """The place of each column, by its name in lower case."""
        columns: Sequence[binlog.Column | Column] = logged.columns if logged.named else self.columns
        return {one.name.lower(): at for at, one in enumerate(columns)}

    def completed(self, logged: binlog.Table) -> binlog.Table:
        """The table with what the log leaves out of it: names, signs and character sets.

        Raises:
            StoreRefused: the log does not tell.
        """
        known: Sequence[Column | None] = [None] * len(logged.columns)
        if not logged.named:
            self._require_same(logged)
            known = [*self.columns, *[None] * self.hidden]
        pairs = zip(logged.columns, known, strict=True)
        return replace(logged, columns=tuple(self._completed(one, of) for one, of in pairs))

    def _completed(self, logged: binlog.Column, known: Column | None) -> binlog.Column:
        charset = self.charsets.of(logged.collation, known.charset if known else "")
        if known is None:
            return replace(logged, charset=charset)
        is_unsigned = "unsigned" in known.shown.lower()
        words = tuple(_words(known.shown)) if known.kind in ("enum", "set") else ()
        charset = UTF8 if words and charset else charset
        return replace(logged, name=known.name, unsigned=is_unsigned, charset=charset, words=words)

    def _require_same(self, logged: binlog.Table) -> None:
        codes = [one.type.code for one in logged.columns]
        known = [_code(one, code) for one, code in zip(self.columns, codes, strict=False)]
        known += [types.LONGLONG] * self.hidden
        if codes != known or len(codes) != len(self.columns) + self.hidden:
            raise StoreRefused(
                f"Rows of table {'.'.join(self.table)} were logged with other columns than it has",
                why="it was altered since, and the log has no names of columns"
                " (binlog_row_metadata)",
                todo="SET GLOBAL binlog_row_metadata=FULL, and begin a new query behind the ALTER",
            )


def is_read(column: Column) -> bool:
    """Whether values of a column's type can be read."""
    return column.kind in CODES and not is_compressed(column)


def is_compressed(column: Column) -> bool:
    """Whether MariaDB stores a text as COMPRESSED."""
    return column.shown.endswith("COMPRESSED*/")


def _code(column: Column, logged: int) -> int:
    """The number of a column's type: any of one that can't be read.

    MariaDB logs JSON as the text that it is there.
    """
    is_any = not is_read(column) or (column.kind == "json" and logged == types.BLOB)
    return logged if is_any else CODES[column.kind]


def _words(shown: str) -> Iterator[bytes]:
    for word in WORDS.findall(shown):
        yield ESCAPES.sub(_unescaped, word).encode()


def _unescaped(found: re.Match[str]) -> str:
    letter = found[1]
    return "'" if letter is None else ESCAPED.get(letter, letter)
