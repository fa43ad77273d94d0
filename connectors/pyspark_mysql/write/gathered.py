"""The rows of an epoch in a temporary table, and statements by which the target follows it.

The table's columns have the types and collations of the target's: so keys are cut and filled up in
it as they are there, and are equal in it exactly when they are equal there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pyspark_mysql.server.client import Session
from pyspark_mysql.server.literals import identifier, string
from pyspark_mysql.target.creation import definition
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import Refusals, sent_in_halves
from pyspark_mysql.write.statements import NEW, OWN, Frame

FLAG, ROW = map(identifier, OWN)
WON, CAME, GONE = "sparkonce_won", "came", "gone"
"""A winner: its number among the rows, and whether its key is deleted, at least on the way."""
NUMBER = f"{ROW} BIGINT AUTO_INCREMENT PRIMARY KEY"
FEWEST, MOST = 500, 50_000

UNCHECKED = "SET STATEMENT check_constraint_checks = 0 FOR "
"""Since 11.4, MariaDB copies constraints of columns, which bind what comes out at the end alone."""


class Gathered:
    """The rows of an epoch, numbered as they came.

    Attributes:
        numbered: the table that has the numbers: that of the winners, if there are such.
        source: what stands behind FROM, with the rows as ``sparkonce_new``.
        number: of a row, in terms of the source.
    """

    def __init__(self, session: Session, detail: TableRows, refusals: Refusals) -> None:
        self.session, self.detail, self.refusals = session, detail, refusals
        self.mariadb = session.live.mariadb
        self.target = identifier(*detail.table)
        database = detail.table[0]
        self.table = self.numbered = identifier(database, "sparkonce_epoch")
        self.source, self.number = f"{self.table} AS {NEW}", f"{NEW}.{ROW}"
        if detail.folded:
            self.numbered = identifier(database, "sparkonce_winners")
            same = f"{NEW}.{ROW} = {WON}.{CAME}"
            # STRAIGHT_JOIN: winners are read by their numbers, and so take effect in that order.
            self.source = f"{self.numbered} AS {WON} STRAIGHT_JOIN {self.source} ON {same}"
            self.number = f"{WON}.{ROW}"

    def arrival(self) -> Frame:
        """The statement that takes the rows of a chunk in."""
        flag = [FLAG] if self.detail.folded else []
        names = ", ".join([*map(identifier, self.detail.columns), *flag])
        unchecked = UNCHECKED if self.mariadb else ""
        return Frame(f"{unchecked}INSERT INTO {self.table} ({names}) VALUES ".encode(), b"")

    def create(self, *own: str) -> None:
        """Make the tables anew; they live as long as the connection.

        Args:
            own: definitions that the table of rows has besides the query's columns.
        """
        copied = [f"t.{identifier(n)}" for n in self.detail.columns if n != self._apart]
        self._make(
            self.table,
            ", ".join([NUMBER, *own, *self._defined()]),
            # Columns of an outer join may be null: a row that deletes has no other values.
            f" SELECT {', '.join(copied)} FROM (SELECT 1) AS one"
            f" LEFT JOIN {self.target} AS t ON FALSE LIMIT 0",
        )
        if self.detail.folded:
            self._make(self.numbered, f"{NUMBER}, {CAME} BIGINT NOT NULL, {GONE} BOOLEAN NOT NULL")

    def _make(self, table: str, definitions: str, select: str = "") -> None:
        # The connection may have had an earlier epoch's. With TEMPORARY neither statement commits.
        self.session.run(f"DROP TEMPORARY TABLE IF EXISTS {table}")
        self.session.run(f"CREATE TEMPORARY TABLE {table} ({definitions}) ENGINE=InnoDB{select}")

    @property
    def _apart(self) -> str | None:
        """The sequence, unless it is of the key: compared as the query has it, not as stored."""
        return None if self.detail.order in self.detail.key else self.detail.order

    def _defined(self) -> Iterator[str]:
        if self.detail.folded:
            yield f"{FLAG} BOOLEAN"
        if self._apart:
            kind = self.detail.kinds[self._apart]
            yield definition(self._apart, kind, in_key=False, mariadb=self.mariadb)

    def follow(self, statement: str, tail: str = "") -> None:
        """Run a statement for all rows, some numbers at a time, in the server's own time of day.

        Args:
            statement: what stands before WHERE.
            tail: what stands behind the numbers.

        Raises:
            RefusedRow: the server does not take a row.
        """
        ((last,),) = self.session.run(f"SELECT COALESCE(MAX({ROW}), 0) FROM {self.numbered}")
        timeout = float(self.session.options["timeout"])

        def send(some: range) -> None:
            where = f"{self.number} BETWEEN {some.start} AND {some[-1]}"
            with self.session.local_time():
                self.session.run(f"{statement} WHERE {where}{tail}")

        for row, error in sent_in_halves(paced(int(last), timeout), send):
            self.refusals.by_server(self.take_out(row.start), error)

    def delete(self, *, indexed: bool, which: str = "") -> None:
        """Delete the rows of the target that have the keys of rows.

        They are looked up one by one, so that no other row of the target is locked; without an
        index it is left to the server to find a better way.

        Args:
            indexed: whether an index of the target finds them.
            which: a further condition on the rows.
        """
        names = map(identifier, self.detail.key)
        same = " AND ".join(f"t.{name} = {NEW}.{name}" for name in names)
        join = "STRAIGHT_JOIN" if indexed else "JOIN"
        self.follow(f"DELETE t FROM {self.source} {join} {self.target} AS t ON {same}", which)

    def take_out(self, number: int) -> list[str]:
        """Forget a row; its literals."""
        names = [_exactly(name, self.detail.kinds[name]) for name in self.detail.columns]
        names += [f"{NEW}.{FLAG}"] if self.detail.folded else []
        where = f"{self.number} = {number}"
        (row,) = self.session.run(f"SELECT {', '.join(names)} FROM {self.source} WHERE {where}")
        # No later statement finds it then: what could not be deleted is not written either.
        self.session.run(f"DELETE FROM {self.numbered} WHERE {ROW} = {number}")
        return [literal(value) for value in row]

    def any_left(self) -> bool:
        """Whether there is a row that was not taken out."""
        return bool(self.session.run(f"SELECT 1 FROM {self.numbered} LIMIT 1"))


def paced(last: int, timeout: float) -> Iterator[range]:
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


def _exactly(name: str, kind: str) -> str:
    """A column whose digits are all shown: those of a FLOAT are not."""
    column = identifier(NEW, name)
    return f"{column} + 0e0" if kind == "float" else column


def literal(value: Any) -> str:
    """The literal of what the client gives for a value."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"  # with an exponent it would be a double
    return str(value) if isinstance(value, int | float) else string(str(value))
