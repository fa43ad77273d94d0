"""Gathers the rows of an epoch in a temporary table, and applies them to the target from there.

The table's columns have the types and collations of the target's columns. So the server cuts, pads
and compares keys in it exactly as in the target.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier, string
from pyspark_mysql.target.coercions import of_null
from pyspark_mysql.target.columns import TableColumn, definition, named
from pyspark_mysql.target.lookup import Target, triggers
from pyspark_mysql.write.chunks import EncodedRows
from pyspark_mysql.write.contradictions import OWN_COLUMNS
from pyspark_mysql.write.inserting import (
    InsertWriter,
    LoadWriter,
    RowWriter,
    SkippingWriter,
    empty,
)
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import PutAside, Refusals, RefusedRow, sent_in_halves
from pyspark_mysql.write.statements import NEW, Frame, frame, key_times
from sparkonce.change import Update
from sparkonce.errors import OptionError

FLAG, ROW = map(identifier, OWN_COLUMNS)
WON, CAME, GONE = "sparkonce_won", "came", "gone"
"""A winner: its number among the rows, and whether any row of its key deletes."""
NUMBER = f"{ROW} BIGINT AUTO_INCREMENT PRIMARY KEY"
FEWEST, MOST, MOST_NUMBERS = 500, 50_000, 2**63 - 1

UNCHECKED = "SET STATEMENT check_constraint_checks = 0 FOR "
"""Since 11.4, MariaDB copies constraints of columns, but they apply only to the final rows."""

NO_INDEX = (1070, 1071, 1170, 3152)
"""Errors for a key with too many columns, one that is too long, or of a type without indexes."""


def writer_for(
    session: MySqlSession,
    detail: TableRows,
    target: Target,
    put_aside: PutAside | None = None,
    place: int = 0,
) -> RowWriter:
    """The writer for the rows of a plan and the current target.

    Args:
        session: in whose transaction it writes.
        detail: of the rows.
        target: their table.
        put_aside: takes bad rows; if it is None, a bad row stops the epoch.
        place: among the writers of an epoch, each of which has temporary tables of its own.
    """
    # The server could match a row with a stored row by another unique key than its own.
    ambiguous = detail.updates and bool(target.others(detail.key, detail.columns))
    refusals = Refusals(detail, put_aside, ambiguous=ambiguous)
    if gathers := _gathers(detail):
        return gathers(session, refusals, target, place)
    has_instants = target.holds_instants(detail.columns)
    # A default, or a trigger that the user may see, may read the local time.
    if has_instants and (target.computes_time(detail.columns) or triggers(session, detail.table)):
        if detail.skips:
            raise OptionError(
                f"Option onDuplicate=ignore can't be used with table {detail.table_name}",
                why="it computes local times beside a TIMESTAMP, so its rows are copied within the"
                " server, which does not tell duplicates from other warnings",
                todo="write every column, or use writeMode=upsert",
            )
        return CopyWriter(session, refusals, target, place)

    form = partial(frame, detail, mariadb=session.live.mariadb, ambiguous=ambiguous)
    if detail.skips:
        skipping = SkippingWriter(session, refusals, form())
        skipping.is_local = not has_instants
        return skipping
    given = session, refusals, form(), form if detail.keeps_nulls else None
    loads = LoadWriter.fits(session, detail, target.columns)
    found = LoadWriter(*given, target.columns) if loads else InsertWriter(*given)
    found.is_local = not has_instants
    return found


def _gathers(detail: TableRows) -> type[GatheringWriter] | None:
    """The writer that gathers the rows of an epoch, if their mode needs that."""
    if isinstance(detail.change, Update):
        return UpdateWriter
    if not detail.makes_rows:
        return DeleteWriter
    if detail.replaces:
        return ReplacingWriter
    return WinnerWriter if detail.folded else None


class GatheringWriter(RowWriter):
    """Gathers the rows of an epoch, numbered in order of arrival; a subclass applies them.

    Attributes:
        numbered: the table with the numbers: that of the winners, if rows are folded.
        source: the SQL that follows FROM, with the rows as ``sparkonce_new``.
        number: the number of a row, in terms of the source.
    """

    def __init__(
        self, session: MySqlSession, refusals: Refusals, target: Target, place: int = 0
    ) -> None:
        super().__init__(session, refusals)
        self.mariadb, self.target, detail = session.live.mariadb, target, self.detail
        self.quoted, database = identifier(*detail.table), detail.table[0]
        self.table = self.numbered = identifier(database, f"sparkonce_epoch{place or ''}")
        self.source, self.number = f"{self.table} AS {NEW}", f"{NEW}.{ROW}"
        if detail.folded:
            self.numbered = identifier(database, f"sparkonce_winners{place or ''}")
            same = f"{NEW}.{ROW} = {WON}.{CAME}"
            # STRAIGHT_JOIN: the server reads winners by number, so they take effect in that order.
            self.source = f"{self.numbered} AS {WON} STRAIGHT_JOIN {self.source} ON {same}"
            self.number = f"{WON}.{ROW}"
        names = ", ".join([*map(identifier, detail.columns), *([FLAG] if detail.folded else [])])
        unchecked = UNCHECKED if self.mariadb else ""
        arrival = f"{unchecked}INSERT INTO {self.table} ({names}) VALUES "
        self.arriving = InsertWriter(session, refusals, Frame(arrival.encode(), b""))

    def begin(self) -> None:
        """See `RowWriter.begin`."""
        self._create()

    def write(self, rows: EncodedRows) -> None:
        """See `RowWriter.write`."""
        self.arriving.write(rows)

    def end(self) -> bool:
        """See `RowWriter.end`."""
        self._take_effect()
        # Whether any row has not been taken out.
        return bool(self.session.run(f"SELECT 1 FROM {self.numbered} LIMIT 1"))

    @abstractmethod
    def _take_effect(self) -> None:
        """Apply the gathered rows to the target."""

    def _copy(self) -> tuple[str, str]:
        """The statement that writes gathered rows: the SQL before WHERE, and the SQL after it."""
        written = self.detail.written_to(self.target.columns)
        names = [identifier(name) for name in written.columns]
        values = ", ".join(f"{NEW}.{name}" for name in names)
        into = f"INSERT INTO {self.quoted} ({', '.join(names)})"
        ambiguous = self.refusals.ambiguous
        update = frame(written, mariadb=self.mariadb, ambiguous=ambiguous).tail.decode()
        # INSERT ... SELECT accepts no alias after it: its rows already have this name in FROM.
        return f"{into} SELECT {values} FROM {self.source}", update.removeprefix(f" AS {NEW}")

    def _create(self, *own: str) -> None:
        """Create the tables anew; that of rows also with the definitions `own`."""
        # The sequence has the type of the query, not of the target, unless it is part of the key.
        order = None if self.detail.order in self.detail.key else self.detail.order
        defined = [f"{FLAG} BOOLEAN"] if self.detail.folded else []
        if order:
            kind = self.detail.kinds[order]
            defined.append(definition(order, kind, in_key=False, mariadb=self.mariadb))
        copied = [f"t.{identifier(name)}" for name in self.detail.columns if name != order]
        self._make(
            self.table,
            ", ".join([NUMBER, *own, *defined]),
            # Columns of an outer join are nullable: a row that deletes has no other values.
            f" SELECT {', '.join(copied)} FROM (SELECT 1) AS one"
            f" LEFT JOIN {self.quoted} AS t ON FALSE LIMIT 0",
        )
        if self.detail.folded:
            self._make(self.numbered, f"{NUMBER}, {CAME} BIGINT NOT NULL, {GONE} BOOLEAN NOT NULL")

    def close(self) -> None:
        """See `RowWriter.close`."""
        tables = ", ".join({self.table, self.numbered})
        self.session.run(f"DROP TEMPORARY TABLE IF EXISTS {tables}")

    def _make(self, table: str, definitions: str, select: str = "") -> None:
        # They live as long as the connection, which may still have those of an earlier epoch.
        # With TEMPORARY neither statement commits.
        self.session.run(f"DROP TEMPORARY TABLE IF EXISTS {table}")
        self.session.run(f"CREATE TEMPORARY TABLE {table} ({definitions}) ENGINE=InnoDB{select}")

    def _follow(self, statement: str, tail: str = "") -> None:
        """Run the statement for all rows, some at a time; a range of rows precedes the tail."""
        ((last,),) = self.session.run(f"SELECT COALESCE(MAX({ROW}), 0) FROM {self.numbered}")
        timeout = float(self.session.options["timeout"])

        def send(some: range) -> None:
            where = f"{self.number} BETWEEN {some.start} AND {some[-1]}"
            with self.session.local_time():
                self.session.run(f"{statement} WHERE {where}{tail}")

        for row, error in sent_in_halves(_paced(int(last), timeout), send):
            self.refusals.by_server(self._take_out(row.start), error)

    def _delete(self, *, indexed: bool, which: str = "") -> None:
        """Delete the rows of the target that have the keys of gathered rows.

        `which` is a further condition.
        """
        self._follow(f"DELETE t FROM {self._joined(indexed=indexed)}", which)

    def _joined(self, *, indexed: bool) -> str:
        """The gathered rows, joined with the rows of the target `t` that have their keys.

        With an index the server looks up each row, and locks no other row of the target. Without
        one the server chooses its own plan.
        """
        names = map(identifier, self.detail.key)
        same = " AND ".join(f"t.{name} = {NEW}.{name}" for name in names)
        join = "STRAIGHT_JOIN" if indexed else "JOIN"
        return f"{self.source} {join} {self.quoted} AS t ON {same}"

    def _take_out(self, number: int) -> list[str]:
        """Remove a gathered row, and return its literals."""
        # Adding 0e0 gives all digits: the server shows only some digits of a FLOAT.
        there = named(self.target.columns, self.detail.columns)
        names = [self._shown(name, there.get(name)) for name in self.detail.columns]
        names += [f"{NEW}.{FLAG}"] if self.detail.folded else []
        where = f"{self.number} = {number}"
        (row,) = self.session.run(f"SELECT {', '.join(names)} FROM {self.source} WHERE {where}")
        # No later statement finds the row: a row that failed to delete is not written either.
        self.session.run(f"DELETE FROM {self.numbered} WHERE {ROW} = {number}")
        return [_literal(value) for value in row]

    def _shown(self, name: str, column: TableColumn | None) -> str:
        """An expression for the value of a column that keeps all of it."""
        if column is not None and column.kind == "time":  # the client makes an interval of it
            return f"CAST({identifier(NEW, name)} AS CHAR)"
        return identifier(NEW, name) + (" + 0e0" if self.detail.kinds[name] == "float" else "")


class CopyWriter(GatheringWriter):
    """Writes each row, in order of arrival, to a table that computes local time.

    Instants are sent in UTC, where no zone or DST changes them, but a default or a trigger must see
    the server's local time. So rows arrive in UTC, and are copied in local time.
    """

    def _take_effect(self) -> None:
        self._follow(*self._copy())


class ReplacingWriter(CopyWriter):
    """Copies the rows of an overwrite for which its condition holds, and refuses the others."""

    def begin(self) -> None:
        """See `RowWriter.begin`."""
        super().begin()
        self._others(0)

    def _take_effect(self) -> None:
        for place in self._others(MOST_NUMBERS):
            error = RefusedRow(
                "option replaceWhere does not hold for it",
                "a later run of the batch would not replace the row",
                "filter the rows by the condition, or correct the condition",
            )
            self.refusals.refuse(self._take_out(place), error)
        super()._take_effect()

    def _others(self, most: int) -> list[int]:
        """The numbers of rows for which the condition is false or unknown."""
        condition = f"COALESCE(NOT (\n{self.detail.replaces}\n), TRUE)"
        sql = f"SELECT {self.number} FROM {self.source} WHERE {condition} ORDER BY 1 LIMIT {most}"
        return [int(place) for (place,) in self.session.run(sql)]


class DeleteWriter(GatheringWriter):
    """Deletes the rows that have these keys.

    If no index of the target finds the rows, the gathered keys get an index.
    """

    def begin(self) -> None:
        """See `RowWriter.begin`."""
        key = {name.lower() for name in self.detail.key}
        self.indexed = self.target.finds_by(key)
        names = ", ".join(map(identifier, self.detail.key))
        try:
            self._create(*([] if self.indexed else [f"INDEX ({names})"]))
        except pymysql.MySQLError as error:
            if number(error) not in NO_INDEX:
                raise
            # A key without an index makes deletes slower, but still correct.
            self._create()

    def _take_effect(self) -> None:
        self._delete(indexed=self.indexed)


class WinnerWriter(GatheringWriter):
    """Writes or deletes each key of an epoch once, as its last row requires.

    If any row deletes a key, the writer deletes the key before it writes the last row, so that
    columns which the query lacks get their defaults. All deletes precede all writes, and both keep
    the order of rows: a later row may use a unique value or a parent that an earlier one released.
    """

    empties = False

    def begin(self) -> None:
        """See `RowWriter.begin`."""
        super().begin()
        self.empties = False

    def empty(self) -> None:
        """See `RowWriter.empty`."""
        self.session.run(f"DELETE FROM {self.table}")
        self.empties = True

    def end(self) -> bool:
        """See `RowWriter.end`. An emptied target shows that it accepts changes."""
        return super().end() or self.empties

    def _take_effect(self) -> None:
        if self.empties:
            empty(self.session, self.detail)
        self.session.run(self._choice())
        if self.detail.op:  # otherwise the user needs no right to delete
            self._delete(indexed=True, which=f" AND {WON}.{GONE}")
        self._refuse_nulls()
        insert, update = self._copy()
        self._follow(insert, f" AND NOT {NEW}.{FLAG}{update}")

    def _choice(self) -> str:
        """The statement that finds the winners.

        A server numbers the rows of a key as fast as it sorts them. (MariaDB computes the MAX of a
        window in quadratic time.) In a second numbering deletes sort first: a winner with a higher
        number than 1 has deletes.
        """
        key = ", ".join(map(identifier, self.detail.key))
        by = [identifier(self.detail.order)] if self.detail.order else []
        last = ", ".join(f"{column} DESC" for column in (*by, ROW))
        place = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {last})"
        behind = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {FLAG} DESC, {last})"
        # The last ORDER BY determines the numbers of winners, and so the order of their effects.
        return (
            f"INSERT INTO {self.numbered} ({CAME}, {GONE}) SELECT {ROW}, {FLAG} OR behind > 1 FROM"
            f" (SELECT {ROW}, {FLAG}, {by[0] if by else '0'} AS sequence, {place} AS place,"
            f" {behind if self.detail.op else '1'} AS behind FROM {self.table}) AS numbered"
            f" WHERE place = 1 ORDER BY sequence, {ROW}"
        )

    def _refuse_nulls(self) -> None:
        """Refuse winners with a null that the server would replace by a value."""
        for column in named(self.target.columns, self.detail.columns).values():
            if coercion := of_null(column):
                null = f"NOT {NEW}.{FLAG} AND {identifier(NEW, column.name)} IS NULL"
                sql = f"SELECT {self.number} FROM {self.source} WHERE {null} ORDER BY 1"
                what = f"column {column.name!r} can't be null"
                for (row,) in self.session.run(sql):
                    error = RefusedRow(what, coercion.why, coercion.todo)
                    self.refusals.refuse(self._take_out(row), error)


class UpdateWriter(WinnerWriter):
    """Sets the columns of the last row of each key in all stored rows that have the key."""

    def _take_effect(self) -> None:
        self.session.run(self._choice())
        self._refuse_nulls()
        values = [f"t.{one} = {NEW}.{one}" for one in map(identifier, self.detail.set_columns)]
        values += [f"t.{one} = t.{one}" for one in map(identifier, key_times(self.detail))]
        self._follow(f"UPDATE {self._joined(indexed=True)} SET {', '.join(values)}")


def _paced(last: int, timeout: float) -> Iterator[range]:
    """The numbers from 1 to the last one, in ranges.

    Slow statements make the next ranges smaller, so that a statement ends long before the time-out.
    """
    first, most = 1, FEWEST
    while first <= last:
        some = range(first, min(first + most, last + 1))
        began = time.monotonic()
        yield some
        share = (time.monotonic() - began) / timeout
        if share < 0.05:
            most = min(2 * most, MOST)
        elif share > 0.2:
            most = max(most // 2, 1)
        first = some.stop


def _literal(value: Any) -> str:
    """The literal of a value that the client returns."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"  # with an exponent SQL would read a double
    return str(value) if isinstance(value, int | float) else string(str(value))
