"""What a run of pipelines showed: one line, and JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Struck:
    """A fault: when, in seconds, how long it took, what was seen of it, and the epochs by then."""

    fault: str
    at: float
    seconds: float
    seen: str
    epochs: Mapping[str, int]


@dataclass
class Result:
    """Everything that is known of a run.

    Attributes:
        rows: entries of streams, and transactions of the log.
        lost: by pipeline, rows of the source that the target has not, or not as they are.
        doubled: by pipeline, rows of the target that the source has not.
        ends: how drivers ended by themselves, by the names of errors.
        alarms: what drivers said that is not so.
        broken: what was not as promised, in words.
    """

    seed: int
    kills: int
    asked: int
    versions: Mapping[str, str]
    struck: list[Struck] = field(default_factory=list)
    lost: Mapping[str, int] = field(default_factory=dict)
    doubled: Mapping[str, int] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    rows: int = 0
    drivers: int = 0
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether source and target are the same, and nothing else was not as promised."""
        wrong = sum(self.lost.values()) + sum(self.doubled.values())
        return bool(self.lost) and not (wrong or self.alarms or self.broken)

    @property
    def line(self) -> str:
        lost, doubled = (sum(one.values()) for one in (self.lost, self.doubled))
        return (
            f"chaos: pipelines rows={self.rows} faults={len(self.struck)} lost={lost}"
            f" doubled={doubled}"
        )

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"good": self.good, **asdict(self)}, indent=1) + "\n")
