"""A table or a query as a source: its splits, and the rows of each."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pymysql
from pyarrow import types

from pyspark_mysql.read import axes, one_state, ranges, where
from pyspark_mysql.read.columns import (
    DAYS,
    MOMENTS,
    ResultColumn,
    WireForm,
    described,
    wire_form,
    zero_as_null,
)
from pyspark_mysql.read.rows import rows
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number, translated_read
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from sparkonce import checks
from sparkonce.change import Names
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

NO_COLUMN, NO_RIGHT, READ_ONLY = 1054, (1142, 1143), 1792
"""Numbers of errors."""

VIRTUAL = """
SELECT 1 FROM information_schema.columns WHERE table_schema = %s AND table_name = %s
  AND column_name = %s AND extra LIKE '%%VIRTUAL%%'
"""

TOKEN = re.compile(
    r"(?P<blank>\s+|/\*(?!!|M!).*?\*/|(?:--(?=\s|$)|\#)[^\n]*\n?)"
    r"""|(?P<word>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|[\w$.]+|.)""",
    re.DOTALL,
)
"""Blanks and comments, and all other tokens, as in sessions without ANSI_QUOTES and
NO_BACKSLASH_ESCAPES. Text that begins with ``/*!`` is not a comment."""

ALIAS = re.compile(r"(?:as)?(?:`(?:[^`]|``)+`|[\w$]+)?", re.IGNORECASE)


class Subquery(str):
    """A SELECT."""


@dataclass(frozen=True)
class KeyRange:
    """A split."""

    condition: str  # the SQL condition of its rows; empty for all rows
    wanted: tuple[str, ...]  # conditions of the query
    columns: tuple[ResultColumn, ...]  # the columns to read, as they were at planning time
    place: str  # of the state that all splits should see, see `one_state.planned`


class MySqlSource:
    """See `sparkonce.reading.Source`."""

    def __init__(self, session: MySqlSession, options: Options, scan: Scan) -> None:
        self.session, self.options, self.scan = session, options, scan
        self.relation, table = relation(options), _named(options)
        self._table = (session.database, *table)[-2:] if table else ()  # empty for a query
        self._demands = bool(options["consistency"] == "snapshot")

    def splits(self) -> Sequence[KeyRange]:
        """See `Source.splits`. Returns ranges of a column, or a single split."""
        with translated_read("planning a read"), self.session.limited():
            columns = tuple(columns_named(self.session, self.relation, self.scan.schema.names))
            self._forms(columns)  # rejects unreadable columns before any row is read
            wanted = tuple(self._wanted(columns)) if self.scan.filters else ()
            conditions = self._conditions()
            place = ""  # a single split sees one state at any time
            if len(conditions) > 1:
                place = one_state.planned(self.session, self._table, demanded=self._demands)
            return [KeyRange(one, wanted, columns, place) for one in conditions]

    def read(self, split: KeyRange) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        with translated_read("reading rows"), self.session.connected() as live:
            forms, schema = self._forms(split.columns), self.scan.schema
            conditions = " AND ".join(f"({one})" for one in (split.condition, *split.wanted) if one)
            where = f" WHERE {conditions}" if conditions else ""
            with one_state.held(live, split.place, demanded=self._demands):
                try:
                    yield from rows(self.session, forms, self.relation, where, schema)
                except pymysql.MySQLError as error:
                    if number(error) != READ_ONLY:
                        raise
                    raise StoreRefused(
                        "The query writes or locks rows",
                        why="a read must do neither, so FOR UPDATE and functions that write fail",
                        todo="remove them from option query",
                    ) from None

    def _forms(self, columns: Sequence[ResultColumn]) -> list[WireForm]:
        return [
            zero_as_null(form) if self._may_be_zero(column) and types.is_temporal(kind) else form
            for column, kind in zip(columns, self.scan.schema.types, strict=True)
            for form in (wire_form(column, kind),)
        ]

    def _may_be_zero(self, column: ResultColumn) -> bool:
        """Whether a zero date of the column is read as null."""
        return column.code in zero_dates(self.options)

    def _wanted(self, columns: Sequence[ResultColumn]) -> Iterator[str]:
        """Conditions of the query, on columns that are read as their own types."""
        natural = {
            field.name: column
            for field, column in zip(self.scan.schema, columns, strict=True)
            # The server's IS NULL finds no zero date.
            if field.type == column.natural and not self._may_be_zero(column)
        }
        return where.conditions(self.session, self._table, self.scan.filters, natural)

    def _conditions(self) -> list[str]:
        parts, by = self.options["numPartitions"], self.options["partitionColumn"]
        known = where.comparable(self.session, self._table)
        if by:
            (column,) = columns_named(self.session, self.relation, [by], "partitionColumn")
            is_virtual = self._table and self.session.run(VIRTUAL, *self._table, column.name)
            found = axes.axis(column, known)
            if is_virtual or not isinstance(found, axes.Numbers | axes.Texts):
                raise OptionError(
                    f"Option partitionColumn names column {column.name!r}, which has no ranges",
                    why="ranges need numbers, dates, timestamps, or texts of an InnoDB table in a"
                    " collation that docs/reading.md lists. YEAR and BIT are excluded. So are"
                    " virtual columns, whose index may have other values than the rows",
                    todo="name a column of one of these types, or omit the option",
                )
            bounds = [self.options[one] for one in ("lowerBound", "upperBound")]
            return ranges.strides(self.session, found, bounds, parts)
        key = self._key(known)
        borders = ranges.borders(self.session, self.relation, key, parts) if key else []
        return ranges.between(key, borders)

    def _key(self, known: Mapping[str, where.Comparable]) -> list[axes.Axis]:
        """The first columns of the primary key of a table that can be divided into ranges."""
        indexes = lookup.indexes_of(self.session, self._table) if self._table else ()
        primary = next((one for one in indexes if one.name == "PRIMARY" and one.whole), None)
        found, why = list[axes.Axis](), "its type can't be divided into ranges"
        for name in primary.columns if primary else ():
            try:  # by name: * does not include an invisible column
                (column,) = described(self.session, self.relation, identifier(name))
            except pymysql.MySQLError as error:
                if number(error) not in NO_RIGHT:
                    raise
                why, axis = "the user has no right to read it", None
            else:
                axis = axes.axis(column, known)
            if axis is None:
                if not found:
                    log.info("%s is read in one split: key column %s, %s", self.relation, name, why)
                break
            found.append(axis)
        return found


def zero_dates(options: Options) -> tuple[int, ...]:
    """The codes of types whose zero dates are read as null."""
    return (*DAYS, *MOMENTS) if options["zeroDates"] == "null" else ()


def columns_named(
    session: MySqlSession, relation: str, names: Sequence[str], option: str = "columns"
) -> list[ResultColumn]:
    """The columns that an option names, whatever their case; needs no right to other columns.

    Raises:
        OptionError: a column does not exist.
    """
    try:
        return described(session, relation, ", ".join(map(identifier, names)))
    except pymysql.MySQLError as error:
        if number(error) != NO_COLUMN:
            raise
        there = pa.schema([(one.name, pa.null()) for one in described(session, relation)])
        for name in names:
            checks.column(option, name, there)
        raise


def subquery(text: str) -> Subquery | None:
    """The SELECT of a ``dbtable`` in the form of Spark's JDBC, ``(SELECT ...) AS name``; or None.

    Raises:
        ValueError: it begins with a parenthesis, and has another form.
    """
    words = [*_words(text)]
    if not words or words[0][0] != "(":
        return None
    depth = 0
    for at, (word, _) in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            if not ALIAS.fullmatch("".join(one for one, _ in words[at + 1 :])):
                break
            return Subquery(text[words[0][1] : words[at][1] - 1])
    raise ValueError("(SELECT ...) AS name")


def condition(text: str) -> str:
    """Parse a condition in SQL, which can be put between parentheses.

    Raises:
        ValueError: its parentheses or quotes do not match, or it is more than a condition.
    """
    depth, words = 0, [word for word, _ in _words(text)]
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth < 0:
            break
    refused = {";", "'", '"', "`", "@", "select"} & {one.lower() for one in words}
    if depth or not words or refused or "/*" in "".join(words):
        raise ValueError(
            "one condition, such as day >= '2026-01-01' AND day < '2026-02-01', without subqueries"
            " and variables"
        )
    return text


def relation(options: Options) -> str:
    """The SQL that follows FROM.

    Raises:
        OptionError: the options name neither a table nor a query, or both, or half of a range.
    """
    table, query = options["dbtable"], options["query"]
    ranged = [options[one] for one in ("partitionColumn", "lowerBound", "upperBound")]
    checks.refuse(
        [
            (
                bool(table) == bool(query),
                "Options dbtable and query: exactly one of them must be set",
                f"{'both are' if table else 'none is'} set",
                "set one of them",
            ),
            (
                any(ranged) and not all(ranged),
                "Options partitionColumn, lowerBound and upperBound belong together",
                "ranges need all three",
                "set all of them, or none",
            ),
        ]
    )
    if names := _named(options):
        return identifier(*names)
    return f"(\n{_alone(query or table)}\n) AS sparkonce_query"


def _named(options: Options) -> Names:
    """The table to read, with its database if the option names it; empty for a query."""
    table = options["dbtable"]
    return () if not table or isinstance(table, Subquery) else table


def _alone(query: str) -> str:
    """The query without semicolons and comments after its last word."""
    end, is_over = 0, False
    for word, at in _words(query):
        if word == ";":
            is_over = True
        elif is_over:
            raise OptionError(
                f"Option query has more than one statement: {word!r} begins another",
                why="a read is one SELECT",
                todo="keep one of them; put a semicolon that is part of a string in quotes",
            )
        else:
            end = at
    return query[:end]


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Each word, without blanks and comments, and its end."""
    return ((found["word"], found.end()) for found in TOKEN.finditer(text) if found["word"])
