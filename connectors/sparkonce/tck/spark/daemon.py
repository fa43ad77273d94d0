"""Spark's own daemon of Python workers, which can fail or hold a task after the sink's `write`.

Spark's setting ``spark.python.daemon.module`` names it. An operator before the sink can't do that:
at that point, a sink that sends its rows at the very end has not sent any.
"""

from __future__ import annotations

import os
from pathlib import Path

from pyspark import TaskContext, daemon

from sparkonce.tck.spark.faults import AFTER_WRITE, EXECUTOR, SIDE, Board, note, was_watching


def tell_when_tasks_end() -> None:
    """Report to the board when a worker has finished its task, before Spark learns it."""
    reset = TaskContext._setTaskContext

    def reset_and_tell(context: TaskContext | None) -> None:
        ended, side = TaskContext.get(), os.environ.get(SIDE)
        reset(context)
        if context is None and ended is not None and side and not was_watching():
            Board(Path(side)).reached(note(AFTER_WRITE, ended))

    TaskContext._setTaskContext = reset_and_tell  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    os.environ[EXECUTOR] = str(os.getppid())
    tell_when_tasks_end()
    daemon.manager()
