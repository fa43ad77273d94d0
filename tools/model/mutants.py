"""The mutants of docs/model/mutants.md: the checks that find them, and their counterexamples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.kit.mutants import MUTANTS
from tools.model import paths
from tools.model.scopes import Scope
from tools.model.tlc import SPEC
from tools.model.walker import Played, play

PAGE = SPEC / "mutants.md"


@dataclass(frozen=True)
class Mutant:
    """A line of the list.

    Attributes:
        name: its name in the kit, if the kit has it.
        kit: the rule of the kit that finds it, or why none can.
        explorer: whether the explorer finds it.
        breaks: the invariant that it breaks in the model, or why the model can't show it.
        leaves: the step at which the core leaves TLC's counterexample; empty if the store in memory
            can't play it.
        instead: by name of a definition, its replacement in docs/model/mutants.tla.
        scope: the scope in which TLC finds it.
        soon: whether TLC finds it in seconds.
        unlike: why the kit's mutant does not walk the model's counterexample, if it does not.
    """

    name: str
    kit: str
    explorer: bool
    breaks: str
    leaves: str
    instead: Mapping[str, str]
    scope: Scope
    soon: bool
    unlike: str


def _lines() -> Iterator[Mutant]:
    _, _, table = PAGE.read_text().partition("---|")
    for line in table.splitlines()[1:]:
        cells = [cell.strip() for cell in line.split("|")]
        name, kit, explorer, breaks, leaves, instead, text, unlike = cells
        within, slow, _ = text.partition("minutes")
        # The mutants' store dooms in two steps, like the store in memory.
        scope = Scope.parse("mutant", ", ".join(filter(None, [within.strip(", "), "OneStep no"])))
        definitions = dict(re.findall(r"`(\w+)`: `(\w+)`", instead))
        found = bool(explorer)
        yield Mutant(
            name, kit, found, breaks.strip("`"), leaves, definitions, scope, not slow, unlike
        )


ALL = {mutant.name: mutant for mutant in _lines()}
IN_MODEL = {name: mutant for name, mutant in ALL.items() if mutant.instead}
"""The mutants that docs/model has, too."""

KIT = {mutant.name: mutant for mutant in MUTANTS}


@dataclass(frozen=True)
class Walked:
    """The result of walking a counterexample.

    Attributes:
        steps: the number of steps to the broken promise.
        core: how far the core follows it; None if the store in memory can't play it.
        twin: how far the core with the kit's mutant follows it; None if that takes other steps.
    """

    steps: int
    core: Played | None = None
    twin: Played | None = None

    @property
    def left(self) -> str:
        """The step at which the core leaves it; empty if the core follows it, or can't play it."""
        return self.core.left if self.core else ""

    def is_told_apart(self, leaves: str) -> bool:
        """Whether the core leaves it at this step, and the twin follows it to the end."""
        leaves_it = self.core is None or bool(self.left)
        walks_it = self.twin is None or not self.twin.parted
        return leaves_it and walks_it and self.left == leaves

    def __str__(self) -> str:
        words = [f"broken after {self.steps} steps"]
        if self.core is not None:
            at = f"leaves it at step {self.core.steps + 1}, '{self.left}'"
            words.append(f"the core {at if self.left else 'walks it, too'}")
        if self.twin is not None:
            parts = self.twin.parted and f"leaves it: {self.twin.parted}"
            words.append(f"the kit's mutant {parts or 'walks it'}")
        return "; ".join(words)


def walked(name: str, *, quick: bool = False) -> Walked:
    """Find a mutant of docs/model, and play TLC's counterexample."""
    mutant = IN_MODEL[name]
    scope = mutant.scope
    path = paths.counterexample(scope, mutant.instead, mutant.breaks, quick=quick)
    if not _is_playable(scope):
        return Walked(len(path))
    core = play(path, scope, paths.memory_of(scope))
    return Walked(len(path), core, _twin(name, path, scope))


def _twin(name: str, path: paths.Path, scope: Scope) -> Played | None:
    if name not in KIT or IN_MODEL[name].unlike:
        return None
    mutant = KIT[name]
    with mutant.at_work():
        return play(path, scope, mutant.new_subject(paths.profile_of(scope)).memory)


def _is_playable(scope: Scope) -> bool:
    """Whether the store in memory has the profile and the losses of a scope."""
    values = scope.values
    known = "c" not in values["Queries"] and values["Loss"] not in ("dirty", "lag")
    return bool(known and values["Profile"] != "lanes")
