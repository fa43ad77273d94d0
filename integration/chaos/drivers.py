"""Drivers as processes: started, watched, killed, frozen."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from integration.chaos.query import Job

from sparkonce.tck.spark.processes import Session

ERROR = re.compile(r"sparkonce\.errors\.(\w+): (.*)")
SPARKS = re.compile(r"terminated with exception: \[(\w+)\] (.*)")
OTHER = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)): (.*)", re.MULTILINE)


@dataclass(frozen=True)
class Mode:
    """How a driver runs.

    Attributes:
        clustered: on two executors that are processes of their own, not in its own JVM.
        patient: waits long for an answer of the store, so that a slow task gets a twin.
    """

    clustered: bool = False
    patient: bool = False


class Driver:
    """A driver process."""

    def __init__(self, home: Path, job: Job, env: Mapping[str, str], mode: Mode) -> None:
        home.mkdir(parents=True)
        self.home, self.mode = home, mode
        job.write(home / "job.json")
        program = [sys.executable, "-m", "integration.chaos.query", str(home / "job.json")]
        self.session = Session(program, home / "driver.log", env)

    @property
    def alive(self) -> bool:
        return self.session.alive

    @property
    def log(self) -> str:
        return self.session.log.read_text(errors="replace")

    def last_error(self) -> tuple[str, str]:
        """Name and text of the error that ended it; the connector's own, if there is one."""
        found = next(filter(None, (kind.findall(self.log) for kind in (ERROR, SPARKS, OTHER))), [])
        name, text = found[-1] if found else ("unknown", self.session.last_words(3))
        return name, text[:300]
