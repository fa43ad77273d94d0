"""Rows that an actor stages without Arrow."""

from __future__ import annotations

import json
from typing import Any

from sparkonce.exactly_once.staging import stage
from sparkonce.protocol import Receipt, Task
from sparkonce.tck.simulation.actors import QUICK, SMALL, Run


class Rows(list[str]):
    """The part of an Arrow batch that staging reads; a real batch would take most of the time.

    Attributes:
        nbytes: less than any bound.
    """

    nbytes = 0

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self)

    def slice(self, start: int, length: int | None = None) -> Rows:
        """A part of the rows."""
        return Rows(self[start:] if length is None else self[start : start + length])


def staged(run: Run, task: Task, rows: list[str]) -> Receipt:
    """Stage rows as a task does.

    Raises:
        SparkonceError: the store can't do it.
        Crash: the task died.
    """
    batch: Any = Rows(rows)
    return stage(run.query.store, task, [batch], _encode, SMALL, QUICK)


def _encode(rows: Any) -> bytes:
    return json.dumps(rows).encode()
