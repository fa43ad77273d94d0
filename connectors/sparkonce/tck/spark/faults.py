"""Faults of tasks: a plan in a file says who fails or waits; notes in files record who passed.

Tasks run in processes of Spark, on this machine: all of them can reach files.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import TaskContext

SIDE, EXECUTOR = "SPARKONCE_TCK_SIDE", "SPARKONCE_TCK_EXECUTOR"
AFTER_WRITE, AFTER_ROWS, RELEASED, DRAWN = "after write", "after rows", "released", "drawn"
RECORDED = "recorded"
PASS, FAIL, HOLD = "pass", "fail", "hold"
LONGEST_HOLD, LINGER = 200.0, 0.3
HANDFUL = 10


@dataclass(frozen=True)
class Plan:
    """The tasks to hit, the point, and the fault.

    Attributes:
        point: `AFTER_WRITE`: the sink's own Python code has finished a task's rows.
            `AFTER_ROWS`: the operator before the sink has sent it the task's last row.
            `RECORDED`: a sink of the suite, on the driver, has kept an epoch that Spark has not
            recorded yet.
        act: `PASS`; `FAIL`; or `HOLD`, until the plan is another.
        epoch: of the task.
        attempts: how many attempts of its first partition to hit.
    """

    point: str = AFTER_WRITE
    act: str = PASS
    epoch: int = 0
    attempts: int = 1

    def hits(self, note: Note) -> bool:
        """Whether the plan hits a task at this point."""
        return (self.point, self.epoch, 0) == (note.point, note.epoch, note.partition) and (
            note.attempt < self.attempts
        )


@dataclass(frozen=True)
class Note:
    """A task that passed. `executor` is the process of its JVM, `digest` identifies its rows."""

    point: str
    epoch: int
    partition: int
    attempt: int
    executor: int
    digest: int = 0


class PlannedFailure(Exception):
    """The failure of a task that the plan hits."""


class Board:
    """The plan and the notes, in a directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def announce(self, plan: Plan) -> None:
        """Make this the plan, and delete all notes."""
        for path in self.home.glob("note-*"):
            path.unlink()
        self._write("plan", asdict(plan))

    def release(self) -> None:
        """Let held tasks continue; notes stay."""
        self._write("plan", asdict(Plan()))

    def plan(self) -> Plan:
        """The plan in force."""
        path = self.home / "plan"
        return Plan(**json.loads(path.read_text())) if path.exists() else Plan()

    def notes(self, point: str, epoch: int | None = None) -> list[Note]:
        """The tasks that passed a point."""
        found = [Note(**json.loads(path.read_text())) for path in self.home.glob("note-*")]
        return [n for n in found if n.point == point and epoch in (None, n.epoch)]

    def reached(self, note: Note) -> None:
        """Leave a note, then act as planned.

        Raises:
            PlannedFailure: the plan says so.
        """
        plan = self.plan()  # before the note, at which a test may end the plan
        self._leave(note)
        if plan.act == FAIL and plan.hits(note):
            # The rows sent so far must have arrived.
            time.sleep(LINGER)
            raise PlannedFailure(f"attempt {note.attempt} fails, {note.point}, as planned")
        if plan.act == HOLD and plan.hits(note):
            self._hold(note, plan)

    def _hold(self, note: Note, plan: Plan) -> None:
        deadline = time.monotonic() + LONGEST_HOLD
        while self.plan() == plan and time.monotonic() < deadline:
            time.sleep(0.01)
        self._leave(replace(note, point=RELEASED))

    def _leave(self, note: Note) -> None:
        self._write(f"note-{uuid.uuid4().hex}", asdict(note))

    def _write(self, name: str, content: object) -> None:
        put(self.home / name, content)


def put(path: Path, content: object) -> None:
    """Write a JSON file as a whole or not at all."""
    hidden = path.with_name(f".{uuid.uuid4().hex}")
    hidden.write_text(json.dumps(content))
    hidden.rename(path)


def note(point: str, context: TaskContext, digest: int = 0) -> Note:
    """The note of a task."""
    epoch = context.getLocalProperty("streaming.sql.batchId")
    executor = int(os.environ.get(EXECUTOR, "0"))
    where = context.partitionId(), context.attemptNumber()
    return Note(point, int(epoch) if epoch else -1, *where, executor, digest)


_this_worker = {"watches": False}


def watching() -> None:
    """Record that this worker's task is an operator before the sink."""
    _this_worker["watches"] = True


def was_watching() -> bool:
    """Whether this worker's task was not the sink's own code; call it once for each task."""
    watches, _this_worker["watches"] = _this_worker["watches"], False
    return watches


def watched(side: str, pause: float, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The operator before the sink: passes rows in small batches; the plan hits after the last."""
    from pyspark import TaskContext

    watching()
    digest = 0
    for batch in batches:
        for start in range(0, batch.num_rows, HANDFUL):
            some = batch.slice(start, HANDFUL)
            digest += sum(crc32(text.encode()) for text in some.column(0).to_pylist())
            yield some
            time.sleep(pause)
    context = TaskContext.get()
    if context is not None:
        Board(Path(side)).reached(note(AFTER_ROWS, context, digest))


def watch(side: Path, pause: float) -> partial[Iterator[pa.RecordBatch]]:
    """`watched` for `DataFrame.mapInArrow`."""
    return partial(watched, str(side), pause)
