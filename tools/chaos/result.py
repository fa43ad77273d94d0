"""What a run showed: one line, and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tools.chaos import plan

MOST_SAMPLES = 500


@dataclass(frozen=True)
class Struck:
    """A fault that was brought about.

    Attributes:
        fault: one of a plan, or of pipelines in words.
        at: seconds since the run began.
        seconds: that it took, until whoever was killed is seen to be gone.
        seen: what was seen of it.
        epochs: those that the queries had committed by then.
        tries: how often it was tried.
    """

    fault: Any
    at: float
    seconds: float
    seen: str
    epochs: Mapping[str, int]
    tries: int


@dataclass(kw_only=True)
class RunResult:
    """What is known of any run.

    Attributes:
        asked: rows that were asked for; with seed and kills that makes the run again.
        ends: how drivers ended by themselves, by the names of errors.
        alarms: what drivers said that is not so.
        broken: what was not as promised, in words.
    """

    seed: int
    asked: int = 0
    versions: Mapping[str, str]
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
        """Whether all was as promised."""
        raise NotImplementedError

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"good": self.good, **asdict(self)}) + "\n")


@dataclass(kw_only=True)
class Result(RunResult):
    """What a run over one store showed.

    Attributes:
        planned: kills that were asked for.
        skipped: kinds of faults that can't come about here, and why.
        missed: faults that did not come about, and why.
        checks: what was seen at the end, by the names of the last checks.
        reads, changes: how often the reader has read, and seen another state than before.
        leftovers: attempts that `sparkonce gc` has dropped.
        pace: seconds since the run began, and how many rows a reader saw.
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
        """Whether all was as promised, all faults came about, and there was somebody to see it."""
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
        told = {"good": self.good, "kills": self.kills, **asdict(self), "pace": few}
        path.write_text(json.dumps(told) + "\n")
