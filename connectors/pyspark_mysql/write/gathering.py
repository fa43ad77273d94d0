"""The rows of an epoch in a temporary table, and statements by which the target follows it.

The table's columns have the types and collations of the target's: so keys are cut and filled up in
it as they are there, and are equal in it exactly when they are equal there.
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
from pyspark_mysql.target.columns import definition, named
from pyspark_mysql.target.lookup import Target, triggers
from pyspark_mysql.write.chunks import EncodedRows
from pyspark_mysql.write.inserting import InsertWriter, LoadWriter, RowWriter
from pyspark_mysql.write.plan import OWN_COLUMNS, TableRows
from pyspark_mysql.write.refusals import PutAside, Refusals, RefusedRow, sent_in_halves
from pyspark_mysql.write.statements import NEW, Frame, frame

FLAG, ROW = map(identifier, OWN_COLUMNS)
WON, CAME, GONE = "sparkonce_won", "came", "gone"
"""A winner: its number among the rows, and whether its key is deleted, at least on the way."""
NUMBER = f"{ROW} BIGINT AUTO_INCREMENT PRIMARY KEY"
FEWEST, MOST = 500, 50_000

UNCHECKED = "SET STATEMENT check_constraint_checks = 0 FOR "
"""Since 11.4, MariaDB copies constraints of columns, which bind what comes out at the end alone."""

NO_INDEX = (1070, 1071, 1170, 3152)
"""Too many columns, too long, or of a type that has no index."""


def writer_for(
    session: MySqlSession, detail: TableRows, target: Target, put_aside: PutAside | None = None
) -> RowWriter:
    """What writes the rows of a plan to the target as it is.

    Rows that can't be stored are `put_aside`; where that is None, one of them stops the epoch.
    """
    # A row could be taken for a stored one by another unique key than its own.
    ambiguous = detail.updates and bool(target.others(detail.key, detail.columns))
    refusals = Refusals(detail, put_aside, ambiguous=ambiguous)
    if not detail.makes_rows:
        return DeleteWriter(session, refusals, target)
    if detail.folded:
        return WinnerWriter(session, refusals, target)
    has_instants = target.holds_instants(detail.columns)
    # A default, or a trigger that the user may see, may ask for the time of day.
    if has_instants and (target.computes_time(detail.columns) or triggers(session, detail.table)):
        return CopyWriter(session, refusals, target)

    form = partial(frame, detail, mariadb=session.live.mariadb, ambiguous=ambiguous)
    given = session, refusals, form(), form if detail.keeps_nulls else None
    loads = LoadWriter.fits(session, detail, target.columns)
    found = LoadWriter(*given, target.columns) if loads else InsertWriter(*given)
    found.is_local = not has_instants
    return found


class GatheringWriter(RowWriter):
    """Gathers the rows of an epoch, numbered as they came; a subclass says what becomes of them.

    Attributes:
        numbered: the table that has the numbers: that of the winners, if there are such.
        source: what stands behind FROM, with the rows as ``sparkonce_new``.
        number: of a row, in terms of the source.
    """

    def __init__(self, session: MySqlSession, refusals: Refusals, target: Target) -> None:
        super().__init__(session, refusals)
        self.mariadb, self.target, detail = session.live.mariadb, target, self.detail
        self.quoted, database = identifier(*detail.table), detail.table[0]
        self.table = self.numbered = identifier(database, "sparkonce_epoch")
        self.source, self.number = f"{self.table} AS {NEW}", f"{NEW}.{ROW}"
        if detail.folded:
            self.numbered = identifier(database, "sparkonce_winners")
            same = f"{NEW}.{ROW} = {WON}.{CAME}"
            # STRAIGHT_JOIN: winners are read by their numbers, and so take effect in that order.
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
        # Whether there is a row that was not taken out.
        return bool(self.session.run(f"SELECT 1 FROM {self.numbered} LIMIT 1"))

    @abstractmethod
    def _take_effect(self) -> None:
        """Let the target follow."""

    def _copy(self) -> tuple[str, str]:
        """The statement that writes gathered rows: what stands before WHERE, and behind it."""
        written = self.detail.written_to(self.target.columns)
        names = [identifier(name) for name in written.columns]
        values = ", ".join(f"{NEW}.{name}" for name in names)
        into = f"INSERT INTO {self.quoted} ({', '.join(names)})"
        ambiguous = self.refusals.ambiguous
        update = frame(written, mariadb=self.mariadb, ambiguous=ambiguous).tail.decode()
        # INSERT ... SELECT takes no alias behind it: its rows have this name in FROM already.
        return f"{into} SELECT {values} FROM {self.source}", update.removeprefix(f" AS {NEW}")

    def _create(self, *own: str) -> None:
        """Make the tables anew, that of rows also with `own` definitions."""
        # The sequence is compared as the query has it, not as stored, unless it is of the key.
        order = None if self.detail.order in self.detail.key else self.detail.order
        defined = [f"{FLAG} BOOLEAN"] if self.detail.folded else []
        if order:
            kind = self.detail.kinds[order]
            defined.append(definition(order, kind, in_key=False, mariadb=self.mariadb))
        copied = [f"t.{identifier(name)}" for name in self.detail.columns if name != order]
        self._make(
            self.table,
            ", ".join([NUMBER, *own, *defined]),
            # Columns of an outer join may be null: a row that deletes has no other values.
            f" SELECT {', '.join(copied)} FROM (SELECT 1) AS one"
            f" LEFT JOIN {self.quoted} AS t ON FALSE LIMIT 0",
        )
        if self.detail.folded:
            self._make(self.numbered, f"{NUMBER}, {CAME} BIGINT NOT NULL, {GONE} BOOLEAN NOT NULL")

    def _make(self, table: str, definitions: str, select: str = "") -> None:
        # They live as long as the connection, which may have had those of an earlier epoch. With
        # TEMPORARY neither statement commits.
        self.session.run(f"DROP TEMPORARY TABLE IF EXISTS {table}")
        self.session.run(f"CREATE TEMPORARY TABLE {table} ({definitions}) ENGINE=InnoDB{select}")

    def _follow(self, statement: str, tail: str = "") -> None:
        """Let the target follow all rows, some at a time; between the two stands which ones."""
        ((last,),) = self.session.run(f"SELECT COALESCE(MAX({ROW}), 0) FROM {self.numbered}")
        timeout = float(self.session.options["timeout"])

        def send(some: range) -> None:
            where = f"{self.number} BETWEEN {some.start} AND {some[-1]}"
            with self.session.local_time():
                self.session.run(f"{statement} WHERE {where}{tail}")

        for row, error in sent_in_halves(_paced(int(last), timeout), send):
            self.refusals.by_server(self._take_out(row.start), error)

    def _delete(self, *, indexed: bool, which: str = "") -> None:
        """Delete the rows of the target that have the keys of rows.

        By an index they are looked up one by one, so that no other row of the target is locked;
        without one it is left to the server to find a better way. `which` is a further condition.
        """
        names = map(identifier, self.detail.key)
        same = " AND ".join(f"t.{name} = {NEW}.{name}" for name in names)
        join = "STRAIGHT_JOIN" if indexed else "JOIN"
        self._follow(f"DELETE t FROM {self.source} {join} {self.quoted} AS t ON {same}", which)

    def _take_out(self, number: int) -> list[str]:
        """Forget a row; its literals."""
        # All digits are wanted: a FLOAT would show some of its own alone.
        names = [
            identifier(NEW, name) + (" + 0e0" if self.detail.kinds[name] == "float" else "")
            for name in self.detail.columns
        ]
        names += [f"{NEW}.{FLAG}"] if self.detail.folded else []
        where = f"{self.number} = {number}"
        (row,) = self.session.run(f"SELECT {', '.join(names)} FROM {self.source} WHERE {where}")
        # No later statement finds it then: what could not be deleted is not written either.
        self.session.run(f"DELETE FROM {self.numbered} WHERE {ROW} = {number}")
        return [_literal(value) for value in row]


class CopyWriter(GatheringWriter):
    """Writes each row, in the order in which they came: for a table that computes the time of day.

    An instant is sent in UTC, where no zone or DST changes it; a default or a trigger is to see the
    server's own time. So rows arrive in UTC, and are copied in the server's time.
    """

    def _take_effect(self) -> None:
        self._follow(*self._copy())


class DeleteWriter(GatheringWriter):
    """Deletes the rows that have these keys.

    Where no index of the target finds the rows, the keys get one.
    """

    def begin(self) -> None:
        """See `RowWriter.begin`."""
        key = {name.lower() for name in self.detail.key}
        # Whether an index of the target begins with a column of the key.
        self.indexed = any(i.columns[0].lower() in key for i in self.target.indexes)
        names = ", ".join(map(identifier, self.detail.key))
        try:
            self._create(*([] if self.indexed else [f"INDEX ({names})"]))
        except pymysql.MySQLError as error:
            if number(error) not in NO_INDEX:
                raise
            # Such a key can't be indexed: the deletes are slower, and no less right.
            self._create()

    def _take_effect(self) -> None:
        self._delete(indexed=self.indexed)


class WinnerWriter(GatheringWriter):
    """Writes or deletes each key of an epoch once, as the last one of its rows says.

    A key that is deleted on the way is deleted before it is written, so that columns which the
    query lacks get their defaults. All deletes come before all writes, and both in the order of the
    rows: what an earlier one lets go of, a unique value or a parent, a later one may have.
    """

    def _take_effect(self) -> None:
        self.session.run(self._choice())
        if self.detail.op:  # else the right to delete is not asked for
            self._delete(indexed=True, which=f" AND {WON}.{GONE}")
        self._refuse_nulls()
        insert, update = self._copy()
        self._follow(insert, f" AND NOT {NEW}.{FLAG}{update}")

    def _choice(self) -> str:
        """The statement that finds the winners.

        The servers number the rows of a key as fast as they sort them. (MariaDB finds the MAX of a
        window in quadratic time.) Where deletes come first, a higher number tells that there are
        some.
        """
        key = ", ".join(map(identifier, self.detail.key))
        by = [identifier(self.detail.order)] if self.detail.order else []
        last = ", ".join(f"{column} DESC" for column in (*by, ROW))
        place = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {last})"
        behind = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {FLAG} DESC, {last})"
        # The last ORDER BY gives the winners their numbers, by which they then take effect.
        return (
            f"INSERT INTO {self.numbered} ({CAME}, {GONE}) SELECT {ROW}, {FLAG} OR behind > 1 FROM"
            f" (SELECT {ROW}, {FLAG}, {by[0] if by else '0'} AS sequence, {place} AS place,"
            f" {behind if self.detail.op else '1'} AS behind FROM {self.table}) AS numbered"
            f" WHERE place = 1 ORDER BY sequence, {ROW}"
        )

    def _refuse_nulls(self) -> None:
        """Refuse what is null in the end where the server would put something in its place."""
        for column in named(self.target.columns, self.detail.columns).values():
            if coercion := of_null(column):
                null = f"NOT {NEW}.{FLAG} AND {identifier(NEW, column.name)} IS NULL"
                sql = f"SELECT {self.number} FROM {self.source} WHERE {null} ORDER BY 1"
                what = f"column {column.name!r} can't be null"
                for (row,) in self.session.run(sql):
                    error = RefusedRow(what, coercion.why, coercion.todo)
                    self.refusals.refuse(self._take_out(row), error)


def _paced(last: int, timeout: float) -> Iterator[range]:
    """The numbers from 1 to the last one, some at a time.

    There are fewer where it takes long until the next ones are asked for, so that a statement ends
    long before the time-out.
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
    """The literal of what the client gives for a value."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"  # with an exponent it would be a double
    return str(value) if isinstance(value, int | float) else string(str(value))
