"""The findings of ``sparkonce doctor``: whether a store meets the needs of the guarantee."""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from sparkonce.errors import SparkonceError, error_text

APART = 5.0
"""Most seconds by which two clocks may differ."""

LOST = "a crash loses acknowledged epochs; the next commit then stops with SinkBehindCheckpoint"
"""Why a store is at risk that does not sync each commit to its disk."""


class Level(Enum):
    """The level of a finding: nothing to do, data may be lost, a query would fail."""

    FIT = "fit"
    RISK = "risk"
    UNFIT = "unfit"


class Finding(NamedTuple):
    """A checked property, and what to do about it; `why` and `todo` are empty if it is fit."""

    level: Level
    what: str
    why: str = ""
    todo: str = ""

    def __str__(self) -> str:
        return error_text(self.what, self.why, self.todo)


def fit(what: str) -> Finding:
    """A finding without need for action."""
    return Finding(Level.FIT, what)


def risk(what: str, why: str, todo: str) -> Finding:
    """A finding that may lose data or stop a query."""
    return Finding(Level.RISK, what, why, todo)


def unfit(error: SparkonceError) -> Finding:
    """A finding with which a query would fail."""
    return Finding(Level.UNFIT, error.what, error.why, error.todo)


def clock(server: float) -> Finding:
    """Whether the clocks of the server and of this host agree."""
    apart = server - time.time()
    if abs(apart) <= APART:
        return fit(f"The clocks of server and host agree within {APART:.0f} s")
    return risk(
        f"The clock of the server differs from this host's by {apart:,.0f} s",
        "ages and times in sparkonce status and in metrics are off by that amount",
        "synchronize the clocks by NTP",
    )


def share(what: str, used: float, most: float, todo: str) -> Finding:
    """Whether enough space is free; above 80% usage is a risk."""
    said = f"{what}: {used / 1e6:,.0f} of {most / 1e6:,.0f} MB are used"
    if used <= 0.8 * most:
        return fit(said)
    return risk(said, "a full store rejects epochs: nothing is lost, but the query stops", todo)


@runtime_checkable
class Examined(Protocol):
    """A store that can examine its own fitness."""

    def examine(self) -> Iterator[Finding]:
        """Check what `Store.check` does not reject, but may still lose data."""
