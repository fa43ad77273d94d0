"""One schedule, from its seed or its choices to its verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkonce.tck.explore.choices import Choices
from sparkonce.tck.explore.frozen import Tokens
from sparkonce.tck.explore.scenario import LOSSES, draw
from sparkonce.tck.explore.tape import Line, Tape
from sparkonce.tck.explore.turns import Pool
from sparkonce.tck.explore.verdict import Verdict
from sparkonce.tck.explore.world import World
from sparkonce.tck.simulation.memory import MemoryStore

_RULE = re.compile(r"([A-Z]\d\d?):")


@dataclass
class Outcome:
    """The result of a schedule.

    Attributes:
        choices: that it made.
        rule: the broken rule; empty if none, ``error`` after an unexpected exception.
        seen: the observation.
        marks: the events that it covered.
        requests: the number of requests.
        history: the events, line by line, if requested.
        tape: the events up to the verdict, with the store after each, if requested.
    """

    choices: list[int]
    rule: str = ""
    seen: str = ""
    marks: set[str] = field(default_factory=set)
    requests: int = 0
    history: list[str] = field(default_factory=list)
    tape: list[Line] = field(default_factory=list)


@dataclass
class Theatre:
    """Runs schedules one after the other.

    Attributes:
        make: creates the store.
        pool: of threads.
        tokens: of the core.
        losses: how often a store may lose data.
    """

    make: Callable[[], MemoryStore]
    pool: Pool
    tokens: Tokens
    losses: float = LOSSES

    def play(
        self,
        seed: str = "",
        given: Sequence[int] | None = None,
        *,
        telling: bool = False,
        taping: bool = False,
    ) -> Outcome:
        """Run one schedule."""
        self.tokens.restart()
        choices = Choices(seed, given)
        memory = self.make()
        tape = Tape(memory, running=taping)
        world = World(memory, choices, self.pool, [] if telling else None, tape)
        outcome = Outcome(choices.made, marks=world.watch.marks, tape=tape.lines)
        try:
            scenario = draw(world, self.losses, batches=not taping)
            owners = [stream.query for stream in scenario.owners]
            tape.event("scenario", "", owners=owners, loss=world.losses.kind)
            world.turns.run()
            tape.running = False
            Verdict(scenario).give()
        except Exception as error:
            found = _RULE.match(str(error)) if isinstance(error, AssertionError) else None
            outcome.rule = found[1] if found else "error"
            outcome.seen = str(error) if found else f"{type(error).__name__}: {error}"
        outcome.requests = world.requests
        outcome.history = world.history or []
        return outcome
