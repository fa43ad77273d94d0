"""One run of the demo: starts the driver, kills it in the middle of a commit, and restarts it."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil

from demo import ROOT, URL, Trouble
from demo.ledgers import STREAMS, Caught, Ledgers, Streams
from demo.show import Board
from sparkonce.tck.spark.processes import Session

PATIENCE = 20 * 60.0
"""Seconds without a row after which the driver counts as stuck, also on a busy machine."""


@dataclass(frozen=True)
class DemoDriver:
    """The user's program, with the paths of its input and output."""

    url: str
    java: Path
    files: Path
    checkpoints: Path
    log: Path

    def start(self) -> Session:
        """Start it as a separate process, each time in the same way."""
        submit = [
            # More slots than two streams use: neither waits for the other's tasks.
            *("--master", "local[4]"),
            *("--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.ui.showConsoleProgress=false"),
            *("--conf", f"spark.sql.warehouse.dir={self.checkpoints.parent / 'warehouse'}"),
            # Half of the demo is Spark's start, which Java's second compiler only slows down.
            *("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
            "pyspark-shell",
        ]
        # Settings for another Spark of the user would apply to this one.
        other = ("SPARK_", "PYSPARK_", "PYTHON")
        mine = {name: text for name, text in os.environ.items() if not name.startswith(other)}
        own = {
            URL: self.url,
            "JAVA_HOME": str(self.java),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join(submit),
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [sys.executable, "-m", "demo.driver", str(self.files), str(self.checkpoints)]
        return Session(command, self.log, mine | own)

    @property
    def shown_log(self) -> Path:
        """The path of its log, relative to the project."""
        return self.log.relative_to(ROOT)

    def failed(self, why: str) -> Trouble:
        """The error to raise, with the end of the log."""
        lines = self.log.read_text(errors="replace").splitlines()
        end = "\n".join(line[:200] for line in lines[-25:])
        return Trouble(f"{why}. The end of {self.shown_log}:\n{end}")


class Run:
    """Two drivers, one after the other, and the state of the ledgers meanwhile."""

    def __init__(self, driver: DemoDriver, ledgers: Ledgers, board: Board, total: int) -> None:
        self.driver, self.ledgers, self.board = driver, ledgers, board
        self._total = total * len(STREAMS)

    def __call__(self) -> dict[str, Caught]:
        """The effect of SIGKILL on each stream. On return both streams have ended normally."""
        self.board.event("driver started")
        with closing(self.driver.start()) as first:
            self._follow(first, lambda streams: self._share(streams) > 0.42)
            processes = _processes(first)
            self._follow(first, self._is_mid_commit, "running", pause=0.001)
            if first.alive:
                first.kill_group()  # the rest of its session ends afterwards
        if first.process.returncode != -signal.SIGKILL:
            raise self.driver.failed("The driver ended before it could be killed")
        caught = self._show_kill(processes)
        self.board.event("driver started again, and nothing else done")
        with closing(self.driver.start()) as second:
            self._follow(second, lambda _: False, "restarted, Spark starts")
        if second.process.returncode:
            raise self.driver.failed(f"The driver ended with status {second.process.returncode}")
        self.board.event("driver ended: all files are read")
        return caught

    def _share(self, streams: Streams) -> float:
        return rows_of(streams) / self._total

    def _is_mid_commit(self, streams: Streams) -> bool:
        """Whether this is the worst moment: the driver is adding the counters of an epoch.

        At best the other stream has rows staged for an epoch that is not decided. But it must not
        take too long to find such a moment: the killing is for half-way.
        """
        share, adding = self._share(streams), streams["airports"].applying
        return share > 0.8 or (adding and (share > 0.58 or streams["flights"].staging))

    def _follow(
        self,
        driver: Session,
        enough: Callable[[Streams], bool],
        state: str = "Spark starts",
        pause: float = 0.05,
    ) -> None:
        """Show the progress until it suffices, or until the driver has ended."""
        streams = self.ledgers.read()
        last, since = rows_of(streams), time.monotonic()
        while driver.alive and not enough(streams):
            self.board.update(streams, state)
            time.sleep(pause)
            streams = self.ledgers.read()
            if rows_of(streams) > last:
                last, since, state = rows_of(streams), time.monotonic(), "running"
            if time.monotonic() - since > PATIENCE:
                raise self.driver.failed(f"No row arrived for {PATIENCE / 60:.0f} minutes")
        self.board.update(streams, "running")

    def _show_kill(self, processes: int) -> dict[str, Caught]:
        streams, caught = self.ledgers.read(), self.ledgers.caught()
        self.board.update(streams, "killed")
        share = self._share(streams)
        event = f"kill -9: {processes} processes killed, {share:.0%} of the rows are stored"
        self.board.event(event, caught)
        return caught


def _processes(driver: Session) -> int:
    try:
        return 1 + len(psutil.Process(driver.process.pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return 0


def rows_of(streams: Streams) -> int:
    """Rows in both streams."""
    return sum(stream.rows for stream in streams.values())
