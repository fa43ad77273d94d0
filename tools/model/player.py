"""Plays a path of the model on the core, which must come to the same states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.model.cast import Cast
from tools.model.drivers import Drivers
from tools.model.network import Parted
from tools.model.others import Others
from tools.model.paths import Path
from tools.model.puppets import Stage
from tools.model.scopes import Scope
from tools.model.tla import Function, tla

from sparkonce.tck.explore.frozen import frozen
from sparkonce.tck.explore.turns import Pool
from sparkonce.tck.simulation.memory import MemoryStore

TOLD = frozenset({"act", "d", "pc", "x", "a", "arrives", "late", "heard", "again"})


@dataclass(frozen=True)
class Played:
    """What became of a path.

    Attributes:
        steps: how many the core went along.
        parted: why it went no further; empty if it came to the end.
        left: the step at which it did not: what is done, and what is read or asked for.
    """

    steps: int
    parted: str = ""
    left: str = ""


def play(path: Path, scope: Scope, memory: MemoryStore) -> Played:
    """Play one."""
    pool = Pool()
    stage = Stage(memory, pool)
    player = Player(path, Cast(scope, stage))
    try:
        with frozen():
            stage.run(player.through)
    finally:
        pool.close()
    return Played(player.steps, player.parted, player.left)


class Player:
    """Goes along a path.

    Args:
        path: of the model.
        cast: who play it.
    """

    def __init__(self, path: Path, cast: Cast) -> None:
        self.path, self.cast = path, cast
        self.drivers, self.others = Drivers(cast), Others(cast)
        self.steps, self.parted, self.left = 0, "", ""

    def through(self) -> None:
        """Go as far as the core does."""
        try:
            for step in self.path:
                self._take(step)
                self.steps += 1
            self.drivers.require_next(self.path[-1]["at"])
        except Parted as parted:
            step = self.path[self.steps] if self.steps < len(self.path) else Function(act="ends")
            told = {name: one for name, one in step.items() if name in TOLD}
            self.parted = f"step {self.steps + 1}, {tla(told)}: {parted}"
            of = step["m"]["kind"] if "m" in step else step.get("pc", "")
            self.left = f"{step['act']} {of}".strip()
        finally:
            self.cast.end()

    def _take(self, step: Function) -> None:
        who = self.drivers if "d" in step else self.others
        handler: Callable[[Function], None] = getattr(who, f"on_{step['act']}")
        handler(step)
        self.cast.network.sent = step["sent"]
        if "d" in step:
            self.drivers.require_at(step)
        seen, shown = self.cast.see(), step["shown"]
        for name, one in shown.items():
            if seen[name] != one:
                raise Parted(f"{name} is {tla(seen[name])}, and not {tla(one)}")
