"""A table or a query as a source: its splits, and the rows of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pymysql

from pyspark_mysql.read import ranges, snapshot, where
from pyspark_mysql.read.described import Described, described
from pyspark_mysql.read.forms import Form, form
from pyspark_mysql.read.lines import TooLongError, lines
from pyspark_mysql.read.relation import named, relation
from pyspark_mysql.read.rows import batches, line
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import number, translated_read
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from sparkonce import checks
from sparkonce.change import Names
from sparkonce.errors import StoreRefused, ValueUnreadable
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

NO_COLUMN, NO_RIGHT, READ_ONLY = 1054, (1142, 1143), 1792
"""Numbers of errors."""

VIRTUAL = """
SELECT 1 FROM information_schema.columns WHERE table_schema = %s AND table_name = %s
  AND column_name = %s AND extra LIKE '%%VIRTUAL%%'
"""

WRITE_SECONDS = 3600
"""For so long the server keeps rows for a task that does not take them."""


@dataclass(frozen=True)
class Range:
    """A split.

    Attributes:
        condition: of its rows, in SQL; empty for all.
        wanted: conditions of the query.
        columns: what is read, as it was when the read was planned.
        place: of the state that all splits should see, see `snapshot.planned`.
    """

    condition: str
    wanted: tuple[str, ...]
    columns: tuple[Described, ...]
    place: str


class MySqlSource:
    """See `sparkonce.reading.Source`."""

    def __init__(self, session: Session, options: Options, scan: Scan) -> None:
        self.session, self.options, self.scan = session, options, scan
        self.relation = relation(options)

    def splits(self) -> Sequence[Range]:
        """See `Source.splits`. By ranges of a column, or one."""
        with translated_read("planning a read"), self.session.limited():
            columns = tuple(columns_named(self.session, self.relation, self.scan.schema.names))
            self._forms(columns)  # what can't be read is refused before any row is
            wanted = tuple(self._wanted(columns))
            conditions = self._conditions()
            place = ""  # one split is one state whenever it is read
            if len(conditions) > 1:
                place = snapshot.planned(self.session, self._table, demanded=self._demands)
            return [Range(one, wanted, columns, place) for one in conditions]

    def read(self, split: Range) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        with translated_read("reading rows"), self.session.connected() as live:
            live.run(f"SET SESSION net_write_timeout={WRITE_SECONDS}")
            forms = self._forms(split.columns)
            with snapshot.held(live, split.place, demanded=self._demands):
                try:
                    # Closed here, or the connection would go back to its pool in mid-answer.
                    with closing(lines(self.session, self._select(split, forms))) as blocks:
                        yield from batches(blocks, forms, self.scan.schema)
                except TooLongError:
                    raise _too_long() from None
                except pymysql.MySQLError as error:
                    if number(error) == READ_ONLY:
                        raise _writes() from None
                    raise

    @property
    def _table(self) -> Names:
        """Database and name of what is read; empty of a query."""
        table = named(self.options)
        return (self.session.database, *table)[-2:] if table else ()

    @property
    def _demands(self) -> bool:
        return bool(self.options["consistency"] == "snapshot")

    def _forms(self, columns: Sequence[Described]) -> list[Form]:
        kinds = self.scan.schema.types
        return [form(column, kind) for column, kind in zip(columns, kinds, strict=True)]

    def _select(self, split: Range, forms: Sequence[Form]) -> str:
        names = [identifier(one.name) for one in split.columns]
        conditions = " AND ".join(f"({one})" for one in (split.condition, *split.wanted) if one)
        wanted = f" WHERE {conditions}" if conditions else ""
        return f"SELECT {line(forms, names)} FROM {self.relation}{wanted}"

    def _wanted(self, columns: Sequence[Described]) -> Iterator[str]:
        """Conditions of the query, on columns that are read as what they are."""
        natural = {
            field.name: column
            for field, column in zip(self.scan.schema, columns, strict=True)
            if field.type == column.natural
        }
        known = where.comparables(self.session, self._table) if self.scan.filters else {}
        return where.conditions(self.scan.filters, natural, known)

    def _conditions(self) -> list[str]:
        parts, by = self.options["numPartitions"], self.options["partitionColumn"]
        if by:
            (column,) = columns_named(self.session, self.relation, [by], "partitionColumn")
            is_virtual = self._table and self.session.run(VIRTUAL, *self._table, column.name)
            checks.refuse([_undivided(column, is_virtual=bool(is_virtual))])
            bounds = (self.options[one] for one in ("lowerBound", "upperBound"))
            low, high = (ranges.read_bound(one, column) for one in bounds)
            return ranges.strides(ranges.Bounds(column, low, high), parts)
        leading = self._leading()
        borders = leading and ranges.borders(self.session, self.relation, leading, parts)
        return ranges.between(leading, borders) if leading and borders else [""]

    def _leading(self) -> Described | None:
        """The first column of the primary key of a table, if ranges can be made of it."""
        if not self._table:
            return None
        indexes = lookup.indexes_of(self.session, self._table)
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
    session: Session, relation: str, names: Sequence[str], option: str = "columns"
) -> list[Described]:
    """Columns by name, in any case; the user needs no right to others.

    Args:
        session: asks.
        relation: what stands behind FROM.
        names: of the columns.
        option: that names them.

    Raises:
        OptionError: there is no such column.
        pymysql.MySQLError: the server does not answer.
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


def _undivided(column: Described, *, is_virtual: bool) -> checks.Contradiction:
    return (
        is_virtual or not ranges.divides(column),
        f"Option partitionColumn names column {column.name!r}, which has no ranges",
        "ranges are made of whole numbers, dates and timestamps; YEAR and BIT are none of these,"
        " and an index of a virtual column may have other values than its rows",
        "name a column of such a type, or leave the option out",
    )


def _too_long() -> ValueUnreadable:
    return ValueUnreadable(
        "A row is longer than the server sends",
        why="its text takes more than max_allowed_packet",
        todo="raise max_allowed_packet on the server, or read fewer columns by option columns",
    )


def _writes() -> StoreRefused:
    return StoreRefused(
        "The query writes or locks rows",
        why="a read does neither, so FOR UPDATE and functions that write fail",
        todo="leave them out of option query",
    )
