"""What a mutant of docs/model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.model.scopes import Scope


@dataclass(frozen=True)
class Planted:
    """A mutant of the kit, as the model has it.

    Attributes:
        instead: by name of a definition, which one of docs/model/mutants.tla takes its place.
        breaks: the invariant that does not hold then.
        leaves: the step at which the core leaves the path on which TLC finds it; none where the
            store in memory can't play it.
        most: how often each kind of trouble comes in the scope that shows it.
        constants: of that scope.
        drivers: of that scope.
        but: invariants that nobody can promise there.
        soon: whether TLC finds it in seconds.
    """

    instead: Mapping[str, str]
    breaks: str
    leaves: str = ""
    most: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    drivers: int = 2
    but: tuple[str, ...] = ()
    soon: bool = True

    @property
    def scope(self) -> Scope:
        """What TLC searches: there a store dooms in two steps, as that in memory does."""
        constants = {**self.constants, "OneStep": False}
        return Scope("mutant", self.drivers, self.most, self.but, constants=constants)
