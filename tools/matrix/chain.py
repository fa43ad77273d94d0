"""One checkpoint that releases of Spark go on with, one after the other."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

from integration.support.runs import Job, once
from tools.matrix.cells import CHAIN, CHAIN_PYTHON, Cell
from tools.matrix.environment import ROOT, Environment

PROGRAM = ROOT / "integration" / "support" / "driver_program.py"
ROWS = 1000


def chain(url: str, wheel: Path) -> list[dict[str, Any]]:
    """What became of each release: a file of rows is new to it, and the last epoch is a replay.

    Both are computed with other random values, and in other tasks, each time. A release that Spark
    lets read nothing of this checkpoint takes no part, and its rows are those of the next one.
    """
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(None, Path(scratch), url, f"chain{uuid.uuid4().hex[:8]}")  # type: ignore[arg-type]
        return [_step(job, number, release, wheel) for number, release in enumerate(CHAIN)]


def _step(job: Job, number: int, release: str, wheel: Path) -> dict[str, Any]:
    environment = Environment(Cell(release, CHAIN_PYTHON), wheel)
    replayed = _uncommit_last(job)
    job.put(range(number * ROWS, (number + 1) * ROWS))
    arguments = [PROGRAM, job.url, job.name, str(job.input), str(job.checkpoint)]
    done = environment.run(arguments)
    exact = job.counts() == once(range(job.files * ROWS))
    return {
        "spark": release,
        "replayed": replayed,
        "rows": job.files * ROWS,
        "exact": exact and done.returncode == 0,
        "why": "" if done.returncode == 0 else _last_line(done.stderr),
    }


def _uncommit_last(job: Job) -> int | None:
    noted = [int(path.name) for path in (job.checkpoint / "commits").glob("[0-9]*")]
    if not noted:
        return None
    job.uncommit(max(noted))
    return max(noted)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")[:300]
