"""A table or a query as a source: its splits, and the rows of each."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pymysql

from pyspark_mysql.read import one_state, ranges, where
from pyspark_mysql.read.columns import ResultColumn, WireForm, described, wire_form
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
"""Blanks and comments, and all else, as a session reads them that has none of ANSI_QUOTES and
NO_BACKSLASH_ESCAPES. What begins with ``/*!`` is no comment."""

ALIAS = re.compile(r"(?:as)?(?:`(?:[^`]|``)+`|[\w$]+)?", re.IGNORECASE)


class Subquery(str):
    """A SELECT."""


@dataclass(frozen=True)
class KeyRange:
    """A split."""

    condition: str  # of its rows, in SQL; empty for all
    wanted: tuple[str, ...]  # conditions of the query
    columns: tuple[ResultColumn, ...]  # what is read, as it was when the read was planned
    place: str  # of the state that all splits should see, see `one_state.planned`


class MySqlSource:
    """See `sparkonce.reading.Source`."""

    def __init__(self, session: MySqlSession, options: Options, scan: Scan) -> None:
        self.session, self.options, self.scan = session, options, scan
        self.relation, table = relation(options), _named(options)
        self._table = (session.database, *table)[-2:] if table else ()  # empty of a query
        self._demands = bool(options["consistency"] == "snapshot")

    def splits(self) -> Sequence[KeyRange]:
        """See `Source.splits`. By ranges of a column, or one."""
        with translated_read("planning a read"), self.session.limited():
            columns = tuple(columns_named(self.session, self.relation, self.scan.schema.names))
            self._forms(columns)  # what can't be read is refused before any row is
            wanted = tuple(self._wanted(columns)) if self.scan.filters else ()
            conditions = self._conditions()
            place = ""  # one split is one state whenever it is read
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
                        why="a read does neither, so FOR UPDATE and functions that write fail",
                        todo="leave them out of option query",
                    ) from None

    def _forms(self, columns: Sequence[ResultColumn]) -> list[WireForm]:
        return [*map(wire_form, columns, self.scan.schema.types)]

    def _wanted(self, columns: Sequence[ResultColumn]) -> Iterator[str]:
        """Conditions of the query, on columns that are read as what they are."""
        natural = {
            field.name: column
            for field, column in zip(self.scan.schema, columns, strict=True)
            if field.type == column.natural
        }
        return where.conditions(self.session, self._table, self.scan.filters, natural)

    def _conditions(self) -> list[str]:
        parts, by = self.options["numPartitions"], self.options["partitionColumn"]
        if by:
            (column,) = columns_named(self.session, self.relation, [by], "partitionColumn")
            is_virtual = self._table and self.session.run(VIRTUAL, *self._table, column.name)
            if is_virtual or not ranges.divides(column):
                raise OptionError(
                    f"Option partitionColumn names column {column.name!r}, which has no ranges",
                    why="ranges are made of whole numbers, dates and timestamps; YEAR and BIT are"
                    " none of these, and an index of a virtual column may have other values than"
                    " its rows",
                    todo="name a column of such a type, or leave the option out",
                )
            bounds = (self.options[one] for one in ("lowerBound", "upperBound"))
            low, high = (ranges.read_bound(one, column) for one in bounds)
            return ranges.strides(column, low, high, parts)
        if not (leading := self._leading()):
            return [""]
        borders = ranges.borders(self.session, self.relation, leading, parts)
        return ranges.between(leading, borders)

    def _leading(self) -> ResultColumn | None:
        """The first column of the primary key of a table, if ranges can be made of it."""
        indexes = lookup.indexes_of(self.session, self._table) if self._table else ()
        first = next((one.columns[0] for one in indexes if one.name == "PRIMARY"), None)
        if first is None:
            return None
        try:  # by its name: an invisible one is not among all columns
            (column,) = described(self.session, self.relation, identifier(first))
            if ranges.divides(column):
                return column
            why = "no ranges are made of its type"
        except pymysql.MySQLError as error:
            if number(error) not in NO_RIGHT:
                raise
            why = "the user has no right to it"
        log.info("%s is read in one split by its key %s: %s", self.relation, first, why)
        return None


def columns_named(
    session: MySqlSession, relation: str, names: Sequence[str], option: str = "columns"
) -> list[ResultColumn]:
    """Columns by name, in any case, which an option names; the user needs no right to others.

    Raises:
        OptionError: there is no such column.
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
    """The SELECT of a ``dbtable`` as Spark's JDBC has it, ``(SELECT ...) AS name``; or None.

    Raises:
        ValueError: it begins so, and is something else.
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


def relation(options: Options) -> str:
    """What stands behind FROM.

    Raises:
        OptionError: options name no table and no query, or both, or half of a range.
    """
    table, query = options["dbtable"], options["query"]
    ranged = [options[one] for one in ("partitionColumn", "lowerBound", "upperBound")]
    checks.refuse(
        [
            (
                bool(table) == bool(query),
                "Options dbtable and query: one of them says what is read",
                f"{'both are' if table else 'none is'} set",
                "set one of them",
            ),
            (
                any(ranged) and not all(ranged),
                "Options partitionColumn, lowerBound and upperBound belong together",
                "ranges are made of all three",
                "set all of them, or none",
            ),
        ]
    )
    if names := _named(options):
        return identifier(*names)
    return f"(\n{_alone(query or table)}\n) AS sparkonce_query"


def _named(options: Options) -> Names:
    """The table that is read, with its database if that is named; empty of a query."""
    table = options["dbtable"]
    return () if not table or isinstance(table, Subquery) else table


def _alone(query: str) -> str:
    """The query without semicolons and comments behind its last word."""
    end, is_over = 0, False
    for word, at in _words(query):
        if word == ";":
            is_over = True
        elif is_over:
            raise OptionError(
                f"Option query has more than one statement: {word!r} begins another",
                why="what is read is one SELECT",
                todo="leave one of them; a semicolon inside a text stands in quotes",
            )
        else:
            end = at
    return query[:end]


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Each word that is no blank and no comment, and where it ends."""
    return ((found["word"], found.end()) for found in TOKEN.finditer(text) if found["word"])
