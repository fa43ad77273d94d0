"""A table or a query as a source: its splits, and the rows of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from pyspark_mysql.reading import ranges, snapshot, where
from pyspark_mysql.reading.described import Described, described
from pyspark_mysql.reading.forms import Form, form
from pyspark_mysql.reading.lines import TooLongError, lines
from pyspark_mysql.reading.rows import batches, line
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import translated
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target import lookup
from sparkonce import checks
from sparkonce.change import Names
from sparkonce.errors import ValueUnreadable
from sparkonce.options import Options
from sparkonce.reading import Scan

log = logging.getLogger("sparkonce")

WRITE_SECONDS = 3600
"""For so long the server keeps rows for a task that does not take them."""


@dataclass(frozen=True)
class Range:
    """A split.

    Attributes:
        condition: of its rows, in SQL; empty for all.
        place: of the state that all splits should see, see `snapshot.planned`.
    """

    condition: str
    place: str


class MySqlSource:
    """See `sparkonce.reading.Source`."""

    def __init__(self, session: Session, options: Options, scan: Scan) -> None:
        self.session, self.options, self.scan = session, options, scan
        self.relation = relation(options)

    def splits(self) -> Sequence[Range]:
        """See `Source.splits`. By ranges of a column, or one."""
        with translated("planning a read"):
            self._forms  # noqa: B018 (what can't be read is told before any row is)
            conditions = self._conditions()
            if len(conditions) == 1:  # which is one state whenever it is read
                return [Range(conditions[0], "")]
            place = snapshot.planned(self.session, self._table, demanded=self._demands)
            return [Range(one, place) for one in conditions]

    def read(self, split: Range) -> Iterator[pa.RecordBatch]:
        """See `Source.read`."""
        with translated("reading rows"), self.session.connected() as live:
            live.run(f"SET SESSION net_write_timeout={WRITE_SECONDS}")
            with snapshot.held(live, split.place, demanded=self._demands):
                try:
                    # Closed here, or the connection would go back to its pool in mid-answer.
                    with closing(lines(live, self._select(split))) as blocks:
                        yield from batches(blocks, self._forms, self.scan.schema)
                except TooLongError:
                    raise _too_long() from None

    @property
    def _table(self) -> Names:
        """Database and name of what is read; empty of a query."""
        table = self.options["dbtable"]
        return (self.session.database, *table)[-2:] if table else ()

    @property
    def _demands(self) -> bool:
        return bool(self.options["consistency"] == "snapshot")

    @cached_property
    def _there(self) -> Mapping[str, Described]:
        """The columns that there are, by their names."""
        return {one.name: one for one in described(self.session, self.relation)}

    @cached_property
    def _columns(self) -> Mapping[str, Described]:
        """Those that are read, by their names in the query."""
        return {name: self._named("columns", name) for name in self.scan.schema.names}

    def _named(self, option: str, name: str) -> Described:
        there = pa.schema([(one, pa.null()) for one in self._there])
        return self._there[checks.column(option, name, there)]

    @cached_property
    def _forms(self) -> list[Form]:
        return [form(self._columns[one.name], one.type) for one in self.scan.schema]

    def _select(self, split: Range) -> str:
        columns = [identifier(one.name) for one in self._columns.values()]
        natural = {
            one.name: self._columns[one.name]
            for one in self.scan.schema
            if one.type == self._columns[one.name].natural
        }
        told = [split.condition, *where.conditions(self.scan.filters, natural, self._texts)]
        conditions = " AND ".join(f"({one})" for one in told if one)
        wanted = f" WHERE {conditions}" if conditions else ""
        return f"SELECT {line(self._forms, columns)} FROM {self.relation}{wanted}"

    @cached_property
    def _texts(self) -> frozenset[str]:
        """The columns whose texts the server finds; asked for where a condition has a text."""
        if not self._table or not where.has_texts(self.scan.filters):
            return frozenset()
        return where.equal_texts(self.session, self._table)

    def _conditions(self) -> list[str]:
        parts, named = self.options["numPartitions"], self.options["partitionColumn"]
        if named:
            column = self._named("partitionColumn", named)
            checks.refuse([_undivided(column)])
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
        # Asked for by its name: an invisible one is not among all columns.
        (column,) = described(self.session, self.relation, identifier(first))
        if ranges.divides(column):
            return column
        log.info("%s is read in one split: no ranges of its key %s", self.relation, first)
        return None


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
    return identifier(*table) if table else f"({query.rstrip().rstrip(';')}) AS sparkonce_query"


def _undivided(column: Described) -> checks.Contradiction:
    return (
        not ranges.divides(column),
        f"Option partitionColumn names column {column.name!r}, which has no ranges",
        "ranges are made of whole numbers, dates and timestamps; YEAR and BIT are none of these",
        "name a column of such a type, or leave the option out",
    )


def _too_long() -> ValueUnreadable:
    return ValueUnreadable(
        "A row is longer than the server sends",
        why="its text takes more than max_allowed_packet",
        todo="raise max_allowed_packet on the server, or read fewer columns by option columns",
    )
