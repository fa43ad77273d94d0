"""Rows that are gathered in a temporary table first, and go from there to the target.

Where the server refuses a statement, it is tried again in halves, and these in halves, until the
rows are found that it does not take. A row may only have come before another one that it depends
on: one that must let go of a unique value, or that a foreign key points to. So those that are left
are tried again as long as any of them gets through, and from both ends in turns, as such rows often
form a chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Protocol

import pymysql

from pyspark_mysql.apply import Applier, RefusedRow
from pyspark_mysql.client import Session
from pyspark_mysql.dead_letters import Aside
from pyspark_mysql.failures import Kind, known, number
from pyspark_mysql.foreign_keys import leads_back
from pyspark_mysql.literals import identifier, string
from pyspark_mysql.statements import Frame
from pyspark_mysql.steps import FLAG, ROW, Pace, Step, halves
from pyspark_mysql.target import Target

OF_FOREIGN_KEYS = (1216, 1217, 1451, 1452, 1761, 1762)
OF_OTHER_ROWS = (1022, 1062, 1169, 1644)


class Scratch(Protocol):
    """A temporary table and the statements about it."""

    table: str

    def create(self) -> list[str]:
        """Make it; it lives as long as the connection, and is made anew."""

    def arrival(self) -> Frame:
        """The statement that takes the rows of a chunk in."""

    def steps(self) -> list[Step]:
        """What is done in the target, one after the other: deletes come before writes."""


class Gathering(Applier):
    """Applies all chunks of a transaction at once."""

    scratch: Scratch

    def __init__(
        self,
        session: Session,
        detail: Mapping[str, Any],
        target: Target,
        aside: Aside | None = None,
    ) -> None:
        super().__init__(session, detail, target, aside)
        self.loops = leads_back(session, detail["table"])
        self.steps = self.scratch.steps()
        # For each step the rows that were refused, and why they were so the last time.
        self.waiting: list[dict[int, RefusedRow]] = [{} for _ in self.steps]
        self.given_up: set[int] = set()

    def begin(self) -> None:
        """Make the temporary table."""
        for statement in self.scratch.create():
            self.session.run(statement)

    def end(self) -> None:
        """Do in the target what has been gathered.

        Raises:
            RefusedRow: the server refuses a row.
        """
        timeout = float(self.session.options["timeout"])
        ((last,),) = self.session.run(f"SELECT COALESCE(MAX({ROW}), 0) FROM {self.scratch.table}")
        self.partition = None  # a key's rows may come from several
        for place in range(len(self.steps)):
            pace = Pace(timeout)
            for rows in pace.ranges(int(last)):
                with pace.timed():
                    self._do(place, rows)
        backwards = True
        while any(self.waiting) and self._try_again(backwards=backwards):
            backwards = not backwards
        for waiting in self.waiting:
            for row, error in sorted(waiting.items()):
                self._give_up(row, error)
        super().end()

    def stored_any(self) -> bool:
        """See `Applier.stored_any`."""
        ((rows,),) = self.session.run(f"SELECT COUNT(*) FROM {self.scratch.table}")
        return int(rows) > len(self.given_up)

    def _do(self, place: int, rows: range) -> None:
        try:
            self.session.run(self.steps[place].sql(rows, self._held(place, rows)))
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.ROW:
                raise
            if len(rows) == 1:
                self._put_off(place, rows.start, error)
                return
            for half in halves(rows):
                self._do(place, half)

    def _held(self, place: int, rows: range) -> list[int]:
        """Rows that are not written, as they could not be deleted, or not yet."""
        if place == 0 or not (self.waiting[0] or self.given_up):
            return []
        return [row for row in rows if row in self.waiting[0] or row in self.given_up]

    def _put_off(self, place: int, row: int, error: pymysql.MySQLError) -> None:
        """Try a row again later, if what the server objects to may be gone by then."""
        if self._may_pass(error):
            self.waiting[place][row] = self.explained(error)
        else:
            self._give_up(row, self.explained(error))

    def _may_pass(self, error: pymysql.MySQLError) -> bool:
        if number(error) in OF_FOREIGN_KEYS:
            return self.loops
        return number(error) in OF_OTHER_ROWS or self.collides(error)

    def _try_again(self, *, backwards: bool) -> bool:
        """Whether any row got through."""
        deleted: set[int] = set()
        progress = False
        for place, waiting in enumerate(self.waiting):
            rows = {*waiting, *deleted}
            self.waiting[place] = {}
            for row in sorted(rows, reverse=backwards):
                self._do(place, range(row, row + 1))
            deleted = rows - self.waiting[place].keys()
            progress = progress or bool(deleted)
        return progress

    def _give_up(self, row: int, error: RefusedRow) -> None:
        shown = [_exactly(name, self.detail["kinds"][name]) for name in self.detail["columns"]]
        names = ", ".join([*shown, FLAG] if self.detail["folded"] else shown)
        sql = f"SELECT {names} FROM {self.scratch.table} WHERE {ROW} = {row}"
        (values,) = self.session.run(sql)
        self.given_up.add(row)
        self._refuse([literal(value) for value in values], error)


def _exactly(name: str, kind: str) -> str:
    """A column whose digits are all shown: those of a FLOAT are not."""
    return f"{identifier(name)} + 0e0" if kind == "float" else identifier(name)


def literal(value: Any) -> str:
    """The literal of what the client gives for a value."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, Decimal):
        return f"{value:f}"  # with an exponent it would be a double
    return str(value) if isinstance(value, int | float) else string(str(value))
