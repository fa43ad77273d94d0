"""The counts of a sink and the pace of its last epochs, which ``sparkonce watch`` shows.

Times are by the clock of the process that decided or finished an epoch.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

from sparkonce.codec import Whole
from sparkonce.protocol import Applied, Manifest

KEPT = 100
"""The number of epochs whose pace a ledger keeps."""

HISTORY = re.compile(
    r"(?:\d+,\d+(?:\.\d+)?(?:,\d+){4}(?:,\d+(?:\.\d+)?(?:e-\d+)?){3}(?:\n|$))*", re.ASCII
)
"""Lines that `Pace.parsed` reads: see `Pace.written`."""


class Pace(NamedTuple):
    """Sizes and durations of one epoch.

    Attributes:
        epoch: its number.
        decided: Unix time of its decision, in seconds.
        rows: number of all rows.
        aside: number of dead letters among them.
        bytes: of its chunks, as staged.
        chunks: number of its chunks.
        stage: seconds of its longest task, including Spark's part of it.
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
        """Parse a line that `written` has returned."""
        epoch, decided, *counts, stage, decide, apply = line.split(",")
        rows, aside, size, chunks = map(int, counts)
        seconds = float(stage), float(decide), float(apply)
        return cls(int(epoch), float(decided), rows, aside, size, chunks, *seconds)

    @property
    def written(self) -> str:
        """A line of text, not JSON, as drivers read and write the ledger so often."""
        return ",".join(map(str, self))

    def applied(self, aside: int) -> Pace:
        """A copy for an epoch whose rows have all taken effect."""
        return self._replace(aside=aside, apply=round(max(0.0, time.time() - self.decided), 3))

    def summary(self, sink: str, start: Start) -> str:
        """One line about a finished epoch."""
        finish = max(0.0, start.passed - self.decide - self.apply)
        return (
            f"Epoch {self.epoch} of {sink}: {self.rows:,} rows ({self.aside:,} dead letters),"
            f" {self.chunks:,} chunks, {self.bytes:,} bytes; staged in {self.stage:.3f} s,"
            f" decided in {self.decide:.3f} s, applied in {self.apply:.3f} s, finished in"
            f" {finish:.3f} s"
        )


class Start(NamedTuple):
    """The start of a commit, and the duration of its longest task.

    Attributes:
        commit: Unix time in seconds.
        stage: see `Pace`.
    """

    commit: float
    stage: float

    @property
    def passed(self) -> float:
        """Seconds since the start of the commit."""
        return max(0.0, time.time() - self.commit)


@dataclass(frozen=True)
class Totals(Whole):
    """Counts of a sink, over all of its queries.

    Attributes:
        rows: rows decided so far.
        epochs: epochs decided so far.
        aside: dead letters among the rows.
        unstored: dead letters since the last stored row, over whole epochs.
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
        """The pace of each of the last epochs, newest last."""
        return [Pace.parsed(line) for line in self.history.split("\n") if line]

    def pace(self, epoch: int) -> Pace | None:
        """The pace of the last epoch, if it has this number."""
        line = self.history.rpartition("\n")[2]
        last = Pace.parsed(line) if line else None
        return last if last is not None and last.epoch == epoch else None

    def decided(self, manifest: Manifest, start: Start | None) -> Totals:
        """A copy with one more epoch."""
        size = sum(sum(part.sizes) for part in manifest.parts)
        counts = manifest.rows, 0, size, len(manifest.chunks)
        took = (start.stage, start.passed) if start else (0.0, 0.0)
        pace = Pace(manifest.epoch, time.time(), *counts, *(round(one, 3) for one in took))
        rows, epochs = self.rows + manifest.rows, self.epochs + 1
        return replace(self, rows=rows, epochs=epochs, history=followed(self.history, pace))

    def finished(self, manifest: Manifest, applied: Applied) -> Totals:
        """A copy with the outcome of the last epoch's rows."""
        unstored = self.unstored + applied.aside
        # An epoch without rows does not prove that the table accepts any.
        if manifest.rows and applied.stored:
            unstored = 0
        pace, history = self.pace(manifest.epoch), self.history
        if pace is not None:
            history = followed(history.rpartition("\n")[0], pace.applied(applied.aside))
        return replace(self, aside=self.aside + applied.aside, unstored=unstored, history=history)


def followed(history: str, pace: Pace) -> str:
    """A history with one more epoch."""
    return "\n".join([*history.split("\n")[-KEPT + 1 :], pace.written]).lstrip("\n")
