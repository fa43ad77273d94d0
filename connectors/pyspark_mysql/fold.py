"""Epochs in which rows of one key must be compared first: by a sequence, or as writes and deletes.

All rows of an epoch are folded in a temporary table; what is left of each key then goes to the
target by one DELETE and one INSERT, for some tens of thousands of keys at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_mysql.apply import Applier
from pyspark_mysql.bends import Finder
from pyspark_mysql.chunks import Rows
from pyspark_mysql.client import Session
from pyspark_mysql.dead_letters import Aside
from pyspark_mysql.deletes import Deleting
from pyspark_mysql.gather import Gathering, literal
from pyspark_mysql.keys import is_spelled
from pyspark_mysql.load import Loading, LoadingNew, can_load
from pyspark_mysql.scratch import Fold
from pyspark_mysql.statements import Frame
from pyspark_mysql.steps import Pace
from pyspark_mysql.target import Target


def gathers(detail: Mapping[str, Any]) -> bool:
    """Whether a plan needs a temporary table."""
    return bool(detail["folded"]) or detail["mode"] == "delete"


def applier(
    session: Session, detail: Mapping[str, Any], target: Target, aside: Aside | None = None
) -> Applier:
    """What applies the chunks of a manifest."""
    if detail["mode"] == "delete":
        return Deleting(session, detail, target, aside)
    if detail["folded"]:
        return Folding(session, detail, target, aside)
    if not can_load(session, target.columns):
        return Applier(session, detail, target, aside)
    return (Loading if detail["mode"] == "append" else LoadingNew)(session, detail, target, aside)


class Folding(Gathering):
    """Applies the chunks of a whole epoch at once."""

    scratch: Fold

    def end(self) -> None:
        """See `Gathering.end`."""
        if self.scratch.sorts:
            self._sort()
        super().end()

    def _frame(self) -> Frame:
        """Rows go to a temporary table."""
        self.scratch = Fold(
            self.detail,
            stored=self._stores_sequence(),
            mariadb=self.session.live.mariadb,
            ambiguous=self.ambiguous,
            bends=self.bends,
            spelled=is_spelled(self.detail, self.target.columns),
        )
        return self.scratch.arrival()

    def _bent(self, rows: Rows) -> dict[int, Finder]:
        """Of nulls only those count that are left in the end: see `Scratch.steps`."""
        return self.bends.find(rows, nulls=False)

    def _stores_sequence(self) -> bool:
        name = self.detail["sequence"]
        return not name or self.target.column(name) is not None

    def _sort(self) -> None:
        """Fold what was collected in the order of its sequence."""
        pace, after, more = Pace(float(self.session.options["timeout"])), "TRUE", True
        while more:
            found = self.session.run(self.scratch.place(after, pace.rows))
            with pace.timed():
                self.session.run(self.scratch.sort(after, pace.rows))
            more = bool(found)
            for sequence, row in found:
                after = self.scratch.behind(literal(sequence), row)
