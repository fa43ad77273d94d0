"""The result of a run: one line, and JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tools.chaos import plan

MOST_SAMPLES = 500
ROOT = Path(__file__).parents[2]


def made() -> dict[str, str]:
    """The commit, the date and the machine of a run that begins now."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    memory = psutil.virtual_memory().total / 2**30
    return {
        "commit": commit.stdout.strip() or "unknown",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {_processor()}",
    }


def _processor() -> str:
    with suppress(OSError):
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return found[1]
    return platform.machine()


@dataclass(frozen=True)
class Struck:
    """A fault that struck.

    Attributes:
        fault: a fault of the plan, or the text of a fault of the pipelines.
        at: seconds since the run began.
        seconds: its duration, until the killed process has ended.
        seen: the observed effect.
        epochs: the last epoch that each query had committed.
        tries: the number of attempts.
    """

    fault: Any
    at: float
    seconds: float
    seen: str
    epochs: Mapping[str, int]
    tries: int


@dataclass(kw_only=True)
class RunResult:
    """The result of any run.

    Attributes:
        asked: the requested rows; with seed and kills they reproduce the run.
        made: the commit, the date and the machine of the run.
        ends: the number of drivers that ended by themselves, by the name of the error.
        alarms: false alarms of drivers.
        broken: broken promises, in words.
    """

    seed: int
    asked: int = 0
    versions: Mapping[str, str]
    made: Mapping[str, str] = field(default_factory=made)
    struck: list[Any] = field(default_factory=list)
    rows: int = 0
    epochs: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    drivers: int = 0
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether the run kept all promises."""
        raise NotImplementedError

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"good": self.good, **asdict(self)}) + "\n")


@dataclass(kw_only=True)
class Result(RunResult):
    """The result of a run over one store.

    Attributes:
        planned: the requested kills.
        skipped: kinds of faults that are impossible on this machine, and why.
        missed: faults that did not strike, and why.
        checks: the results of the last checks, by name.
        reads, changes: the reader's reads, and those that saw a new state.
        leftovers: attempts that `sparkonce gc` dropped.
        pace: seconds since the run began, each with the number of rows that a reader saw.
    """

    store: str
    planned: int
    missed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    lost: int = 0
    duplicated: int = 0
    torn: int = 0
    reads: int = 0
    changes: int = 0
    leftovers: int = 0
    residue: list[str] = field(default_factory=list)
    pace: list[tuple[float, int]] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return sum(one.fault.kind in plan.KILLING for one in self.struck)

    @property
    def good(self) -> bool:
        """Whether the run kept all promises, all faults struck, and the reader saw rows."""
        counted = self.lost or self.duplicated or self.torn or self.residue
        harm = counted or self.broken or self.alarms
        fired = self.kills == self.planned and not self.missed
        return not harm and fired and self.rows > 0 and self.reads > 0

    @property
    def line(self) -> str:
        return (
            f"chaos: store={self.store} rows={self.rows} kills={self.kills} lost={self.lost}"
            f" duplicated={self.duplicated} torn={self.torn} residue={len(self.residue)}"
        )

    def write(self, path: Path) -> None:
        few = self.pace[:: len(self.pace) // MOST_SAMPLES + 1]
        record = {"good": self.good, "kills": self.kills, **asdict(self), "pace": few}
        path.write_text(json.dumps(record) + "\n")
