"""How the last epochs of a sink went: what ``sparkonce watch`` and ``metrics`` show.

The times are those of the clock of whoever decided or finished an epoch.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple

KEPT = 100
"""Epochs of which a ledger keeps the pace."""

HISTORY = re.compile(r"(?:\d+,\d+\.?\d*(?:,\d+){4}(?:,\d[\d.e-]*){2,3}(?:\n|$))*", re.ASCII)
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
        epoch, decided, rows, aside, size, chunks, *seconds = line.split(",")
        counts = int(rows), int(aside), int(size), int(chunks)
        stage, decide, apply = map(float, seconds[:3])
        return cls(int(epoch), float(decided), *counts, stage, decide, apply)

    @property
    def written(self) -> str:
        """A line: a ledger is read and written so often that its history is none of JSON."""
        return ",".join(map(str, self))

    def applied(self, aside: int) -> Pace:
        """The same, once all rows have taken effect."""
        return self._replace(aside=aside, apply=round(max(0.0, time.time() - self.decided), 3))


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


def followed(history: str, pace: Pace) -> str:
    """A history with one more epoch.

    Args:
        history: a line for each epoch, the newest last.
        pace: of the next one.
    """
    return "\n".join([*history.split("\n")[-KEPT + 1 :], pace.written]).lstrip("\n")


def told(pace: Pace, sink: str, start: Start) -> str:
    """One line about an epoch that is finished."""
    finish = max(0.0, start.passed - pace.decide - pace.apply)
    return (
        f"Epoch {pace.epoch} of {sink}: {pace.rows:,} rows ({pace.aside:,} into dead letters) in"
        f" {pace.chunks:,} chunks of {pace.bytes:,} bytes; staged in {pace.stage:.3f} s, decided in"
        f" {pace.decide:.3f} s, applied in {pace.apply:.3f} s, finished in {finish:.3f} s"
    )
