"""Where an epoch ends: with a transaction, and before what nobody can follow."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_mysql.binlog.images import PADDING, Image
from pyspark_mysql.binlog.log import End, Refusal, Rows, Step
from pyspark_mysql.binlog.tables import Table


class Epoch:
    """Takes transactions for an epoch.

    Args:
        most: rows that it may have; more, if a transaction has. None is no limit.

    Attributes:
        rows: so many were taken; without a limit they are not counted one by one. What is refused
            counts as one, as it must be told.
        named: whether the log has the names of all their columns.
    """

    def __init__(self, most: int | None) -> None:
        self._most, self._image = most, (Table("", "", ()), Image(()))
        self.rows, self.named = 0, True

    def take(self, steps: Iterable[Step]) -> None:
        """Take steps up to the end. A refusal behind rows stops the next epoch, not this one."""
        ended = False
        for step in steps:
            if isinstance(step, Refusal) and ended:
                return
            self.rows += self._many(step)
            if isinstance(step, End):
                ended = self.rows > 0
                if self._most is not None and self.rows >= self._most:
                    return

    def _many(self, step: Step) -> int:
        if not isinstance(step, Rows):
            return int(isinstance(step, Refusal))
        self.named = self.named and step.table.named
        if self._most is None:
            return 1
        if self._image[0] is not step.table:
            self._image = step.table, Image(step.table.columns)
        found = len(self._image[1].starts(step.data + PADDING, len(step.data)))
        return found // 2 if step.operation == "u" else found
