"""What a mutant is: the store in memory or the core with one fault in it, as data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from sparkonce.tck.memory_subject import PROFILES, MemorySubject

WHOLE, CHUNKS, ROWS = PROFILES
"""The profiles: whole epochs in one step, atomic chunks, row by row."""

ALL = (WHOLE, CHUNKS, ROWS)
PAUSE = 0.005
"""Seconds between two requests that should be one: what a network takes."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        name: what it is called.
        does: what it does, and to whom.
        breaks: the number of the rule that it breaks; the kit must say so.
        profiles: the stores in memory in which it is seen.
        store: a class to put before the store's own.
        patches: by dotted name, what takes its place in the core.
    """

    name: str
    does: str
    breaks: str
    profiles: tuple[str, ...] = ALL
    store: type | None = None
    patches: Mapping[str, Any] = field(default_factory=dict)

    def new_subject(self, profile: str) -> MemorySubject:
        """A store of this profile, with the fault in it."""
        memory = PROFILES[profile]()
        if self.store is not None:
            own = type(memory)
            memory.__class__ = type(self.store.__name__, (self.store, own), {})
        return MemorySubject(memory)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """The core, with the fault in it."""
        with contextlib.ExitStack() as stack:
            for place, new in self.patches.items():
                stack.enter_context(mock.patch(place, new))
            yield


def nothing(*_: Any) -> None:
    """What a step or a guard does that is left out."""
