"""Where attempts begin: where they read the ledger, or before their driver goes on without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.model.names import is_heard, key

from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import Record, Task
from sparkonce.tck.explore.tape import Line

NEVER = 1 << 30
ENDINGS = frozenset({"commits", "gives up", "aborts", "ends", "refused", "notes"})
"""With what a driver stops waiting for tasks."""


@dataclass
class Attempt:
    """An attempt of a task.

    Attributes:
        begins: before which line, `NEVER` if nothing comes of it.
        skips: whether it finds its epoch decided.
    """

    name: str
    task: Task
    driver: str
    size: int
    begins: int = NEVER
    skips: bool = False


def attempts(tape: Sequence[Line]) -> dict[str, Attempt]:
    """All attempts by name."""
    by, found = dict[str, Attempt](), dict[str, Attempt]()
    for at, line in enumerate(tape):
        if line.what == "task":
            task: Task = line.more["task"]
            one = Attempt(task.attempt, task, key(line.who), line.more["size"])
            by[line.more["by"]] = found[task.attempt] = one
        elif line.what == "read" and line.who in by and is_heard(line):
            _begin(by.pop(line.who), tape, at)
    return found


def _begin(one: Attempt, tape: Sequence[Line], at: int) -> None:
    one.skips, left = _has_decided(tape[at], one.task), _left(one, tape, at)
    # One that is late and stages may as well have read before; one that is late and skips is none.
    one.begins = NEVER if one.skips and left != at else left


def _left(one: Attempt, tape: Sequence[Line], at: int) -> int:
    """Where its driver stopped waiting for it, if that was before."""
    waits = False
    for earlier, line in enumerate(tape[:at]):
        if key(line.who) != one.driver:
            continue
        if line.what == "begins":
            waits = line.more["epoch"] == one.task.epoch
        if waits and line.what in ENDINGS:
            return earlier
    return at


def _has_decided(line: Line, task: Task) -> bool:
    ledger = from_record(line.store["records"].get(task.sink, Record()), task.sink)
    return ledger is not None and ledger.has_decided(task.query_id, task.epoch)
