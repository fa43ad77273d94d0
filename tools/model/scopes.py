"""The parts of the model that TLC searches: a scope limits drivers, attempts and troubles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.model import tlc
from tools.model.tlc import tla

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
"""The default constants of a scope: one query, two runs, an attempt for each."""


SMALL: Mapping[str, str] = {
    "whole epochs, a request fails": "drivers 1, faults 1, Profile whole",
    "whole epochs, an abort": "dooms 1, Profile whole",
    "whole epochs, a checkpoint goes back": (
        "drivers 1, restores 1, Profile whole, LastEpoch 1, MaxRuns 3, MaxAttempts 3"
    ),
    "two epochs, a failover": "drivers 1, losses 1, Profile whole, Loss suffix, LastEpoch 1",
    "two epochs, reads that lag": "drivers 1, Profile whole, Loss lag, LastEpoch 1, endless",
    "two primaries": "drivers 1, losses 3, Profile whole, Loss primary, LastEpoch 1",
    "two partitions": "drivers 1, Profile whole, Parts 1 2, MaxAttempts 4",
    "chunks, two of an attempt": "Sizes 2",
    "chunks, rows are refused": "refusals 1",
    "chunks, recover and forget": "commands 2, MaxRuns 1",
    "chunks, the log is lost, and that accepted": (
        "losses 1, commands 2, accepted 1, Loss log, MaxRuns 1, MaxAttempts 1, "
        "without AllOfIt Kept NotDropped"
    ),
    "row by row, an abort in two steps, and the ledger left": (
        "dooms 1, leaves 1, Profile converging, OneStep no, MaxRuns 1"
    ),
    "lanes, two chunks": "Profile lanes, Places 1 2, Sizes 2",
    "batches with numbers": "Follows grows, LastEpoch 1",
    "batches with numbers, a request fails beside an abort": (
        "drivers 1, faults 1, dooms 1, Follows grows"
    ),
    "batches without, one after the other": (
        "drivers 1, commands 1, Queries a b, Follows once, SinkId no"
    ),
    "a stream and a batch, one process at a time": "drivers 1, commands 1, Queries a p, SinkId no",
    "another query, the ledger shared": (
        "drivers 1, Queries a b, Policy repeatable, MaxAttempts 3, MaxRuns 3"
    ),
    "another query, by the claim": (
        "drivers 1, Queries a b, Policy continue, SinkId no, MaxAttempts 3, MaxRuns 3"
    ),
    "epochs end, once nothing more fails": (
        "drivers 1, faults 1, calm 1, MaxRuns 1, MaxAttempts 1, ends"
    ),
}
"""The scopes of CI."""

LARGE: Mapping[str, str] = {
    "whole epochs, a request fails, two drivers": "faults 1, Profile whole",
    "chunks, a request fails": "faults 1",
    "chunks, two of an attempt, a request fails": "faults 1, Sizes 2",
    "chunks, a failover": "losses 1, Loss suffix",
    "two primaries, a driver at each": "losses 4, Profile whole, Loss primary",
    "two primaries, chunks": "drivers 1, losses 4, Loss primary",
    "chunks, an abort": "dooms 1",
    "chunks, an abort in two steps, and the ledger left": (
        "drivers 1, dooms 1, leaves 1, OneStep no"
    ),
    "row by row, reads of what will be lost": (
        "drivers 1, losses 1, Profile converging, Loss dirty, endless"
    ),
    "row by row, two requests fail": "drivers 1, faults 2, Profile converging",
    "lanes, one goes back, or the ledger's slot": (
        "drivers 1, losses 1, Profile lanes, Places 1 2, Loss place, "
        "without OnlyDecided AllOfIt Kept NotDropped"
    ),
    "another query, the ledger shared, at once": (
        "Profile whole, Queries a b, Policy repeatable, endless"
    ),
    "another query, by the claim, at once": (
        "Profile whole, Queries a b, Policy continue, SinkId no, endless"
    ),
    "a stream and a batch, two epochs, one process at a time": (
        "drivers 1, commands 1, Queries a p, SinkId no, MaxRuns 3, MaxAttempts 3, LastEpoch 1"
    ),
    "a stream and a batch, side by side": "commands 1, Queries a p, SinkId no, without RowsInOrder",
    "whole epochs, two of them": "Profile whole, LastEpoch 1, MaxAttempts 3",
    "two epochs end, once nothing more fails": (
        "drivers 1, faults 1, calm 1, MaxRuns 1, LastEpoch 1, ends"
    ),
}
"""The scopes by hand: `make model SCOPE=large`. No promise covers rows that the store has lost."""


@dataclass(frozen=True)
class Scope:
    """A part of the model that TLC searches completely, unless it is endless.

    Attributes:
        name: a description.
        drivers: the most drivers that live at the same time.
        most: by kind of trouble, how often it may occur; never if not named.
        but: invariants that cannot hold in the scope.
        ends: whether a query must end its epochs once no more troubles occur.
        endless: whether drivers may retry forever; TLC follows them within `Patient`.
        constants: constants that differ from `CONSTANTS`.
    """

    name: str
    drivers: int = 2
    most: Mapping[str, int] = field(default_factory=dict)
    but: tuple[str, ...] = ()
    ends: bool = False
    endless: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str, text: str) -> Scope:
        """The scope of `drivers 1, faults 2, Profile whole, Queries a b, without Kept, endless`."""
        drivers, most, constants, but = 2, dict[str, int](), dict[str, Any](), tuple[str, ...]()
        flags = set[str]()
        for part in filter(None, text.split(", ")):
            word, *values = part.split(" ")
            if word == "drivers":
                drivers = int(values[0])
            elif word == "without":
                but = tuple(values)
            elif word in TROUBLES:
                most[word] = int(values[0])
            elif word in CONSTANTS:
                constants[word] = _constant(CONSTANTS[word], values)
            elif word in ("ends", "endless") and not values:
                flags.add(word)
            else:
                raise ValueError(f"{part!r} is not a part of a scope")
        return cls(name, drivers, most, but, "ends" in flags, "endless" in flags, constants)

    @property
    def invariants(self) -> tuple[str, ...]:
        """The invariants that must hold."""
        return tuple(one for one in INVARIANTS if one not in self.but)

    def module(self, name: str, extends: str) -> str:
        """A module that defines how often each kind of trouble may occur."""
        most = tla({one: self.most.get(one, 0) for one in TROUBLES})
        return tlc.module(name, extends, f"Troubles == {most}")

    def config(self) -> str:
        """The configuration of TLC; drivers are symmetric unless liveness is checked."""
        invariants = "INVARIANTS " + " ".join(self.invariants)
        lines = [invariants, "PROPERTY Ends" if self.ends else "SYMMETRY Symmetry"]
        if self.endless:
            assert not self.ends, "a path that Patient cuts off would count as an end"
            lines.append("CONSTRAINT Patient")
        return self._config("Fair" if self.ends else "Spec", {}, lines)

    def walking(
        self, instead: Mapping[str, str], invariants: Sequence[str], view: str = "States"
    ) -> str:
        """The configuration for docs/model/walks.tla; `view` defines which states are equal."""
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


def _constant(like: Any, values: Sequence[str]) -> Any:
    """The value of a constant, with the type of its default."""
    if isinstance(like, set):
        return {type(next(iter(like)))(value) for value in values}
    return values == ["yes"] if isinstance(like, bool) else type(like)(values[0])


@dataclass(frozen=True)
class Searched:
    """The result of a search."""

    states: int
    broken: str
    text: str


def search(scope: Scope, *, seconds: float, workers: int = 1) -> Searched:
    """Let TLC search a scope."""
    modules = {"scope": scope.module("scope", "promises")}
    found = tlc.run(modules, "scope", scope.config(), seconds=seconds, workers=workers)
    broken = re.findall(r"Invariant (\w+) is violated", found.text)
    if "Temporal properties were violated" in found.text:
        broken.append("Ends")
    assert found.is_through or broken, found.text[-3000:]
    return Searched(found.states, "".join(broken[:1]), found.text)
