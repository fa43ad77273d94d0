"""What a sink has counted, and how its last epochs went: what ``sparkonce watch`` shows.

The times are those of the clock of whoever decided or finished an epoch.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkonce.protocol import Applied, Manifest

KEPT = 100
"""Epochs of which a ledger keeps the pace."""

HISTORY = re.compile(
    r"(?:\d+,\d+(?:\.\d+)?(?:,\d+){4}(?:,\d+(?:\.\d+)?(?:e-\d+)?){3}(?:\n|$))*", re.ASCII
)
"""Lines that `Pace.parsed` reads: see `Pace.written`."""


class Pace(NamedTuple):
    """How one epoch went.

    Attributes:
        epoch: its number.
        decided: Unix time of its decision, in seconds.
        rows: all of them.
        aside: those among them that went into dead letters.
        bytes: of its chunks, as staged.
        chunks: how many there were.
        stage: seconds that the longest of its tasks took, Spark's part of it included.
        decide: seconds from the call of commit to the decision.
        apply: seconds from the decision until all rows had taken effect.
    """

    epoch: int
    decided: float
    rows: int
    aside: int
    bytes: int
    chunks: int
    stage: float
    decide: float
    apply: float = 0.0

    @classmethod
    def parsed(cls, line: str) -> Pace:
        """From a line that `written` gave."""
        epoch, decided, *counts, stage, decide, apply = line.split(",")
        rows, aside, size, chunks = map(int, counts)
        seconds = float(stage), float(decide), float(apply)
        return cls(int(epoch), float(decided), rows, aside, size, chunks, *seconds)

    @property
    def written(self) -> str:
        """A line: a ledger is read and written so often that its history is none of JSON."""
        return ",".join(map(str, self))

    def applied(self, aside: int) -> Pace:
        """The same, once all rows have taken effect."""
        return self._replace(aside=aside, apply=round(max(0.0, time.time() - self.decided), 3))

    def summary(self, sink: str, start: Start) -> str:
        """One line about an epoch that is finished."""
        finish = max(0.0, start.passed - self.decide - self.apply)
        return (
            f"Epoch {self.epoch} of {sink}: {self.rows:,} rows ({self.aside:,} into dead letters)"
            f" in {self.chunks:,} chunks of {self.bytes:,} bytes; staged in {self.stage:.3f} s,"
            f" decided in {self.decide:.3f} s, applied in {self.apply:.3f} s, finished in"
            f" {finish:.3f} s"
        )


class Start(NamedTuple):
    """When a commit began, and how long its tasks took.

    Attributes:
        commit: Unix time in seconds.
        stage: see `Pace`.
    """

    commit: float
    stage: float

    @property
    def passed(self) -> float:
        """Seconds since."""
        return max(0.0, time.time() - self.commit)


@dataclass(frozen=True)
class Totals:
    """Counts of a sink, over all of its queries.

    Attributes:
        rows: rows decided so far.
        epochs: epochs decided so far.
        aside: how many of the rows went into dead letters.
        unstored: how many of them did so since the last row that was stored, over whole epochs.
        dropped: rows of decisions that an operator gave up.
        history: the pace of the last epochs, a line for each, newest last.
    """

    rows: int = 0
    epochs: int = 0
    aside: int = 0
    unstored: int = 0
    dropped: int = 0
    history: str = ""

    @property
    def paces(self) -> list[Pace]:
        """Those of the last epochs, newest last."""
        return [Pace.parsed(line) for line in self.history.split("\n") if line]

    def pace(self, epoch: int) -> Pace | None:
        """That of the last epoch, if it has this number."""
        line = self.history.rpartition("\n")[2]
        last = Pace.parsed(line) if line else None
        return last if last is not None and last.epoch == epoch else None

    def decided(self, manifest: Manifest, start: Start | None) -> Totals:
        """With an epoch more."""
        size = sum(sum(part.sizes) for part in manifest.parts)
        counts = manifest.rows, 0, size, len(manifest.chunks)
        took = (start.stage, start.passed) if start else (0.0, 0.0)
        pace = Pace(manifest.epoch, time.time(), *counts, *(round(one, 3) for one in took))
        rows, epochs = self.rows + manifest.rows, self.epochs + 1
        return replace(self, rows=rows, epochs=epochs, history=followed(self.history, pace))

    def finished(self, manifest: Manifest, applied: Applied) -> Totals:
        """With what became of the rows of the last epoch."""
        unstored = self.unstored + applied.aside
        # An epoch without rows does not show that the table takes any.
        if manifest.rows and applied.stored:
            unstored = 0
        pace, history = self.pace(manifest.epoch), self.history
        if pace is not None:
            history = followed(history.rpartition("\n")[0], pace.applied(applied.aside))
        return replace(self, aside=self.aside + applied.aside, unstored=unstored, history=history)


def followed(history: str, pace: Pace) -> str:
    """A history with one more epoch."""
    return "\n".join([*history.split("\n")[-KEPT + 1 :], pace.written]).lstrip("\n")
