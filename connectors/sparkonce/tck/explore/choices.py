"""The random part of a schedule: a sequence of small numbers, drawn from a seed or given.

0 is always the simplest choice: continue with the same actor, no fault, nothing special. So a
sequence with more zeros is a simpler history, and the empty one is a run without any trouble.
"""

from __future__ import annotations

import random
from collections.abc import Sequence


class Choices:
    """Draws choices, and keeps them.

    Args:
        seed: draws them, unless they are given.
        given: choices to repeat; after their end all are 0.

    Attributes:
        made: the choices so far.
        dice: draws how often things happen; unused with given choices.
    """

    def __init__(self, seed: str = "", given: Sequence[int] | None = None) -> None:
        self.dice = random.Random(seed)  # noqa: S311
        self.made: list[int] = []
        self._given = given

    def pick(self, options: int, rate: float) -> int:
        """One of `options` numbers: 0, or at this `rate` one of the others."""
        if options < 2:
            return 0
        value = self._drawn(options, rate) if self._given is None else self._repeated(options)
        self.made.append(value)
        return value

    def _drawn(self, options: int, rate: float) -> int:
        draw = self.dice.random()
        return 0 if draw >= rate else 1 + int(draw / rate * (options - 1))

    def _repeated(self, options: int) -> int:
        given, at = self._given or (), len(self.made)
        return given[at] if at < len(given) and given[at] < options else 0
