"""Plays a path of the model on the core, step by step, and sees that it comes to the same states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from integration.model.acts import Acts
from integration.model.network import Parted
from integration.model.paths import Path
from integration.model.puppets import Stage
from integration.model.scopes import Scope
from integration.model.tla import Function, tla

from sparkonce.tck.explore.frozen import frozen
from sparkonce.tck.explore.turns import Pool
from sparkonce.tck.simulation.memory import MemoryStore


@dataclass(frozen=True)
class Played:
    """What became of a path.

    Attributes:
        steps: how many the core went along.
        parted: why it went no further; empty if it came to the end.
    """

    steps: int
    parted: str = ""


def play(path: Path, scope: Scope, memory: MemoryStore) -> Played:
    """Play one."""
    pool = Pool()
    stage = Stage(memory, pool)
    player = Player(path, Acts(scope, stage))
    with frozen():
        stage.run(player.through)
    pool.close()
    return Played(player.steps, player.parted)


@dataclass
class Player:
    """Goes along a path.

    Attributes:
        acts: what the core does.
    """

    path: Path
    acts: Acts
    steps: int = 0
    parted: str = ""

    def through(self) -> None:
        """Go as far as the core does."""
        try:
            for step in self.path:
                self._take(step)
                self.steps += 1
        except Parted as parted:
            told = {name: one for name, one in self.path[self.steps].items() if name in TOLD}
            self.parted = f"step {self.steps + 1}, {tla(told)}: {parted}"
        self.acts.end()

    def _take(self, step: Function) -> None:
        handler: Callable[[Function], None] = getattr(self.acts, f"on_{step['act']}")
        handler(step)
        self.acts.network.sent = step["sent"]
        if "d" in step:
            self.acts.require_at(step)
        seen, shown = self.acts.see(), step["shown"]
        for name, one in shown.items():
            if seen[name] != one:
                raise Parted(f"{name} is {tla(seen[name])}, and not {tla(one)}")


TOLD = frozenset({"act", "d", "pc", "x", "a", "arrives", "late", "heard", "again"})
