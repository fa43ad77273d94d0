"""Counterexamples of mutants, played on the core as it is, and with the kit's mutant in it."""

from __future__ import annotations

from dataclasses import dataclass

from tests.kit.mutants import MUTANTS
from tools.model import paths
from tools.model.mutants import PLANTED
from tools.model.player import Played, play
from tools.model.scopes import Scope
from tools.model.twins import UNLIKE
from tools.model.walked import memory_of, profile_of

KIT = {mutant.name: mutant for mutant in MUTANTS}


@dataclass(frozen=True)
class Walked:
    """What became of a counterexample.

    Attributes:
        steps: of the way to the broken promise.
        core: how far the core goes along; None where the store in memory can't play it.
        twin: how far it does with the kit's mutant in it; None where that takes other steps.
    """

    steps: int
    core: Played | None = None
    twin: Played | None = None

    @property
    def left(self) -> str:
        """The step at which the core leaves it; empty if it does not, or can't play it."""
        return self.core.left if self.core else ""

    def is_told_apart(self, leaves: str) -> bool:
        """Whether the core leaves it at this step, and the twin walks it to the end."""
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
    """Find a mutant of docs/model, and play what TLC found.

    Raises:
        AssertionError: TLC did not find it.
    """
    planted = PLANTED[name]
    scope = planted.scope
    path = paths.counterexample(scope, planted.instead, planted.breaks, quick=quick)
    if not _is_playable(scope):
        return Walked(len(path))
    core = play(path, scope, memory_of(scope))
    return Walked(len(path), core, _twin(name, path, scope))


def _twin(name: str, path: paths.Path, scope: Scope) -> Played | None:
    if name not in KIT or name in UNLIKE:
        return None
    mutant = KIT[name]
    with mutant.at_work():
        return play(path, scope, mutant.new_subject(profile_of(scope)).memory)


def _is_playable(scope: Scope) -> bool:
    """Whether the store in memory has the profile, and loses what is lost."""
    values = scope.values
    known = "c" not in values["Queries"] and values["Loss"] != "dirty"
    return bool(known and values["Profile"] != "lanes")
