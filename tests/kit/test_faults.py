"""What the kit does to tasks of Spark, and how it ends the processes that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from sparkonce.tck.spark.faults import (
    AFTER_ROWS,
    AFTER_WRITE,
    FAIL,
    HOLD,
    RELEASED,
    Board,
    Note,
    Plan,
    PlannedFailure,
)
from sparkonce.tck.spark.processes import Session

PATIENCE = 10.0


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)


def note(**changed: object) -> Note:
    place = {"point": AFTER_ROWS, "epoch": 3, "partition": 0, "attempt": 0, "executor": 1}
    return Note(**{**place, **changed})  # type: ignore[arg-type]


# -- the plan for tasks


def test_plan_hits_first_attempts_of_one_partition(board: Board) -> None:
    board.announce(Plan(AFTER_ROWS, FAIL, epoch=3))
    for other in ({"epoch": 2}, {"partition": 1}, {"attempt": 1}, {"point": AFTER_WRITE}):
        board.reached(note(**other))
    with pytest.raises(PlannedFailure, match="attempt 0 fails, after rows"):
        board.reached(note())
    assert len(board.notes(AFTER_ROWS)) == 4
    assert len(board.notes(AFTER_ROWS, 3)) == 3


def test_held_task_goes_on_when_the_plan_is_over(board: Board, tmp_path: Path) -> None:
    board.announce(Plan(AFTER_ROWS, HOLD, epoch=3))
    program = f"""
        from pathlib import Path
        from sparkonce.tck.spark.faults import Board, Note
        Board(Path({str(tmp_path)!r})).reached(Note({AFTER_ROWS!r}, 3, 0, 0, 1))
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)]) as task:
        wait_until(lambda: bool(board.notes(AFTER_ROWS)))
        assert task.poll() is None
        assert board.notes(RELEASED) == []
        board.release()
        assert task.wait(PATIENCE) == 0
    assert board.notes(RELEASED) == [note(point=RELEASED)]


# -- processes


def wait_until(reached: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# As Spark's daemon of Python workers does, the child leaves the process group.
FAMILY = (
    "import os, subprocess; print(subprocess.Popen(['sleep', '99'], preexec_fn=os.setpgrp).pid)"
)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_with_a_session_ends_all_that_it_started(tmp_path: Path) -> None:
    session = Session([sys.executable, "-c", FAMILY], tmp_path / "log", os.environ)
    wait_until(lambda: session.log.read_text().endswith("\n"))
    child = int(session.last_words())
    session.close()
    wait_until(lambda: gone(child))
    assert not session.alive


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_session_does_not_outlive_the_suite(tmp_path: Path) -> None:
    program = f"""
        import os, time
        from pathlib import Path
        from sparkonce.tck.spark.processes import Session
        session = Session(["sleep", "99"], Path({str(tmp_path / "log")!r}), os.environ)
        print(session.process.pid, flush=True)
        time.sleep(99)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None
        started = int(suite.stdout.readline())
        suite.send_signal(signal.SIGKILL)
    wait_until(lambda: gone(started))
