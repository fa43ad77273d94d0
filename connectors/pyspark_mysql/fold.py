"""Epochs in which rows of one key must be compared first: by a sequence, or as writes and deletes.

All rows of an epoch are folded in a temporary table; what is left of each key then goes to the
target by one DELETE and one INSERT. Where the server refuses one of the two, it is tried again in
halves, and these in halves, until the rows are found that it does not take.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pymysql

from pyspark_mysql.apply import Applier
from pyspark_mysql.bends import Bend
from pyspark_mysql.chunks import Rows
from pyspark_mysql.client import Session
from pyspark_mysql.dead_letters import Aside
from pyspark_mysql.failures import Kind, known
from pyspark_mysql.literals import identifier, string
from pyspark_mysql.load import Loading, can_load
from pyspark_mysql.scratch import Scratch, Step
from pyspark_mysql.statements import Frame

HAS_COLUMN = """
SELECT COUNT(*) FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND column_name = %s
"""


def applier(session: Session, detail: Mapping[str, Any], aside: Aside | None = None) -> Applier:
    """What applies the chunks of a manifest."""
    if detail["folded"]:
        return Folding(session, detail, aside)
    return (Loading if can_load(session, detail) else Applier)(session, detail, aside)


class Folding(Applier):
    """Applies the chunks of a whole epoch at once."""

    def begin(self) -> None:
        """Make the temporary tables."""
        for statement in self.scratch.create():
            self.session.run(statement)

    def end(self) -> None:
        """Write and delete what is left of each key.

        Raises:
            RefusedRow: the server refuses a row.
        """
        for statement in self.scratch.sort():
            self.session.run(statement)
        for step in self.scratch.steps():
            self._do(step)

    def _frame(self) -> Frame:
        """Rows go to a temporary table."""
        self.scratch = Scratch(
            self.detail,
            stored=self._stores_sequence(),
            mariadb=self.session.live.mariadb,
            ambiguous=self.ambiguous,
            bends=self.bends,
        )
        return self.scratch.arrival()

    def _bent(self, rows: Rows) -> dict[int, Bend]:
        """Of nulls only those count that are left in the end: see `Scratch.steps`."""
        return self.bends.find(rows, nulls=False)

    def _stores_sequence(self) -> bool:
        name = self.detail["sequence"]
        return not name or bool(self.session.run(HAS_COLUMN, *self.detail["table"], name)[0][0])

    def _do(self, step: Step, part: range | None = None) -> None:
        try:
            self.session.run(step.sql(part))
        except pymysql.MySQLError as error:
            if known(error).kind is not Kind.ROW:
                raise
            rows = range(self._count(step)) if part is None else part
            if not rows:
                raise
            if len(rows) == 1:
                self._refuse(self._literals(step, rows), self.explained(error))
                return
            for half in _halves(rows):
                self._do(step, half)

    def _count(self, step: Step) -> int:
        found = self.session.run(f"SELECT COUNT(*) FROM {step.table} WHERE {step.which}")
        return int(found[0][0])

    def _literals(self, step: Step, row: range) -> list[str]:
        """The columns of one row."""
        names = ", ".join(map(identifier, self.detail["columns"]))
        (values,) = self.session.run(f"SELECT {names} FROM ({step.rows(row)}) AS e")
        return [_literal(value) for value in values]


def _halves(rows: range) -> tuple[range, range]:
    middle = rows.start + len(rows) // 2
    return range(rows.start, middle), range(middle, rows.stop)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(value) if isinstance(value, int | float | Decimal) else string(str(value))
