"""The lines that come of a tape, and what is known while they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tools.model.names import key
from tools.model.seen import Eyes, Fields

PLACES = range(1, 10)
"""In each of which one driver lives at a time."""


@dataclass
class Script:
    """Lines of docs/model/trace.tla.

    Attributes:
        eyes: look at the store.
        lines: so far.
        modes: what an actor is doing: a commit, an abort, a command.
    """

    eyes: Eyes
    lines: list[Fields] = field(default_factory=list)
    modes: dict[str, str] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)

    def add(self, act: str, **more: Any) -> None:
        """A line, by which nothing is seen to change."""
        self.lines.append({"act": act, **more, "saw": {}})

    def place(self, driver: str) -> str:
        """Where a driver lives: the first place that is free when it begins."""
        who = key(driver)
        if who not in self._places:
            self._places[who] = min(set(PLACES) - set(self._places.values()))
        return f"d{self._places[who]}"

    def lives(self, driver: str) -> bool:
        """Whether it has a place."""
        return key(driver) in self._places

    def end(self, driver: str) -> None:
        """It lives no more."""
        self.add("ends", d=self.place(driver))
        self._places.pop(key(driver), None)
