"""The records in docs/reliability/: one file for each run, as the run wrote it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkonce import __version__

DOCS = Path(__file__).parents[2] / "docs"
HOME = DOCS / "reliability"
CHAOS, PARTITIONS = HOME / "chaos", HOME / "partitions"

Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """All recorded runs by name; those over one store, over three stores, and over clusters."""

    stores: Sequence[Record]
    pipelines: Record | None
    batches: Record | None
    sinks: Sequence[Record]
    sources: Sequence[Record]

    @property
    def three(self) -> list[Record]:
        return [run for run in (self.pipelines, self.batches) if run]

    @property
    def all(self) -> list[Record]:
        return [*self.stores, *self.three, *self.sinks, *self.sources]


def read(home: Path = HOME) -> Records:
    """Read all records.

    Raises:
        ValueError: if a run was not good, was not of this release, or had uncommitted changes.
    """
    chaos = {path.stem: _read(path) for path in sorted((home / CHAOS.name).glob("*.json"))}
    cut = {path.stem: _read(path) for path in sorted((home / PARTITIONS.name).glob("*.json"))}
    return Records(
        [run for name, run in chaos.items() if name not in ("pipelines", "batches")],
        chaos.get("pipelines"),
        chaos.get("batches"),
        [run for name, run in cut.items() if name.endswith("-sink")],
        [run for name, run in cut.items() if name.endswith("-source")],
    )


def _read(path: Path) -> Record:
    run: Record = json.loads(path.read_text())
    release, commit = run["versions"]["sparkonce"], run["made"]["commit"]
    if not run["good"]:
        raise ValueError(f"{path.stem} is not good")
    if release != __version__:
        raise ValueError(f"{path.stem} is of release {release}, the code of {__version__}")
    if "dirty" in commit or commit == "unknown":
        raise ValueError(f"{path.stem} is of no commit: {commit}")
    return {**run, "name": path.stem}
