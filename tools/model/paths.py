"""Paths of the model, as TLC finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tools.model import tlc
from tools.model.scopes import Scope
from tools.model.tla import Function, parsed

STEP = re.compile(r"^/\\ did = (.*?)\n\n", re.DOTALL | re.MULTILINE)
SECONDS = 900.0

Path = tuple[Function, ...]
"""Steps of docs/model/walks.tla, without the first state."""


def covering(scope: Scope) -> list[Path]:
    """The shortest paths to each kind of step that the scope has.

    Raises:
        AssertionError: TLC could not search it.
    """
    told = _run(scope, {}, ["IsKnown"], options=["-continue"], quick=True, view="Kinds")
    assert told.is_through, told.text[-3000:]
    return list(_longest(told.text))


def states(scope: Scope) -> int:
    """How many states walks come to.

    Raises:
        AssertionError: TLC could not search it.
    """
    told = _run(scope, {}, [], quick=True)
    assert told.is_through, told.text[-3000:]
    return told.states


def random(scope: Scope, *, walks: int, depth: int, seed: int) -> list[Path]:
    """Walks by chance.

    Args:
        scope: where they go.
        walks: how many.
        depth: their steps at most.
        seed: of the chance.
    """
    options = ["-simulate", f"file=walk,num={walks}", "-depth", str(depth), "-seed", str(seed)]
    told = _run(scope, {"Perhaps": "Seldom"}, [], options=options, quick=True)
    assert len(told.walks) == walks, told.text[-3000:]
    return list(_longest("".join(told.walks)))


def counterexample(
    scope: Scope, instead: Mapping[str, str], breaks: str, *, quick: bool = False
) -> Path:
    """How a mutant breaks an invariant.

    Raises:
        AssertionError: it breaks another, or none.
    """
    told = _run(scope, instead, scope.invariants, quick=quick)
    assert f"Invariant {breaks} is violated" in told.text, told.text[-3000:]
    found = list(_longest(told.text))
    assert len(found) == 1, told.text[-3000:]
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
    """The paths in what TLC has printed, without those with which another begins."""
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
