"""Which column of the log is which column of the table: by name, or where it has none, by place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pyspark_mysql.binlog import tables as binlog
from pyspark_mysql.binlog import types
from pyspark_mysql.binlog.texts import codec
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
"""What the log calls the types of tables."""

WORDS = re.compile(r"'((?:[^']|'')*)'")
"""Those of an ENUM or a SET, as the server shows their type."""

OTHERS = (types.BLOB, types.GEOMETRY)
"""What it calls all others."""


class Layout:
    """The columns of a table, as it is now.

    Args:
        table: its database and its name.
        columns: in their order.
        charsets: the server's names of character sets, by the number of each of their collations.
    """

    def __init__(
        self, table: tuple[str, str], columns: Sequence[Column], charsets: Mapping[int, str]
    ) -> None:
        self.table, self.columns, self.charsets = table, columns, charsets

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
            known = self.columns
        pairs = zip(logged.columns, known, strict=True)
        return replace(logged, columns=tuple(self._completed(one, of) for one, of in pairs))

    def _completed(self, logged: binlog.Column, known: Column | None) -> binlog.Column:
        named = self.charsets.get(logged.collation) or (known.charset if known else "")
        charset = None if named in ("", "binary") else named
        if known is None:
            return replace(logged, charset=charset)
        is_unsigned = "unsigned" in known.shown.lower()
        words = tuple(_words(known.shown, charset)) if known.kind in ("enum", "set") else ()
        return replace(logged, name=known.name, unsigned=is_unsigned, charset=charset, words=words)

    def _require_same(self, logged: binlog.Table) -> None:
        codes = [one.type.code for one in logged.columns]
        if codes != [_code(one, code) for one, code in zip(self.columns, codes, strict=False)] or (
            len(codes) != len(self.columns)
        ):
            raise StoreRefused(
                f"Rows of table {'.'.join(self.table)} were logged with other columns than it has",
                why="it was altered since, and the log has no names of columns"
                " (binlog_row_metadata)",
                todo="SET GLOBAL binlog_row_metadata=FULL, and begin a new query behind the ALTER",
            )


def _code(column: Column, logged: int) -> int:
    """The number of a column's type; MariaDB logs JSON as the text that it is there."""
    known = CODES.get(column.kind)
    others = (types.BLOB, types.JSON) if known == types.JSON else OTHERS
    return logged if known in (None, types.JSON) and logged in others else known or types.BLOB


def _words(shown: str, charset: str | None) -> Iterator[bytes]:
    for word in WORDS.findall(shown):
        yield word.replace("''", "'").encode(codec(charset or ""))
