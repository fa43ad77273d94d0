"""How much of the model TLC searches: a scope has so many drivers, attempts and troubles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.model import tlc
from tools.model.tla import tla

INVARIANTS = (
    "Once",
    "OnlyDecided",
    "EpochsInOrder",
    "Owners",
    "OneDriver",
    "RowsInOrder",
    "AllOfIt",
    "OneComputation",
    "Whole",
    "OneVersion",
    "Kept",
    "NotDropped",
    "NoFalseAlarm",
)
TROUBLES = (
    "faults",
    "dooms",
    "leaves",
    "commands",
    "restores",
    "refusals",
    "losses",
    "accepted",
    "calm",
)
CONSTANTS: Mapping[str, Any] = {
    "Queries": {"a"},
    "Profile": "chunks",
    "OneStep": True,
    "SinkId": True,
    "Policy": "fail",
    "Follows": "next",
    "Parts": {1},
    "Sizes": {1},
    "LastEpoch": 0,
    "MaxRuns": 2,
    "MaxAttempts": 2,
    "Loss": "",
    "Places": {1},
}
"""Of a scope that says nothing else: one query, two runs, an attempt for each."""


@dataclass(frozen=True)
class Scope:
    """A part of the model that TLC searches whole, but for what is endless.

    Attributes:
        name: what it is about.
        drivers: how many live at a time.
        most: how often each kind of trouble may come; never if it is not named.
        but: invariants that nobody can promise there.
        ends: whether a query must end its epochs once nothing more goes wrong.
        endless: whether drivers may try for ever; TLC follows them as far as `Patient` says.
        constants: other than `CONSTANTS`.
    """

    name: str
    drivers: int = 2
    most: Mapping[str, int] = field(default_factory=dict)
    but: tuple[str, ...] = ()
    ends: bool = False
    endless: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)

    @property
    def invariants(self) -> tuple[str, ...]:
        """What must hold."""
        return tuple(one for one in INVARIANTS if one not in self.but)

    def module(self, name: str, extends: str) -> str:
        """A module that says how often each kind of trouble may come."""
        most = tla({one: self.most.get(one, 0) for one in TROUBLES})
        return f"---- MODULE {name} ----\nEXTENDS {extends}\nTroubles == {most}\n====\n"

    def config(self) -> str:
        """The configuration of TLC; drivers are exchangeable where no liveness is asked for."""
        invariants = "INVARIANTS " + " ".join(self.invariants)
        lines = [invariants, "PROPERTY Ends" if self.ends else "SYMMETRY Symmetry"]
        if self.endless:
            assert not self.ends, "what is cut off would count as an end"
            lines.append("CONSTRAINT Patient")
        return self._config("Fair" if self.ends else "Spec", {}, lines)

    def walking(
        self, instead: Mapping[str, str], invariants: Sequence[str], view: str = "States"
    ) -> str:
        """The configuration for docs/model/walks.tla; `view` says which states are the same."""
        lines = ["SYMMETRY Symmetry", f"VIEW {view}"]
        lines.append("INVARIANTS " + " ".join(invariants) if invariants else "PROPERTY IsNext")
        return self._config("Walks", instead, lines)

    def _config(self, spec: str, instead: Mapping[str, str], lines: Sequence[str]) -> str:
        drivers = [f"d{number + 1}" for number in range(self.drivers)]
        places = [f"  {one} = {one}" for one in drivers]
        places.append(f"  Drivers = {{{', '.join(drivers)}}}")
        values = tlc.config(self.values, spec, {"Most": "Troubles", **instead})
        return values + "\n".join([*places, *lines])

    @property
    def values(self) -> Mapping[str, Any]:
        """All constants."""
        return {**CONSTANTS, **self.constants}


@dataclass(frozen=True)
class Searched:
    """What a search gave.

    Attributes:
        states: how many were found, equal ones counted once.
        broken: the first invariant that does not hold; empty if all do.
        text: all that TLC says.
    """

    states: int
    broken: str
    text: str


def search(scope: Scope, *, seconds: float, workers: int = 1) -> Searched:
    """Let TLC search a scope.

    Args:
        scope: what to search.
        seconds: after which it is stopped.
        workers: threads.

    Raises:
        AssertionError: TLC could not search it.
        subprocess.TimeoutExpired: it takes longer.
    """
    modules = {"scope": scope.module("scope", "promises")}
    told = tlc.run(modules, "scope", scope.config(), seconds=seconds, workers=workers)
    broken = re.findall(r"Invariant (\w+) is violated", told.text)
    if "Temporal properties were violated" in told.text:
        broken.append("Ends")
    assert told.is_through or broken, told.text[-3000:]
    return Searched(told.states, "".join(broken[:1]), told.text)
