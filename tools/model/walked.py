"""The parts of the model whose paths the core walks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tools.model.scopes import Scope

from sparkonce.tck.memory_subject import PROFILES
from sparkonce.tck.simulation.memory import MemoryStore

MODELS = dict(zip(PROFILES, ("whole", "chunks", "converging"), strict=True))
"""Profiles of the store in memory, as the model has them."""

TWO_STEPS = {"OneStep": False}
"""As the store in memory dooms."""
ONE_RUN = {"MaxRuns": 1, "MaxAttempts": 1}
TWO = {"Queries": {"a", "b"}}
ONCE = {"Follows": "once", "LastEpoch": 0, "SinkId": False}

COVERED = [
    *(
        Scope(f"{profile}, a request fails", 1, {"faults": 1}, constants=TWO_STEPS | ONE_RUN | of)
        for profile, of in (
            ("whole epochs", {"Profile": "whole"}),
            ("chunks", {"Sizes": {2}}),
            ("row by row", {"Profile": "converging"}),
        )
    ),
    Scope("an abort", 1, {"dooms": 1, "leaves": 1}, constants=TWO_STEPS | ONE_RUN),
    Scope("batches, a row is refused", 1, {"refusals": 1}, constants=TWO_STEPS | TWO | ONCE),
    Scope("a batch with a number", 1, {"faults": 1}, constants=TWO_STEPS | {"Follows": "grows"}),
    Scope(
        "the log is lost, and that accepted",
        1,
        {"losses": 1, "commands": 2, "accepted": 1},
        constants=TWO_STEPS | ONE_RUN | {"Loss": "log"},
    ),
]
"""Each kind of step of them is walked to, on the shortest path."""

TROUBLES = {"faults": 2, "dooms": 2, "leaves": 2, "commands": 1, "refusals": 1}
FEW = {"faults": 1, "dooms": 1, "refusals": 1, "commands": 1}
MIXED = {"MaxRuns": 6, "MaxAttempts": 8, "LastEpoch": 1}


def mixes() -> Iterator[Scope]:
    """Crossings of queries, aborts, commands, refused rows, losses and batches."""
    for profile in ("whole", "chunks", "converging"):
        for name, most, more in _each(profile):
            constants = {**TWO_STEPS, **MIXED, "Profile": profile, **more}
            drivers = 1 if more.get("Follows") == "once" or "p" in more.get("Queries", ()) else 2
            yield Scope(f"{profile}, {name}", drivers, most, constants=constants)


def _each(profile: str) -> Iterator[tuple[str, Mapping[str, int], Mapping[str, Any]]]:
    lossy = TROUBLES | {"losses": 1, "restores": 1, "accepted": 1}
    yield "two of each", TROUBLES, {"Sizes": {1, 2}, "Parts": {1, 2}}
    yield "the ledger shared", lossy, TWO | {"Policy": "repeatable", "Loss": "log"}
    yield "by the claim", TROUBLES, TWO | {"Policy": "continue", "SinkId": False}
    # A failover while rows are applied one by one: see sparkonce.tck.explore.losses.
    yield "a loss", lossy, {"Loss": "ledger" if profile == "converging" else "suffix"}
    yield "batches with numbers", FEW, {"Follows": "grows", "LastEpoch": 2}
    yield "batches without", FEW, TWO | ONCE
    yield "a stream and a batch", FEW, {"Queries": {"a", "p"}, "SinkId": False}


def profile_of(scope: Scope) -> str:
    """The profile of the store in memory that a scope is about."""
    return next(name for name, one in MODELS.items() if one == scope.values["Profile"])


def memory_of(scope: Scope) -> MemoryStore:
    """A store of that profile."""
    return PROFILES[profile_of(scope)]()
