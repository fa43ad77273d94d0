"""`python -m tools.matrix [CELL ...]`: run cells, and tell of them on a page of the docs."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

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
from tools.environments import build_wheel
from tools.matrix import report
from tools.matrix.cells import SAIL, Cell, every_cell, slug
from tools.matrix.chain import chain
from tools.matrix.environment import BrokenError, Environment
from tools.matrix.outcomes import FAILED, NOT_RUN, Record, outcome, told

FINDERS = {"redis": REDIS, "mysql": SERVERS["mysql"], "elasticsearch": ELASTICSEARCH}
PROGRAM = Path(__file__).with_name("program.py")
SAIL_PROGRAM = PROGRAM.with_name("sail_program.py")


def main() -> int:
    """Give the exit status: 0 if no cell failed, and none was skipped with REQUIRE_SERVERS=1."""
    tidy_when_terminated()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", help="as 4.0.2/3.12, chain or sail; all without any")
    parser.add_argument("--jobs", type=int, default=1, help="cells that run at once")
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

    def run(name: str) -> Record:
        return _recorded(name, lambda: _run(name, servers, wheel))

    at_once = ThreadPoolExecutor(jobs)
    try:
        return list(at_once.map(run, names))
    finally:
        at_once.shutdown(cancel_futures=True)  # who ends this waits for the cells that run, no more


def _server(finder: Finder) -> Server | None:
    try:
        return finder.find()
    except NoServerError as absent:
        if required():
            raise
        print(f"matrix: {absent}", file=sys.stderr)
        return None


def _recorded(name: str, run: Callable[[], Record]) -> Record:
    """Run a cell, and keep what came of it, whatever it is."""
    began = time.monotonic()
    try:
        record = run()
    except UnavailableError as absent:
        record = {"outcome": NOT_RUN, "why": reason(absent)}
    except (BrokenError, TimeoutExpired) as error:
        record = {"outcome": FAILED, "why": str(error).strip().splitlines()[0]}
    seconds = round(time.monotonic() - began)
    record = {"cell": name, "on": time.strftime("%Y-%m-%d"), "seconds": seconds, **record}
    report.RECORDS.mkdir(exist_ok=True)
    path = report.RECORDS / f"{slug(name)}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print(f"matrix: {name}: {told(record)}, {record['seconds']} s", flush=True)
    return record


def _run(name: str, servers: Mapping[str, Server], wheel: Path) -> Record:
    if name == "chain":
        if "redis" not in servers:
            raise UnavailableError("no Redis")
        steps = {"steps": chain(servers["redis"].url, wheel)}
        return {"outcome": outcome(steps), **steps}
    cell, program = (
        (Cell.named(SAIL), SAIL_PROGRAM) if name == "sail" else (Cell.named(name), PROGRAM)
    )
    task = {"urls": {one: server.url for one, server in servers.items()}, "whole": cell.whole}
    made = _program(Environment(cell, wheel), program, task)
    found = {one: server.version for one, server in servers.items()}
    return {"outcome": outcome(made), "servers": found, **made}


def _program(environment: Environment, program: Path, given: Mapping[str, Any]) -> Record:
    with tempfile.TemporaryDirectory() as scratch:
        task, result = Path(scratch) / "task", Path(scratch) / "result"
        task.write_text(json.dumps(given))
        done = environment.run([program, task, result])
        if not result.exists():
            return {"error": done.stderr[-2000:] or f"exit status {done.returncode}"}
        made: Record = json.loads(result.read_text())
        return made


if __name__ == "__main__":
    sys.exit(main())
