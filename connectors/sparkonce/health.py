"""What ``sparkonce doctor`` finds: whether a store keeps what the guarantee rests on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from sparkonce.errors import SparkonceError, error_text

APART = 5.0
"""Seconds by which two clocks may differ."""

LOST = (
    "a crash takes acknowledged epochs along; the next commit then stops with SinkBehindCheckpoint"
)
"""Why a store is at risk that does not have each commit on its disk."""


class Level(Enum):
    """How grave a finding is: nothing to do, something may be lost, a query would be refused."""

    FIT = "fit"
    RISK = "risk"
    UNFIT = "unfit"


class Finding(NamedTuple):
    """What was looked at, and what to do about it; `why` and `todo` are empty where it is fit."""

    level: Level
    what: str
    why: str = ""
    todo: str = ""

    def __str__(self) -> str:
        return error_text(self.what, self.why, self.todo)


def fit(what: str) -> Finding:
    """Nothing has to be done."""
    return Finding(Level.FIT, what)


def risk(what: str, why: str, todo: str) -> Finding:
    """Something may be lost, or a query may stop."""
    return Finding(Level.RISK, what, why, todo)


def unfit(error: SparkonceError) -> Finding:
    """A query would be refused."""
    return Finding(Level.UNFIT, error.what, error.why, error.todo)


def clock(server: float) -> Finding:
    """Whether the clocks of the server and of this host agree."""
    apart = server - time.time()
    if abs(apart) <= APART:
        return fit(f"Its clock and the one of this host agree within {APART:.0f} s")
    return risk(
        f"Its clock differs from the one of this host by {apart:,.0f} s",
        "ages and times in sparkonce status and in metrics are wrong by as much",
        "set the clocks by NTP",
    )


def share(what: str, used: float, most: float, todo: str) -> Finding:
    """Whether there is room; above 80% it is a risk."""
    said = f"{what}: {used / 1e6:,.0f} of {most / 1e6:,.0f} MB are used"
    if used <= 0.8 * most:
        return fit(said)
    return risk(said, "a store that is full takes no epoch: nothing is lost, the query stops", todo)


@runtime_checkable
class Examined(Protocol):
    """A store that can tell how fit it is."""

    def examine(self) -> Iterator[Finding]:
        """Look at what `Store.check` does not refuse, and what may lose data all the same."""
