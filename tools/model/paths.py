"""Paths of the model that TLC finds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tools.model import tlc
from tools.model.scopes import Scope
from tools.model.tlc import Function, parsed

from sparkonce.tck.memory_subject import PROFILES
from sparkonce.tck.simulation.memory import MemoryStore

STEP = re.compile(r"^/\\ did = (.*?)\n\n", re.DOTALL | re.MULTILINE)
SECONDS = 900.0

Path = tuple[Function, ...]
"""Steps of docs/model/walks.tla, without the first state."""


def covering(scope: Scope) -> list[Path]:
    """The shortest paths to each kind of step that the scope has."""
    found = _run(scope, {}, ["IsKnown"], options=["-continue"], quick=True, view="Kinds")
    assert found.is_through, found.text[-3000:]
    return list(_longest(found.text))


def states(scope: Scope) -> int:
    """The number of states that walks reach."""
    found = _run(scope, {}, [], quick=True)
    assert found.is_through, found.text[-3000:]
    return found.states


def random(scope: Scope, *, walks: int, depth: int, seed: int) -> list[Path]:
    """Random walks."""
    options = ["-simulate", f"file=walk,num={walks}", "-depth", str(depth), "-seed", str(seed)]
    found = _run(scope, {"Perhaps": "Seldom"}, [], options=options, quick=True)
    assert len(found.walks) == walks, found.text[-3000:]
    return list(_longest("".join(found.walks)))


def counterexample(
    scope: Scope, instead: Mapping[str, str], breaks: str, *, quick: bool = False
) -> Path:
    """The path on which a mutant breaks an invariant."""
    checked = _run(scope, instead, scope.invariants, quick=quick)
    assert f"Invariant {breaks} is violated" in checked.text, checked.text[-3000:]
    found = list(_longest(checked.text))
    assert len(found) == 1, checked.text[-3000:]
    return found[0]


def _run(
    scope: Scope,
    instead: Mapping[str, str],
    invariants: Sequence[str],
    *,
    options: Sequence[str] = (),
    quick: bool,
    view: str = "States",
) -> tlc.Checked:
    modules = {"scope": scope.module("scope", "walks")}
    cfg = scope.walking(instead, invariants, view)
    return tlc.run(modules, "scope", cfg, seconds=SECONDS, options=options, quick=quick)


def _longest(text: str) -> Iterator[Path]:
    """The paths in TLC's output, without those that are the beginning of another."""
    steps: dict[str, Function] = {}
    paths: list[list[str]] = []
    for step in STEP.findall(text):
        if '"begins"' in step:
            paths.append([])
        else:
            paths[-1].append(step)
    parts = {tuple(path[:end]) for path in paths for end in range(len(path))}
    for path in dict.fromkeys(map(tuple, paths)):
        if path not in parts:
            for step in path:
                if step not in steps:
                    steps[step] = parsed(step)
            yield tuple(steps[step] for step in path)


MODELS = dict(zip(PROFILES, ("whole", "chunks", "converging"), strict=True))
"""Profiles of the store in memory, with their names in the model."""

ONE_RUN = "OneStep no, MaxRuns 1, MaxAttempts 1"
"""The store in memory dooms in two steps."""

COVERED = [
    Scope.parse(name, text)
    for name, text in {
        "whole epochs, a request fails": f"drivers 1, faults 1, Profile whole, {ONE_RUN}",
        "chunks, a request fails": f"drivers 1, faults 1, Sizes 2, {ONE_RUN}",
        "row by row, a request fails": f"drivers 1, faults 1, Profile converging, {ONE_RUN}",
        "an abort": f"drivers 1, dooms 1, leaves 1, {ONE_RUN}",
        "batches, a row is refused": (
            "drivers 1, refusals 1, OneStep no, Queries a b, Follows once, SinkId no"
        ),
        "a batch with a number": "drivers 1, faults 1, OneStep no, Follows grows",
        "the log is lost, and that accepted": (
            f"drivers 1, losses 1, commands 2, accepted 1, Loss log, {ONE_RUN}"
        ),
    }.items()
]
"""The scopes whose kinds of steps are all walked, each on its shortest path."""

MANY = "OneStep no, MaxRuns 6, MaxAttempts 8, LastEpoch 1"
TROUBLES = "faults 2, dooms 2, leaves 2, commands 1, refusals 1"
LOSSY = f"{TROUBLES}, losses 1, restores 1, accepted 1"
FEW = "faults 1, dooms 1, refusals 1, commands 1"


def mixes() -> Iterator[Scope]:
    """Combinations of queries, aborts, commands, refused rows, losses and batches."""
    for profile in ("whole", "chunks", "converging"):
        # A failover while rows are applied one by one: see sparkonce.tck.explore.losses.
        loss = "ledger" if profile == "converging" else "suffix"
        for name, text in {
            "two of each": f"{TROUBLES}, Sizes 1 2, Parts 1 2",
            "the ledger shared": f"{LOSSY}, Queries a b, Policy repeatable, Loss log",
            "by the claim": f"{TROUBLES}, Queries a b, Policy continue, SinkId no",
            "a loss": f"{LOSSY}, Loss {loss}",
            "batches with numbers": f"{FEW}, Follows grows, LastEpoch 2",
            "batches without": (
                f"drivers 1, {FEW}, Queries a b, Follows once, LastEpoch 0, SinkId no"
            ),
            "a stream and a batch": f"drivers 1, {FEW}, Queries a p, SinkId no",
        }.items():
            yield Scope.parse(f"{profile}, {name}", f"{MANY}, Profile {profile}, {text}")


def profile_of(scope: Scope) -> str:
    """The profile of the store in memory for a scope."""
    return next(name for name, one in MODELS.items() if one == scope.values["Profile"])


def memory_of(scope: Scope) -> MemoryStore:
    """A store in memory for a scope."""
    return PROFILES[profile_of(scope)]()
