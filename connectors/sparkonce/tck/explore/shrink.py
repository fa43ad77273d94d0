"""The simplest history that breaks the same rule: delta debugging over a schedule's choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

Choices = list[int]
Fails = Callable[[Choices], Choices | None]
"""Plays choices; returns the ones it used if they break the same rule, else None."""

MOST_TRIES = 800


class Shrinker:
    """Makes choices simpler as long as they fail.

    Args:
        fails: judges choices.
        choices: choices that fail.
    """

    def __init__(self, fails: Fails, choices: Choices) -> None:
        self._fails, self.best = fails, _trimmed(choices)
        self._tries = 0

    def run(self) -> Choices:
        """The simplest choices found."""
        before = None
        while self.best != before and self._tries < MOST_TRIES:
            before = list(self.best)
            for simpler in (self._shorter, self._calmer, self._without, self._smaller):
                self._pass(simpler)
        return self.best

    def _pass(self, candidates: Callable[[], Iterator[Choices]]) -> None:
        progress = True
        while progress and self._tries < MOST_TRIES:
            progress = any(self._try(choices) for choices in candidates())

    def _try(self, choices: Choices) -> bool:
        choices = _trimmed(choices)
        if self._tries >= MOST_TRIES or _weight(choices) >= _weight(self.best):
            return False
        self._tries += 1
        used = self._fails(choices)
        if used is None:
            return False
        used = _trimmed(used)
        self.best = used if _weight(used) <= _weight(choices) else choices
        return True

    # -- simpler ones

    def _shorter(self) -> Iterator[Choices]:
        """Without the end."""
        size = len(self.best)
        for part in (2, 4, 8, 16):
            yield self.best[: size - size // part]
        yield self.best[:-1]

    def _calmer(self) -> Iterator[Choices]:
        """With zeros for some of the other numbers."""
        at = [n for n, value in enumerate(self.best) if value]
        size = len(at)
        while size:
            for start in range(0, len(at), size):
                quiet = set(at[start : start + size])
                yield [0 if n in quiet else value for n, value in enumerate(self.best)]
            size //= 2

    def _without(self) -> Iterator[Choices]:
        """With some removed, so that later ones move forward."""
        for size in (16, 8, 4, 2, 1):
            for start in range(len(self.best) - size, -1, -max(1, size // 2)):
                yield self.best[:start] + self.best[start + size :]

    def _smaller(self) -> Iterator[Choices]:
        """With lower numbers."""
        for n, value in enumerate(self.best):
            if value > 1:
                yield [*self.best[:n], 1, *self.best[n + 1 :]]
                yield [*self.best[:n], value - 1, *self.best[n + 1 :]]


def _trimmed(choices: Choices) -> Choices:
    end = len(choices)
    while end and not choices[end - 1]:
        end -= 1
    return choices[:end]


def _weight(choices: Choices) -> tuple[int, int, int]:
    return sum(1 for value in choices if value), len(choices), sum(choices)
