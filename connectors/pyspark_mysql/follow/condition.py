"""Option ``snapshotWhere``: a condition in the forms that a server judges alike everywhere.

The server judges stored rows by it, and the former values of rows that changed since the snapshot.
Of the latter it gets literals (see `pyspark_mysql.follow.comparisons`). The forms, where ``NOT``
binds before ``AND``, and ``AND`` before ``OR``::

    (condition) | column {= | <> | != | < | <= | > | >=} value | column IS [NOT] NULL
    column [NOT] IN (value, ...) | column [NOT] BETWEEN value AND value | column [NOT] LIKE text
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pymysql

from pyspark_mysql.binlog.tokens import UNKNOWN, Cursor, tokens_of
from pyspark_mysql.follow.comparisons import ComparedColumn, Family, family_of
from pyspark_mysql.follow.table import FollowedTable
from pyspark_mysql.read.columns import ResultColumn, as_logged
from pyspark_mysql.read.where import comparable
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import failure_of
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.columns import named
from sparkonce.errors import FailureKind, OptionError

OPTION = "snapshotWhere"
OPERATORS = ("<=", ">=", "<>", "!=", "=", "<", ">")
DEEPEST = 50
"""How many brackets and NOTs may enclose a comparison."""

UNION = b" UNION ALL "
MANY, LARGE = 500, 1024 * 1024
"""The most rows and the most bytes of a statement by which the server judges rows."""

FORMS = (
    "compare columns with values by =, <>, <, <=, >, >=, IN, BETWEEN, LIKE and IS NULL, and combine"
    " comparisons with AND, OR, NOT and brackets"
)
EXECUTED = re.compile(r"/\*M?!")
"""The begin of a comment that some servers execute."""


@dataclass(frozen=True)
class SnapshotCondition:
    """A condition in SQL, and its columns."""

    sql: str
    columns: tuple[ComparedColumn, ...]

    @property
    def fields(self) -> list[pa.Field]:
        """The columns, with the types of the log."""
        return [pa.field(one.name, one.logged) for one in self.columns]

    def require_judged(self, session: MySqlSession, table: FollowedTable) -> None:
        """Raise `OptionError` if the server can't judge rows, for example by a value's letters."""
        none = pa.RecordBatch.from_arrays(
            [pa.nulls(1, one.type) for one in self.fields], schema=pa.schema(self.fields)
        )
        try:
            session.run(f"SELECT 1 FROM {table.relation} WHERE {self.sql} LIMIT 0")
            self.judged(session, none)
        except pymysql.MySQLError as error:
            if failure_of(error).kind in (FailureKind.LOST, FailureKind.PASSING):
                raise
            raise _refused(f"the server rejects it: {error}", "correct the condition") from None

    def judged(self, session: MySqlSession, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which it holds; the last columns of a row are `fields`."""
        with session.connected() as live:
            most = min(LARGE, live.packet // 2) - len(self.sql.encode())
        row = "row"
        while row in (one.name for one in self.columns):
            row += "_"
        selects, found, begin = self._selects(rows, row), list[int](), 0
        ends = np.cumsum(pc.binary_length(selects).to_numpy() + len(UNION))
        while begin < len(rows):
            limit = (ends[begin - 1] if begin else 0) + most
            end = max(begin + 1, min(begin + MANY, int(np.searchsorted(ends, limit, "right"))))
            relation = UNION.join(selects[begin:end].to_pylist()).decode()
            judged = session.run(f"SELECT `{row}` FROM ({relation}) AS former WHERE {self.sql}")
            found += sorted(int(one) for (one,) in judged)
            begin = end
        return rows.take(pa.array(found, pa.int64()))

    def _selects(self, rows: pa.RecordBatch, row: str) -> pa.Array:
        """A SELECT for each row: its number, and its values in the columns."""
        numbers = pa.array(np.arange(len(rows))).cast(pa.string()).cast(pa.binary())
        found = _joined(b"SELECT ", numbers, f" AS `{row}`".encode())
        values = rows.columns[rows.num_columns - len(self.columns) :]
        for one, each in zip(self.columns, values, strict=True):
            found = _joined(
                found, b", ", one.literals(each), f" AS {identifier(one.name)}".encode()
            )
        return found


def _joined(*parts: pa.Array | bytes) -> pa.Array:
    return pc.binary_join_element_wise(*parts, b"")


def parsed(session: MySqlSession, table: FollowedTable, text: str) -> SnapshotCondition:
    """The condition on rows of a table.

    Raises:
        OptionError: the text has another form, names no column, or a value does not fit.
        StoreRefused: a column can't be followed.
    """
    tokens = [*tokens_of(text, 0, mariadb=table.mariadb)]
    if UNKNOWN in tokens or EXECUTED.search(text):
        raise _refused("its text has signs, quotes or comments of no known form", FORMS)
    return _Parser(Cursor(tokens), session, table).condition()


def _refused(why: str, todo: str) -> OptionError:
    return OptionError(f"Option {OPTION} can't be used as it is", why=why, todo=todo)


class _Parser:
    """Writes the condition anew from its tokens."""

    def __init__(self, found: Cursor, session: MySqlSession, table: FollowedTable) -> None:
        self.found, self.table = found, table
        self.known = comparable(session, table.name)
        self.columns = dict[str, ComparedColumn]()
        self.by_index = True

    def condition(self) -> SnapshotCondition:
        sql = self._any_of(DEEPEST)
        if not self.found.ended:
            raise _refused(f"it does not end before {self._next}", FORMS)
        columns = (*self.columns.values(),)
        if not (self.by_index and all(one.by_index for one in columns)):
            sql = f"IF({sql}, 1, 0)"  # which the server computes for each row, without an index
        return SnapshotCondition(sql, columns)

    @property
    def _next(self) -> str:
        return "its end" if self.found.ended else repr(self.found.text)

    def _any_of(self, depth: int) -> str:
        return self._combined("OR", self._all_of, depth)

    def _all_of(self, depth: int) -> str:
        return self._combined("AND", self._one, depth)

    def _combined(self, word: str, part: Callable[[int], str], depth: int) -> str:
        parts = [part(depth)]
        while self.found.word(word):
            parts.append(part(depth))
        return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"

    def _one(self, depth: int) -> str:
        if depth == 0:
            raise _refused(f"it has more than {DEEPEST} brackets within each other", "omit some")
        if self.found.word("NOT"):
            return f"(NOT {self._one(depth - 1)})"
        if self.found.sign("("):
            inner = self._any_of(depth - 1)
            self._require(")")
            return inner
        column = self._column()
        name = identifier(column.name)
        if self.found.word("IS"):
            return f"({self._null(column, name)})"
        return f"({name} {self._comparison(column)})"

    def _column(self) -> ResultColumn:
        shown, name = self._next, self.found.name().lower()
        column = next((c for c in self.table.columns.values() if c.name.lower() == name), None)
        if column is None and shown == "its end":
            raise _refused("a comparison is missing at its end", FORMS)
        if column is None:
            raise _refused(f"the table has no column {shown}", FORMS)
        self.table.require_read(column.name, f"omit it in {OPTION}")
        return column

    def _null(self, column: ResultColumn, name: str) -> str:
        inverted = self.found.word("NOT")
        if not self.found.word("NULL"):
            raise _refused(f"IS stands before {self._next}", f"write IS NULL; {FORMS}")
        if not column.nullable:  # a server may find the date 0000-00-00 by IS NULL
            return "TRUE" if inverted else "FALSE"
        logged = as_logged(column).type
        self.columns.setdefault(column.name, ComparedColumn(column.name, logged))
        return f"{name} IS {'NOT ' if inverted else ''}NULL"

    def _comparison(self, column: ResultColumn) -> str:
        family = self._family(column)
        for one in OPERATORS:
            if self.found.signs(one):
                return f"{one} {self._value(family)}"
        inverted = "NOT " if self.found.word("NOT") else ""
        word = self.found.word("IN", "BETWEEN", *(["LIKE"] if family.is_text else []))
        if word == "IN":
            return f"{inverted}IN ({', '.join(self._values(family))})"
        if word == "BETWEEN":
            low = self._value(family)
            if not self.found.word("AND"):
                raise _refused(f"BETWEEN has {self._next} in place of AND", FORMS)
            return f"{inverted}BETWEEN {low} AND {self._value(family)}"
        if word == "LIKE":
            return f"{inverted}LIKE {self._value(family)}"
        raise _refused(f"{self._next} follows column {column.name!r}", FORMS)

    def _family(self, column: ResultColumn) -> Family:
        declared = named(self.table.declared, [column.name])[column.name]
        family, how = family_of(declared), self.known.get(column.name)
        if family is None or how is None:
            charset = f" in {declared.charset}" if declared.charset else ""
            kind = f"{declared.kind.upper()}{charset}" if how else "virtual column"
            raise _refused(
                f"column {column.name!r} is of type {kind}, whose former values a server may judge"
                " differently",
                "compare other columns; this one may only be IS NULL or IS NOT NULL"
                if how
                else "compare other columns",
            )
        self.columns[column.name] = family.compared(column, declared, how)
        return family

    def _value(self, family: Family) -> str:
        shown = self._next
        if (value := family.value(self.found)) is None:
            raise _refused(f"{shown} is not one of {family.form}", f"write {family.form}")
        if not family.is_text and "." in value:
            self.by_index = False  # MariaDB searches for what the column would round to
        return value

    def _values(self, family: Family) -> Iterator[str]:
        self._require("(")
        yield self._value(family)
        while self.found.sign(","):
            yield self._value(family)
        self._require(")")

    def _require(self, sign: str) -> None:
        if not self.found.sign(sign):
            raise _refused(f"it has {self._next} in place of {sign!r}", FORMS)
