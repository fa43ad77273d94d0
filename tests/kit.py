"""The store in memory with names that are short in tests."""

from __future__ import annotations

from sparkonce.memory import MemoryStore
from sparkonce.tck.memory_subject import PLAN, MemorySubject
from sparkonce.tck.subject import batch

TARGET = PLAN.target


class World(MemorySubject):
    """A store in memory that publishes whole epochs, or applies them chunk by chunk."""

    def __init__(self, *, whole_epochs: bool = True) -> None:
        super().__init__(MemoryStore(whole_epochs=whole_epochs))


def encode(rows: object) -> bytes:
    """Rows as a chunk."""
    return World().encode(rows)


__all__ = ["PLAN", "TARGET", "World", "batch", "encode"]
